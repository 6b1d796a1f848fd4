"""The process dies; the next one goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw
import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.domain.clock import TimedIds
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.mail import MailState
from ai_whisperer.domain.tasks import StepState
from ai_whisperer.errors import ClosedError, ModelRateLimitError, StoreFailedError, StoreRefusedError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import simulate
from ai_whisperer.store.sqlite import SqliteStore
from ai_whisperer.store.sqlite.committers import InlineCommitter
from ai_whisperer.testing.faulty_vfs import FaultyVFS
from tests.simulation.stage import call, calls, opened, play, play_over_crash, results_of, round_of, until


def test_a_task_goes_on_at_the_next_step_and_no_finished_request_is_repeated() -> None:
    asked: list[str] = []

    def say(request: ModelRequest) -> Answer | str:
        asked.append(request.step_id.rpartition(".")[2])
        return call("list_agents") if round_of(request) < 3 else "done"

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.wait_task(await manager.send_task("alice", "go", task_id="the-task"))

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert manager.get_agent_status("alice").state is AgentState.ACTIVE
        ended = await manager.wait_task("the-task")
        assert ended.state is TaskState.COMPLETED
        assert asked == ["1", "3", "5", "7"]
        steps = await manager.list_steps("the-task")
        assert [step.attempt for step in steps] == [1, 1, 1, 1, 2, 1, 1]
        assert [note.seq for note in await manager.notifications()] == list(
            range(1, len(await manager.notifications()) + 1)
        )
        assert ended.usage.input_tokens == manager.get_agent_status("alice").usage.input_tokens > 0

    play_over_crash(before, after, say, crash_after_seconds=25, latency_seconds=10)


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_tool_call_under_way_is_repeated_only_if_that_does_no_harm(idempotent: bool) -> None:  # noqa: FBT001
    ran: list[str] = []

    @tool(idempotent=idempotent)
    async def effect() -> str:
        """Have an effect outside."""
        ran.append("begun")
        await asyncio.sleep(100)
        return "happened"

    def say(request: ModelRequest) -> Answer | str:
        return call("effect") if round_of(request) == 0 else results_of(request)[0]

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.wait_task(await manager.send_task("alice", "go", task_id="t"))

    async def after(manager: AsyncAgentSessionManager) -> None:
        ended = await manager.wait_task("t")
        assert ended.result is not None
        step = (await manager.list_steps("t"))[1]
        if idempotent:
            assert ended.result.final == "happened"
            assert (len(ran), step.state, step.attempt) == (2, StepState.DONE, 2)
        else:
            assert ended.result.final.startswith("Outcome unknown")
            assert (len(ran), step.state, step.attempt) == (1, StepState.UNKNOWN, 1)

    play_over_crash(before, after, say, crash_after_seconds=50, tools=[effect])


def test_of_several_calls_under_way_the_finished_ones_keep_their_results() -> None:
    ran: list[float] = []

    @tool
    async def effect(seconds: float) -> str:
        """Have an effect outside."""
        ran.append(seconds)
        await asyncio.sleep(seconds)
        return f"took {seconds:g}"

    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return calls(("effect", {"seconds": 10}), ("effect", {"seconds": 1000}), ("effect", {"seconds": 20}))
        return "|".join(result[:12] for result in results_of(request))

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.wait_task(await manager.send_task("alice", "go", task_id="t"))

    async def after(manager: AsyncAgentSessionManager) -> None:
        ended = await manager.wait_task("t")
        assert ended.result is not None
        assert ended.result.final == "took 10|Outcome unkn|took 20"
        assert sorted(ran) == [10, 20, 1000]

    play_over_crash(before, after, say, crash_after_seconds=100, tools=[effect])


def test_mail_under_way_and_waiting_is_handled_once_after_the_crash() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("bob")
        for n in range(3):
            await manager.send_mail("bob", f"n{n}", "x", mail_id=f"m{n}")

    async def after(manager: AsyncAgentSessionManager) -> None:
        await until(lambda: manager.get_agent_status("bob").state is AgentState.IDLE)
        assert {mail.state for mail in await manager.mailbox("bob")} == {MailState.READ}
        assert sorted(str(task.mail_id) for task in await manager.list_tasks("bob")) == ["m0", "m1", "m2"]
        assert (await manager.send_mail("bob", "n1", "x", mail_id="m1")).id == "m1"
        assert len(await manager.mailbox("bob")) == 3

    play_over_crash(before, after, crash_after_seconds=5, latency_seconds=10)


@pytest.mark.parametrize("state", ["paused", "stopped", "created"])
def test_agents_come_back_in_the_state_they_were_in(state: str) -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", auto_start=state != "created")
        await manager.send_task("alice", "go", task_id="t")
        if state == "paused":
            await manager.pause_agent("alice")
        if state == "stopped":
            await manager.stop_agent("alice", reason="enough")

    async def after(manager: AsyncAgentSessionManager) -> None:
        await asyncio.sleep(100)
        status = manager.get_agent_status("alice")
        if state == "paused":
            assert status.state is AgentState.PAUSED
            await manager.resume_agent("alice")
        elif state == "stopped":
            assert (status.state, status.reason) == (AgentState.STOPPED, "enough")
            assert (await manager.get_task("t")).state is TaskState.CANCELLED
            return
        else:
            assert (status.state, status.started, status.queue_size) == (AgentState.IDLE, False, 1)
            await manager.start_agent("alice")
        assert (await manager.wait_task("t")).state is TaskState.COMPLETED

    play_over_crash(before, after, crash_after_seconds=2, latency_seconds=10)


def test_a_wait_for_the_next_attempt_goes_on_after_the_crash() -> None:
    asked: list[int] = []

    def say(request: ModelRequest) -> str:
        asked.append(request.attempt)
        if request.attempt == 1:
            raise ModelRateLimitError(retry_after_seconds=1000)
        return "done"

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.wait_task(await manager.send_task("alice", "go", task_id="t"))

    async def after(manager: AsyncAgentSessionManager) -> None:
        await asyncio.sleep(890)
        assert asked == [1]
        assert (await manager.wait_task("t")).state is TaskState.COMPLETED
        assert asked == [1, 2]

    play_over_crash(before, after, say, crash_after_seconds=100)


def test_tasks_that_may_have_killed_the_process_run_one_after_the_other_in_the_places_that_there_are() -> None:
    disk = SimulatedDisk()
    at_work: list[int] = []

    def say(request: ModelRequest) -> Answer | str:
        return call("list_agents") if round_of(request) < 3 else "done"

    async def life(number: int) -> None:
        store = disk.open()
        manager = opened(store, say, latency_seconds=10)
        await manager.open()
        if number == 0:
            for name in ("ann", "ben"):
                await manager.create_agent(name)
                await manager.send_task(name, "go", task_id=name)
        if number < 2:
            await asyncio.sleep(5)
            await manager.set_limits({"max_concurrent_loops": 2 - number})
            disk.crash()
            asyncio.get_running_loop().stop()
            await asyncio.sleep(1)
        while not (await manager.get_task("ann")).state.ended or not (await manager.get_task("ben")).state.ended:
            at_work.append(manager._session.slots.used)
            await asyncio.sleep(1)
        assert {(await manager.get_task(name)).state for name in ("ann", "ben")} == {TaskState.COMPLETED}
        await manager.close()
        await store.close()

    for number in range(2):
        with pytest.raises(RuntimeError, match="Event loop stopped before Future completed"):
            simulate(life(number), seed=number)
    simulate(life(2), seed=2)
    assert set(at_work) == {1}
    disk.close()


def test_closing_lets_steps_finish_and_the_tasks_go_on_at_the_next_open_without_counting_as_a_crash() -> None:
    disk = SimulatedDisk()
    asked: list[str] = []

    def say(request: ModelRequest) -> Answer | str:
        asked.append(request.step_id.rpartition(".")[2])
        return call("list_agents") if round_of(request) < 5 else "done"

    async def run() -> None:
        for life in range(5):
            store = disk.open()
            manager = opened(store, say, latency_seconds=1)
            await manager.open()
            if life == 0:
                await manager.create_agent("alice")
                await manager.send_task("alice", "go", task_id="t")
            await asyncio.sleep(0.5)
            await manager.close()
            await store.close()
            with pytest.raises(ClosedError):
                manager.list_agents()
        store = disk.open()
        async with opened(store, say) as manager:
            assert (await manager.wait_task("t")).state is TaskState.COMPLETED
            assert asked == ["1", "3", "5", "7", "9", "11"]
        await store.close()
        disk.close()

    simulate(run())


def test_a_wait_for_a_task_is_told_when_the_session_closes_first() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        waiting = asyncio.ensure_future(manager.run_task("alice", "go"))
        await asyncio.sleep(1)
        await manager.close(grace_seconds=1)
        with pytest.raises(ClosedError, match="resumes later"):
            await waiting

    play(scenario, latency_seconds=100)


def test_when_the_store_fails_everything_stops_and_everyone_is_told(tmp_path: Path) -> None:
    vfs = FaultyVFS()

    async def run() -> None:
        store = SqliteStore.open(tmp_path, vfs=vfs.name, committer=InlineCommitter())
        manager = opened(store, lambda _: "done", latency_seconds=10)
        await manager.open()
        await manager.create_agent("alice")
        waiting = asyncio.ensure_future(manager.run_task("alice", "go"))
        await asyncio.sleep(1)
        subscription = manager.subscribe()
        vfs.fail_with = apsw.IOError
        with pytest.raises(StoreFailedError):
            await manager.create_agent("bob")
        with pytest.raises(StoreFailedError):
            await waiting
        with pytest.raises(StoreFailedError):
            await anext(subscription)
        assert isinstance(manager.failure, StoreFailedError)
        await asyncio.sleep(1)
        assert not [each for each in asyncio.all_tasks() if each.get_name().startswith("loop")]
        with pytest.raises(StoreFailedError):
            await manager.send_mail("alice", "s", "b")
        await manager.close()
        store.abandon()

    simulate(run())


@pytest.mark.parametrize(
    "send",
    [
        lambda manager: manager.send_mail("alice", "s", "b", mail_id="one"),
        lambda manager: manager.send_task("alice", "go", task_id="one"),
        lambda manager: manager.broadcast_event("alert", event_id="one"),
        lambda manager: manager.open_chat("alice"),
        lambda manager: manager.create_schedule(interval_seconds=3600, event="alert", schedule_id="one"),
    ],
    ids=["mail", "task", "event", "room", "schedule"],
)
def test_what_is_sent_again_is_not_accepted_if_the_store_fails_before_the_first_is_on_disk(
    send: Callable[[AsyncAgentSessionManager], Awaitable[object]],
) -> None:
    disk = SimulatedDisk(slowest_commit_seconds=100)

    async def run() -> None:
        store = disk.open()
        manager = opened(store, lambda _: "done")
        await manager.open()
        await manager.create_agent("alice", auto_start=False)
        sent = [asyncio.ensure_future(send(manager))]
        await asyncio.sleep(0.01)
        sent += [asyncio.ensure_future(send(manager)), asyncio.ensure_future(manager.flushed())]
        await asyncio.sleep(0.01)
        assert not any(each.done() for each in sent)
        store._groups.stop(StoreFailedError("another process has taken over"))
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
        assert [type(each) for each in outcomes] == [StoreFailedError] * 3
        await manager.close()

    simulate(run())
    disk.crash()
    disk.close()


def test_who_begins_to_watch_a_store_that_has_failed_is_told_at_once() -> None:
    """A node that is taken for dead while it joins would go on for ever otherwise, and refuse everything."""
    store, told = SqliteStore.in_memory(), list[BaseException]()
    failure = StoreFailedError("another process has taken over")
    store._groups.stop(failure)
    store.watch(told.append)
    assert told == [failure]
    store.abandon()


def test_when_the_store_refuses_what_memory_already_holds_the_session_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_agent("bob", auto_start=False)
        waiting = asyncio.ensure_future(manager.run_task("alice", "go"))
        await asyncio.sleep(1)
        monkeypatch.setattr(TimedIds, "new", lambda _: "always the same")
        await manager.send_mail("alice", "s", "b")
        with pytest.raises(StoreRefusedError):
            await manager.send_mail("bob", "s", "b")
        with pytest.raises(StoreRefusedError):
            await waiting
        assert isinstance(manager.failure, StoreRefusedError)

    play(scenario, latency_seconds=10)


def test_an_agent_does_not_wait_for_a_tool_of_its_own_that_a_new_definition_does_not_grant() -> None:
    async def mine() -> str:
        """A tool of its own."""
        return "mine"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", tools=[mine])
        await manager.stop_agent("a")
        await manager.start_agent("a", {"tools": ["check_mail"]})
        assert manager.get_agent_status("a").missing_tools == ()
        assert await manager.run_task("a", "go") == "done"

    play(scenario)

"""Limits of work: agents that are started, loops at work, queues, sizes, steps, time, memory, calls in a circle."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.errors import DefinitionError, LimitError, QueueFullError, TooLargeError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, calls, play, play_over_crash, results_of, round_of, until


async def told_of(manager: AsyncAgentSessionManager, limit: str) -> list[dict[str, Any]]:
    await manager.flushed()
    return [note.params for note in await _named(manager, "limit.reached") if note.params["limit"] == limit]


async def _named(manager: AsyncAgentSessionManager, name: str) -> list[Notification]:
    return [note for note in await manager.notifications(limit=100_000) if note.name == name]


def test_an_agent_too_many_is_not_started_and_nothing_of_it_is_made() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_started_agents": 2})
        await manager.create_agent("a")
        await manager.create_agent("b")
        for _ in range(2):
            with pytest.raises(LimitError, match=r"2 agents are started and 2 may be \(max_started_agents\)"):
                await manager.create_agent("c")
        assert [status.agent_id for status in manager.list_agents()] == ["a", "b"]
        await manager.create_agent("c", auto_start=False)
        with pytest.raises(LimitError):
            await manager.start_agent("c", {"description": "another"})
        assert manager.active_sessions["c"].record.definition.description == ""
        await manager.stop_agent("a")
        await manager.start_agent("c")
        for told in await told_of(manager, "max_started_agents"):
            assert (told["agentId"], told["used"], told["max"]) == ("c", 2, 2)
            assert (told["action"], told["scope"]) == ("refused", "session")
        assert len(await told_of(manager, "max_started_agents")) == 2, "as one that is not made, and as one that is"

    play(scenario)


def test_started_agents_are_counted_after_a_restart_too() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_started_agents": 1})
        await manager.create_agent("a")
        await asyncio.sleep(5)

    async def after(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(LimitError):
            await manager.create_agent("b")
        await manager.set_limits({"max_started_agents": None})
        await manager.create_agent("b")

    play_over_crash(before, after, crash_after_seconds=3)


class Crowd:
    """How many think at the same time, now and at most."""

    def __init__(self) -> None:
        self.now = self.most = 0


def test_loops_wait_for_a_place_and_all_get_one() -> None:
    crowd = Crowd()

    async def think(seconds: float) -> str:
        """Think."""
        crowd.now += 1
        crowd.most = max(crowd.most, crowd.now)
        await asyncio.sleep(seconds)
        crowd.now -= 1
        return "thought"

    def say(request: ModelRequest) -> Answer | str:
        return call("think", seconds=3) if round_of(request) == 0 else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_concurrent_loops": 5})
        for number in range(100):
            await manager.create_agent(f"a{number}")
        tasks = [await manager.send_task(f"a{number % 100}", "go") for number in range(200)]
        ended = [await manager.wait_task(task) for task in tasks]
        assert {task.state for task in ended} == {TaskState.COMPLETED}
        assert crowd.most == 5
        await manager.at_rest()
        assert {status.state for status in manager.list_agents()} == {AgentState.IDLE}
        began = sorted(ended, key=lambda task: task.started_at or 0)
        first_half = {task.agent_id for task in began[:100]}
        assert len(first_half) == 100, "an agent had its second turn before another had its first"
        assert (await told_of(manager, "max_concurrent_loops"))[0]["action"] == "waiting"
        [places] = [each for each in manager.get_limits().limits if each.name == "max_concurrent_loops"]
        assert (places.used, places.source) == (0, "session")

    play(scenario, say, tools=[think])


def test_a_loop_that_waits_for_an_answer_has_no_place_and_the_answer_needs_none() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id != "b" and round_of(request) == 0:
            return call("send_mail_with_switch", to_agent="b", subject="s", body="?")
        return "ok"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_concurrent_loops": 1})
        for name in ("a", "b", "c", "d"):
            await manager.create_agent(name)
        tasks = [await manager.send_task(name, "go") for name in ("a", "c", "d")]
        for task in tasks:
            assert (await manager.wait_task(task)).state is TaskState.COMPLETED

    play(scenario, say)


def test_work_that_waits_for_a_place_begins_when_the_limit_is_raised() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_concurrent_loops": 1})
        for name in ("a", "b", "c"):
            await manager.create_agent(name)
            await manager.send_task(name, "go")
        await asyncio.sleep(10)
        assert [len(status.running_tasks) for status in manager.list_agents()] == [1, 0, 0]
        await manager.set_limits({"max_concurrent_loops": 3})
        await asyncio.sleep(1)
        assert [len(status.running_tasks) for status in manager.list_agents()] == [1, 1, 1]

    play(scenario, latency_seconds=1000)


def test_work_that_waits_for_a_place_can_be_cancelled_and_its_agent_is_idle() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_concurrent_loops": 1})
        for name in ("a", "b"):
            await manager.create_agent(name)
        first = await manager.send_task("a", "go")
        waiting = [await manager.send_task("b", "go") for _ in range(3)]
        for task in waiting:
            await manager.cancel_task(task)
        await manager.wait_task(first)
        await manager.at_rest()
        assert manager.get_agent_status("b").state is AgentState.IDLE

    play(scenario)


def test_places_hold_after_a_crash_too() -> None:
    crowd = Crowd()

    async def think() -> str:
        """Think."""
        crowd.now += 1
        crowd.most = max(crowd.most, crowd.now)
        await asyncio.sleep(100)
        crowd.now -= 1
        return "thought"

    def say(request: ModelRequest) -> Answer | str:
        return call("think") if round_of(request) == 0 else "done"

    async def before(manager: AsyncAgentSessionManager) -> None:
        for number in range(6):
            await manager.create_agent(f"a{number}")
            await manager.send_task(f"a{number}", "go", task_id=f"t{number}")
        await asyncio.sleep(3)
        await manager.set_limits({"max_concurrent_loops": 2})
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        crowd.now = crowd.most = 0
        for number in range(6):
            assert (await manager.wait_task(f"t{number}")).state is TaskState.COMPLETED
        assert crowd.most <= 2

    play_over_crash(before, after, say, crash_after_seconds=20, tools=[tool(idempotent=True)(think)])


def test_a_full_queue_refuses_with_the_time_to_try_again_and_is_told_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_queue_length": 2}})
        for _ in range(3):
            await manager.send_task("a", "go")
        await asyncio.sleep(20)
        for _ in range(5):
            with pytest.raises(QueueFullError, match="2 items wait and 2 may") as caught:
                await manager.send_task("a", "go")
        assert caught.value.data["retryAfterSeconds"] == 20.0
        [told] = await told_of(manager, "max_queue_length")
        assert (told["used"], told["max"], told["retryAfterSeconds"]) == (2, 2, 20.0)
        [state] = [each for each in manager.get_limits("a").limits if each.name == "max_queue_length"]
        assert (state.value, state.source, state.used, state.reached) == (2, "agent", 2, 5)

    play(scenario, latency_seconds=1000)


def test_an_agent_that_sends_to_a_full_queue_is_told_to_try_later_or_do_without() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "a" and round_of(request) == 0:
            return calls(
                ("send_mail", {"to_agent": "b", "subject": "s", "body": "x"}),
                ("delegate_task", {"to_agent": "b", "task": "x"}),
            )
        return " / ".join(results_of(request)) or "ok"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("b", {"limits": {"max_queue_length": 1}})
        await manager.pause_agent("b")
        await manager.send_task("b", "fills the queue")
        await manager.create_agent("a")
        answer = await manager.run_task("a", "go")
        assert answer.count("Try again later, in about 60 seconds, or do without.") == 2

    play(scenario, say)


def test_texts_that_are_too_large_are_announced() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_prompt_bytes": 10, "max_mail_bytes": 10}})
        with pytest.raises(TooLargeError):
            await manager.send_task("a", "ä" * 6)
        with pytest.raises(TooLargeError):
            await manager.send_mail("a", "s", "x" * 11)
        assert [told["used"] for told in await told_of(manager, "max_prompt_bytes")] == [12]
        assert [told["used"] for told in await told_of(manager, "max_mail_bytes")] == [11]

    play(scenario)


@pytest.mark.parametrize(
    ("limits", "say", "code", "limit"),
    [
        ({"max_steps_per_task": 3}, lambda r: call("check_mail", limit=round_of(r) + 1), "step_limit",
         "max_steps_per_task"),
        ({"max_continuations": 1}, lambda _: "[CONTINUE]", "continuation_limit", "max_continuations"),
        ({"max_context_bytes": 500}, lambda r: Answer(text="x" * 200 * (round_of(r) + 1),
                                                     tool_calls=call("list_agents").tool_calls),
         "context_limit", "max_context_bytes"),
    ],
)  # fmt: skip
def test_a_task_that_reaches_a_limit_fails_with_the_numbers(limits: Any, say: Any, code: str, limit: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": limits})
        task = await manager.wait_task(await manager.send_task("a", "go"))
        assert (task.state, task.error and task.error.code) == (TaskState.FAILED, code)
        [told] = await told_of(manager, limit)
        assert told["action"] == "failed"
        assert told["used"] >= told["max"] == limits[limit]
        assert told["taskId"] == task.id

    play(scenario, say)


@pytest.mark.parametrize("down_for", [0, 1000])
def test_a_task_that_runs_too_long_fails_also_after_a_restart(down_for: float) -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_task_seconds": 100}})
        await manager.send_task("a", "go", task_id="t")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        task = await manager.wait_task("t")
        assert (task.state, task.error and task.error.code) == (TaskState.FAILED, "task_time")
        assert task.finished_at is not None
        assert task.started_at is not None
        assert task.finished_at - task.started_at == pytest.approx(max(100, 50 + down_for), abs=2)
        [told] = await told_of(manager, "max_task_seconds")
        assert (told["max"], told["taskId"]) == (100, "t")

    play_over_crash(before, after, crash_after_seconds=50, down_for_seconds=down_for, latency_seconds=1000)


def test_a_task_in_time_is_left_alone_and_a_lowered_limit_holds_at_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_task_seconds": 100, "max_concurrent_tasks": 2}})
        short = await manager.send_task("a", "go")
        assert (await manager.wait_task(short)).state is TaskState.COMPLETED
        await asyncio.sleep(80)
        long = await manager.send_task("a", "go")
        await asyncio.sleep(30)
        assert (await manager.get_task(long.id)).state is TaskState.RUNNING
        await manager.set_limits({"max_task_seconds": 20}, agent_id="a")

        async def is_so() -> bool:
            return (await manager.get_task(long.id)).state is TaskState.FAILED

        await until(is_so)

    play(scenario, latency_seconds=50)


def test_the_same_call_with_the_same_result_is_not_made_for_ever() -> None:
    made = 0

    def probe() -> str:
        """Look."""
        nonlocal made
        made += 1
        return "nothing"

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_same_calls": 3}})
        await manager.send_task("a", "go", task_id="t")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        task = await manager.wait_task("t")
        assert (task.state, task.error and task.error.code) == (TaskState.FAILED, "loop")
        results = [step.result for step in await manager.list_steps("t") if step.result is not None]
        assert [result.content for result in results[:3]] == ["nothing"] * 3
        assert len(results) == 6
        assert all("3 times in a row" in result.content and result.is_error for result in results[3:])
        assert [told["action"] for told in await told_of(manager, "max_same_calls")] == ["refused", "failed"]
        assert made == 3

    play_over_crash(before, after, lambda _: call("probe"), crash_after_seconds=2.5, tools=[probe])


def test_a_call_whose_result_changes_or_that_is_told_and_stops_is_no_circle() -> None:
    seen = 0

    def probe() -> str:
        """Look."""
        nonlocal seen
        seen += 1
        return f"{seen}"

    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "polls":
            return call("probe") if round_of(request) < 12 else "done"
        return "I see" if "Not run again" in " ".join(results_of(request)) else call("check_mail")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("polls")
        await manager.create_agent("learns")
        assert await manager.run_task("polls", "go") == "done"
        assert await manager.run_task("learns", "go") == "I see"
        assert [told["agentId"] for told in await told_of(manager, "max_same_calls")] == ["learns"]

    play(scenario, say, tools=[probe])


def test_limits_come_from_the_agent_before_the_session_before_what_the_manager_was_given() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_queue_length": 5}})
        await manager.create_agent("b")
        await manager.take_server_limits({"max_queue_length": 90, "max_continuations": 4})
        await manager.set_limits({"max_queue_length": 70})
        assert [manager.active_sessions[name].limits.max_queue_length for name in ("a", "b")] == [5, 70]
        sources = {each.name: (each.value, str(each.source)) for each in manager.get_limits("a").limits}
        wanted = {"max_queue_length": (5, "agent"), "max_continuations": (4, "server")}
        assert {**sources, **wanted, "max_steps_per_task": (100, "default")} == sources
        await manager.set_limits({"max_queue_length": None}, agent_id="a")
        await manager.set_limits({"max_queue_length": None})
        assert manager.active_sessions["a"].limits.max_queue_length == 90
        changed = [note.params for note in await _named(manager, "limits.changed")]
        assert [(each["scope"], each["agentId"], each["limits"]) for each in changed] == [
            ("server", None, {"max_queue_length": 90, "max_continuations": 4}),
            ("session", None, {"max_queue_length": 70}),
            ("agent", "a", {"max_queue_length": None}),
            ("session", None, {"max_queue_length": None}),
        ]

    play(scenario)


def test_stated_limits_survive_a_restart() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.set_limits({"max_queue_length": 7}, agent_id="a")
        await manager.set_limits({"max_mail_bytes": 77, "max_tokens": 1000})
        await asyncio.sleep(5)

    async def after(manager: AsyncAgentSessionManager) -> None:
        limits = manager.active_sessions["a"].limits
        assert (limits.max_queue_length, limits.max_mail_bytes) == (7, 77)
        assert {each.name: each.value for each in manager.get_limits().limits}["max_tokens"] == 1000

    play_over_crash(before, after, crash_after_seconds=3)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_qeue": 5}, "There is no limit 'max_qeue'. Did you mean max_queue_length"),
        ({"max_queue_length": 0}, "max_queue_length must be at least 1"),
        ({"max_task_seconds": float("nan")}, "max_task_seconds must be more than 0"),
        ({"max_queue_length": "5"}, "max_queue_length must be a whole number"),
        ({"max_tokens": 5}, "is a limit of a whole session, not of an agent"),
        ([], "Limits are numbers by name"),
    ],
)
def test_limits_that_make_no_sense_are_refused_and_change_nothing(limits: Any, message: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        before = manager.get_limits("a")
        with pytest.raises(DefinitionError, match=message):
            await manager.set_limits(limits, agent_id="a")
        assert manager.get_limits("a") == before

    play(scenario)

"""Loops that crash, agents that fail too often, and the others, which notice nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.tasks import StepRecord, TaskRecord
from ai_whisperer.errors import ModelRefusedError, StateError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.runtime.agents import loop as ai_loop
from ai_whisperer.runtime.agents.tool_step import run_tool
from tests.simulation.stage import call, play, play_over_crash, prompt_of, round_of, until

STRICT = {"supervision": {"max_failures": 3, "window_seconds": 600}}


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many more times the loops of each agent crash at their next model request."""
    left: dict[str, int] = {}
    request_model = ai_loop.AILoop._request_model

    async def crashing(self: ai_loop.AILoop) -> None:
        agent_id = self.task.agent_id
        if left.get(agent_id, 0) > 0:
            left[agent_id] -= 1
            raise RuntimeError("a fault of ours")
        await request_model(self)

    monkeypatch.setattr(ai_loop.AILoop, "_request_model", crashing)
    return left


async def _restarts(manager: AsyncAgentSessionManager) -> list[Any]:
    return [note for note in await manager.notifications(limit=10_000) if note.name == "async.task.restarting"]


def test_a_loop_that_crashes_begins_again_after_longer_and_longer_delays(faults: dict[str, int]) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"supervision": {"max_restarts": 4, "first_delay_seconds": 10}})
        faults["a"] = 4
        ended = await manager.wait_task(await manager.send_task("a", "go"))
        assert (ended.state, ended.restarts) == (TaskState.COMPLETED, 4)
        delays = [note.params["notBefore"] - note.at for note in await _restarts(manager)]
        assert all(5 * 2**n <= delay <= 10 * 2**n for n, delay in enumerate(delays[:3]))
        assert delays[3] <= 60

    play(scenario)


def test_a_loop_that_crashes_too_often_is_set_aside_and_can_be_retried(faults: dict[str, int]) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        faults["a"] = 4
        ended = await manager.wait_task(await manager.send_task("a", "go"))
        assert (ended.state, ended.error and ended.error.code) == (TaskState.DEAD, "internal")
        assert [task.id for task in (await manager.dead_letters()).tasks] == [ended.id]
        await manager.retry_task(ended.id)
        assert (await manager.wait_task(ended.id)).state is TaskState.COMPLETED

    play(scenario)


def test_a_dead_letter_that_is_dismissed_is_kept_but_not_listed_and_can_still_be_retried(
    faults: dict[str, int],
) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        faults["a"] = 4
        dead = await manager.wait_task(await manager.send_task("a", "go"))
        assert [status.dead_tasks for status in (await manager.snapshot()).agents] == [1]
        dismissed = await manager.dismiss_task(dead)
        assert [status.dead_tasks for status in (await manager.snapshot()).agents] == [0]
        assert dismissed.dismissed_at is not None
        assert await manager.get_task(dead.id) == dismissed == replace(dead, dismissed_at=dismissed.dismissed_at)
        assert (await manager.dead_letters()).tasks == []
        assert (await manager.snapshot()).dead_tasks == 0
        with pytest.raises(StateError, match="was dismissed already"):
            await manager.dismiss_task(dead)
        assert (await manager.retry_task(dead.id)).dismissed_at is None
        assert (await manager.wait_task(dead.id)).state is TaskState.COMPLETED
        assert (await manager.snapshot()).dead_tasks == 0
        (told,) = [note for note in await manager.notifications() if note.name == "async.task.dismissed"]
        assert told.params == {"agentId": "a", "taskId": dead.id}

    play(scenario)


def test_a_task_is_either_retried_or_dismissed_if_both_are_asked_at_once(faults: dict[str, int]) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        for first, second in (
            (manager.dismiss_task, manager.retry_task),
            (manager.retry_task, manager.dismiss_task),
            (manager.dismiss_task, manager.dismiss_task),
        ):
            faults["a"] = 4
            dead = await manager.wait_task(await manager.send_task("a", "go"))
            outcomes = await asyncio.gather(first(dead), second(dead), return_exceptions=True)
            assert {type(outcome) for outcome in outcomes} == {TaskRecord, StateError}
            assert (await manager.snapshot()).dead_tasks == 0

    play(scenario)


def test_what_is_no_dead_letter_cannot_be_dismissed() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        done = await manager.wait_task(await manager.send_task("a", "go"))
        await manager.pause_agent("a")
        cancelled = await manager.cancel_task(await manager.send_task("a", "go"))
        for task in (done, cancelled, await manager.send_task("a", "go")):
            with pytest.raises(StateError, match="Only a dead letter"):
                await manager.dismiss_task(task)

    play(scenario)


def test_the_next_task_of_the_thread_waits_for_the_one_that_crashed(faults: dict[str, int]) -> None:
    order: list[str] = []

    def say(request: ModelRequest) -> str:
        order.append(prompt_of(request))
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_concurrent_tasks": 3}})
        faults["a"] = 2
        first = await manager.send_task("a", "first", thread_id="t")
        await asyncio.sleep(0.1)
        second = await manager.send_task("a", "second", thread_id="t")
        await manager.wait_task(second)
        assert (await manager.get_task(first.id)).state is TaskState.COMPLETED
        assert order == ["first", "second"]

    play(scenario, say)


def test_a_tool_that_was_under_way_when_the_loop_crashed_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    crashed: list[str] = []

    async def effect() -> str:
        """Something that must not happen twice."""
        ran.append("effect")
        return "ok"

    async def crashing(agent: Any, step: StepRecord) -> Any:
        result = await run_tool(agent, step)
        if not crashed:
            crashed.append(step.id)
            raise RuntimeError("after the effect, before its record")
        return result

    monkeypatch.setattr(ai_loop, "run_tool", crashing)

    def say(request: ModelRequest) -> Answer | str:
        return call("effect") if round_of(request) == 0 else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        ended = await manager.wait_task(await manager.send_task("a", "go"))
        assert ended.state is TaskState.COMPLETED
        assert (await manager.list_steps(ended.id))[1].state == "unknown"
        assert ran == ["effect"]

    play(scenario, say, tools=[effect])


def test_a_paused_agent_does_not_restart_and_goes_on_after_the_resume(faults: dict[str, int]) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        faults["a"] = 1
        task = await manager.send_task("a", "go")

        async def is_so() -> bool:
            return bool(await _restarts(manager))

        await until(is_so)
        await manager.pause_agent("a")
        await asyncio.sleep(100)
        assert (await manager.get_task(task.id)).state is TaskState.RUNNING
        await manager.resume_agent("a")
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED

    play(scenario)


def test_an_agent_that_fails_too_often_is_stopped_with_the_reason_kept() -> None:
    def say(request: ModelRequest) -> str:
        if request.agent_id == "bad":
            raise ModelRefusedError("No such key.")
        return "fine"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("bad", STRICT)
        await manager.create_agent("good", STRICT)
        for number in range(5):
            await manager.send_task("bad", "go", task_id=f"bad{number}")
            await manager.send_task("good", "go", task_id=f"good{number}")
        await until(lambda: manager.get_agent_status("bad").state is AgentState.STOPPED)
        status = manager.get_agent_status("bad")
        assert status.reason.startswith("3 tasks failed within 600 seconds, the last one: No such key.")
        assert status.queue_size == 2, "what was not begun is kept"
        for number in range(5):
            assert (await manager.wait_task(f"good{number}")).state is TaskState.COMPLETED
        assert "agent.failing" in [note.name for note in await manager.notifications(limit=10_000)]

    play(scenario, say)


def test_failures_that_lie_far_apart_do_not_stop_an_agent() -> None:
    def say(request: ModelRequest) -> str:
        raise ModelRefusedError

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("bad", STRICT)
        for _ in range(6):
            await manager.wait_task(await manager.send_task("bad", "go"))
            await asyncio.sleep(400)
        assert manager.get_agent_status("bad").state is AgentState.IDLE

    play(scenario, say)


def test_tasks_that_reach_a_limit_of_their_own_do_not_speak_against_the_agent() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {**STRICT, "limits": {"max_steps_per_task": 2}})
        for _ in range(5):
            ended = await manager.wait_task(await manager.send_task("a", "go"))
            assert (ended.error and ended.error.code) == "step_limit"
        assert manager.get_agent_status("a").state is AgentState.IDLE

    play(scenario, lambda _: call("list_agents"))


def test_failures_before_a_crash_of_the_process_count() -> None:
    def say(request: ModelRequest) -> str:
        raise ModelRefusedError

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("bad", STRICT)
        for _ in range(2):
            await manager.wait_task(await manager.send_task("bad", "go"))
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        await manager.wait_task(await manager.send_task("bad", "go"))
        await until(lambda: manager.get_agent_status("bad").state is AgentState.STOPPED)
        with pytest.raises(StateError):
            await manager.pause_agent("bad")
        await manager.start_agent("bad")
        assert manager.get_agent_status("bad").state is AgentState.IDLE

    play_over_crash(before, after, say, crash_after_seconds=50)


def test_failures_before_the_last_start_of_the_agent_do_not_count_after_a_crash_of_the_process() -> None:
    def say(request: ModelRequest) -> str:
        raise ModelRefusedError

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("bad", STRICT)
        for number in range(3):
            await manager.wait_task(await manager.send_task("bad", "go", task_id=f"t{number}"))
        await until(lambda: manager.get_agent_status("bad").state is AgentState.STOPPED)
        await manager.start_agent("bad")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        await manager.wait_task(await manager.send_task("bad", "go"))
        await asyncio.sleep(10)
        assert manager.get_agent_status("bad").state is AgentState.IDLE

    play_over_crash(before, after, say, crash_after_seconds=50)


def test_a_stop_that_the_process_did_not_live_to_see_happens_at_the_start() -> None:
    @tool
    async def hold() -> str:
        """Do not let go."""
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.sleep(1000)
        return ""

    def say(request: ModelRequest) -> Answer | str:
        if "hold" in prompt_of(request):
            return call("hold")
        raise ModelRefusedError

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("bad", {**STRICT, "limits": {"max_concurrent_tasks": 4}})
        await manager.send_task("bad", "hold on")
        await asyncio.sleep(5)
        for number in range(3):
            await manager.wait_task(await manager.send_task("bad", "go", task_id=f"t{number}"))
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert "agent.failing" in [note.name for note in await manager.notifications(limit=1000)]
        await until(lambda: manager.get_agent_status("bad").state is AgentState.STOPPED)
        assert manager.get_agent_status("bad").reason.startswith("3 tasks failed within 600 seconds")

    play_over_crash(before, after, say, crash_after_seconds=60, tools=[hold])


def test_a_restart_that_is_due_after_a_crash_of_the_process_happens(faults: dict[str, int]) -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"supervision": {"first_delay_seconds": 60}})
        faults["a"] = 1
        await manager.send_task("a", "go", task_id="t")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert (await manager.wait_task("t")).state is TaskState.COMPLETED

    play_over_crash(before, after, crash_after_seconds=10)


@pytest.mark.parametrize(
    ("field", "value"), [("max_restarts", -1), ("max_failures", 0), ("window_seconds", 0), ("first_delay_seconds", -1)]
)
def test_a_policy_that_makes_no_sense_is_refused(field: str, value: float) -> None:
    from ai_whisperer.errors import DefinitionError

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(DefinitionError, match=f"supervision.{field}"):
            await manager.create_agent("a", {"supervision": {field: value}})

    play(scenario)

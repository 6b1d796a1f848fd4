"""Pausing, stopping, cancelling and retrying, on virtual time."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.tasks import StepState
from ai_whisperer.errors import StateError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, play, prompt_of, round_of, until


def test_pause_lets_the_step_under_way_finish_and_begins_no_other() -> None:
    def say(request: ModelRequest) -> Answer | str:
        return call("list_agents") if round_of(request) == 0 else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(0.5)
        await manager.pause_agent("alice")
        await asyncio.sleep(100)
        assert [step.state for step in await manager.list_steps(task.id)] == [StepState.DONE]
        assert manager.get_agent_status("alice").state is AgentState.PAUSED
        await manager.resume_agent("alice")
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert manager.get_agent_status("alice").state is AgentState.IDLE

    play(scenario, say)


def test_pause_and_resume_within_one_step_changes_nothing_for_the_task() -> None:
    asked: list[str] = []

    def say(request: ModelRequest) -> str:
        asked.append(request.step_id)
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        await manager.pause_agent("alice")
        await manager.resume_agent("alice")
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert len(asked) == 1

    play(scenario, say)


def test_interrupt_cancels_the_model_request_and_resume_repeats_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(5)
        await manager.interrupt_agent("alice")
        assert not [each for each in asyncio.all_tasks() if each.get_name().startswith("loop")]
        await asyncio.sleep(1000)
        (step,) = await manager.list_steps(task.id)
        assert (step.state, step.attempt) == (StepState.STARTED, 1)
        await manager.resume_agent("alice")
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        (step,) = await manager.list_steps(task.id)
        assert step.attempt == 2

    play(scenario, latency_seconds=60)


def test_resume_while_the_interrupt_is_still_under_way_does_not_leave_the_loop_behind() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(5)
        interrupting = asyncio.ensure_future(manager.interrupt_agent("alice"))
        await until(lambda: manager.get_agent_status("alice").state is AgentState.PAUSED)
        await manager.resume_agent("alice")
        await interrupting
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED

    for seed in range(20):
        play(scenario, latency_seconds=60, seed=seed)


def test_stop_cancels_what_runs_keeps_the_queue_and_a_start_goes_on_with_it() -> None:
    ended: list[str] = []

    @tool
    async def forever() -> str:
        """Never end by itself."""
        try:
            await asyncio.sleep(1e9)
        finally:
            ended.append("tool")
        return "never"

    def say(request: ModelRequest) -> Answer | str:
        return call("forever") if "first" in prompt_of(request) and round_of(request) == 0 else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        first = await manager.send_task("alice", "first")
        second = await manager.send_task("alice", "second")
        await asyncio.sleep(10)
        status = await manager.stop_agent("alice", reason="enough")
        assert ended == ["tool"]
        assert (status.state, status.reason, status.queue_size) == (AgentState.STOPPED, "enough", 1)
        cancelled = await manager.wait_task(first)
        assert cancelled.state is TaskState.CANCELLED
        assert (await manager.list_steps(first.id))[-1].state is StepState.UNKNOWN
        await manager.start_agent("alice")
        assert (await manager.wait_task(second)).state is TaskState.COMPLETED

    play(scenario, say, tools=[forever])


def test_starting_an_agent_that_is_started_is_no_error_and_changes_nothing() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        started = manager.get_agent_status("alice")
        told = manager.last_seq
        assert await manager.start_agent("alice") == started
        assert manager.last_seq == told
        task = await manager.send_task("alice", "go")
        told = manager.last_seq
        assert (await manager.start_agent("alice")).state is AgentState.ACTIVE
        assert manager.last_seq == told
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED

    play(scenario)


def test_stopping_an_agent_that_is_stopped_is_no_error_and_changes_nothing() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        stopped = await manager.stop_agent("alice", reason="enough")
        told = manager.last_seq
        assert await manager.stop_agent("alice", reason="again") == stopped
        assert manager.last_seq == told
        await manager.start_agent("alice")
        assert await manager.run_task("alice", "go") == "done"

    play(scenario)


def test_a_running_and_a_waiting_task_can_be_cancelled() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        tasks = [await manager.send_task("alice", f"n{n}") for n in range(3)]
        await asyncio.sleep(5)
        assert (await manager.cancel_task(tasks[1])).state is TaskState.CANCELLED
        assert (await manager.cancel_task(tasks[0])).state is TaskState.CANCELLED
        assert (await manager.wait_task(tasks[2])).state is TaskState.COMPLETED
        assert manager.get_agent_status("alice").state is AgentState.IDLE
        with pytest.raises(StateError, match="is cancelled already"):
            await manager.cancel_task(tasks[0])

    play(scenario, latency_seconds=60)


@pytest.mark.parametrize("what", ["stop", "cancel"])
def test_a_stop_or_cancel_that_its_caller_gives_up_did_not_happen(what: str) -> None:
    @tool
    async def lingering() -> str:
        """Take its time to end."""
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(50)
            raise
        return "ended"

    def say(request: ModelRequest) -> Answer | str:
        return call("lingering") if round_of(request) == 0 else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(10)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await (manager.stop_agent("alice") if what == "stop" else manager.cancel_task(task))
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert manager.get_agent_status("alice").state is AgentState.IDLE

    play(scenario, say, tools=[lingering])


def test_a_failed_task_is_retried_at_the_step_where_it_failed() -> None:
    asked: list[str] = []

    def say(request: ModelRequest) -> Answer | str:
        asked.append(request.step_id.rpartition(".")[2])
        if round_of(request) == 0:
            return call("list_agents")
        if len(asked) == 2:
            raise ValueError("the client is broken")
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        failed = await manager.wait_task(await manager.send_task("alice", "go"))
        assert failed.state is TaskState.FAILED
        assert failed.error is not None
        assert "the client is broken" in failed.error.message
        await manager.retry_task(failed)
        assert (await manager.wait_task(failed)).state is TaskState.COMPLETED
        assert asked == ["1", "3", "3"]
        with pytest.raises(StateError, match="Only a failed, cancelled or dead task"):
            await manager.retry_task(failed)

    play(scenario, say)

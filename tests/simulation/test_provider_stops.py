"""Agents that are stopped for too many failures: faults of their provider, and others."""

from __future__ import annotations

import asyncio

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.mail import USER
from ai_whisperer.errors import (
    ModelError,
    ModelRefusedError,
    ModelServerError,
    ModelUnavailableError,
)
from ai_whisperer.models.base import ModelRequest
from tests.simulation.provider import DOWN, Provider, ended, now
from tests.simulation.stage import call, play, play_over_crash, prompt_of, until


def bad_until(up_at: float, error: type[ModelError] = ModelServerError) -> Provider:
    return Provider(up_at=up_at, error=error)


IMPATIENT = {"retry": {"max_attempts": 1}, "supervision": {"max_failures": 3}}


async def fail_thrice(manager: AsyncAgentSessionManager) -> None:
    await manager.create_agent("a", IMPATIENT)
    for number in range(3):
        await manager.send_task("a", "go", task_id=f"t{number}")
    await until(lambda: manager.get_agent_status("a").state is AgentState.STOPPED)


def test_an_agent_that_is_stopped_for_faults_of_its_provider_starts_again_by_itself() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await fail_thrice(manager)
        reason = manager.get_agent_status("a").reason
        assert "The cause is the provider, so the agent starts again by itself at 2027-01-15" in reason
        (failing,) = [note for note in await manager.notifications(limit=1000) if note.name == "agent.failing"]
        later = await manager.send_task("a", "later")
        assert (await manager.wait_task(later)).state is TaskState.COMPLETED
        assert 300 <= now() <= 460
        assert 300 <= failing.params["restartAt"] - failing.at <= 450
        (mail,) = await manager.mailbox(USER)
        assert (mail.sender, mail.subject) == ("a", "a was stopped: too many of its tasks failed")
        assert mail.body == reason

    play(scenario, bad_until(100))


def test_an_outage_that_is_not_over_in_time_gives_the_agent_a_rest_and_the_user_one_mail() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        tasks = [await manager.send_task("a", f"{number}") for number in range(8)]
        await manager.wait_task(tasks[0])
        await asyncio.sleep(1)
        assert "starts again by itself at" in manager.get_agent_status("a").reason
        finished = await ended(manager, *tasks)
        failed = [task for task in finished if task.state is TaskState.FAILED]
        assert len(failed) == 3, "two hours, in which it rests longer and longer"
        assert {task.state for task in finished[3:]} == {TaskState.COMPLETED}
        (mail,) = await manager.mailbox(USER)
        assert mail.subject == "a was stopped: its provider is down"
        assert DOWN in mail.body

    play(scenario, Provider(up_at=2 * 3600.0))


def test_what_a_person_had_to_change_before_an_outage_does_not_end_the_rest_for_good() -> None:
    errors: list[ModelError] = [ModelRefusedError("No."), ModelUnavailableError(DOWN)]

    def say(_: ModelRequest) -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_outage_seconds": 0.5}})
        tasks = [await manager.send_task("a", f"{number}") for number in range(3)]
        assert [task.state for task in await ended(manager, *tasks)] == [
            TaskState.FAILED,
            TaskState.FAILED,
            TaskState.COMPLETED,
        ]

    play(scenario, say)


def test_a_rest_for_an_outage_that_the_process_did_not_live_to_begin_begins_at_the_start() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        task = await manager.send_task("a", "go", task_id="t")
        await manager.wait_task(task)
        await asyncio.sleep(1e6)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert (await manager.get_task("t")).state is TaskState.FAILED
        assert not manager.get_agent_status("a").started
        await until(lambda: manager.get_agent_status("a").started)

    play_over_crash(before, after, Provider(up_at=1e9), crash_after_seconds=1_850)


def test_the_rest_grows_with_each_stop_in_a_row_and_the_user_is_told_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {**IMPATIENT, "schedule": [{"interval_seconds": 10, "prompt": "look"}]})
        await asyncio.sleep(6 * 3600)
        failing = [note for note in await manager.notifications(limit=100_000) if note.name == "agent.failing"]
        rests = [note.params["restartAt"] - note.at for note in failing]
        assert len(rests) > 5
        assert 300 <= rests[0] <= 450
        assert 600 <= rests[1] <= 900
        assert all(3_600 <= rest <= 5_400 for rest in rests[4:])
        assert len(await manager.mailbox(USER)) == 1

    play(scenario, bad_until(1e9))


def test_a_start_that_is_due_after_a_crash_of_the_process_happens() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await fail_thrice(manager)
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert manager.get_agent_status("a").state is AgentState.STOPPED
        await until(lambda: manager.get_agent_status("a").started)
        assert 250 <= now() <= 410

    play_over_crash(before, after, bad_until(30), crash_after_seconds=50)


def test_an_agent_that_a_person_starts_or_stops_meanwhile_is_left_alone() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await fail_thrice(manager)
        await manager.start_agent("a")
        await manager.stop_agent("a", reason="enough")
        await asyncio.sleep(3600)
        assert not manager.get_agent_status("a").started

    play(scenario, bad_until(30))


def test_of_the_next_stop_after_a_person_has_started_the_agent_the_user_is_told_again() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await fail_thrice(manager)
        await manager.start_agent("a")
        for number in range(3):
            await manager.wait_task(await manager.send_task("a", "go", task_id=f"again{number}"))
        await asyncio.sleep(1)
        assert not manager.get_agent_status("a").started
        assert len(await manager.mailbox(USER)) == 2

    play(scenario, bad_until(1e9))


def test_an_agent_that_a_person_stops_while_it_is_being_stopped_for_failures_stays_stopped() -> None:
    @tool
    async def hold() -> str:
        """Do not let go at once."""
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.sleep(20)
        return ""

    def say(request: ModelRequest) -> Answer | str:
        if "hold" in prompt_of(request):
            return call("hold")
        raise ModelServerError

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {**IMPATIENT, "limits": {"max_concurrent_tasks": 2}})
        await manager.send_task("a", "hold on")
        await asyncio.sleep(5)
        for number in range(3):
            await manager.wait_task(await manager.send_task("a", "go", task_id=f"t{number}"))
        await asyncio.sleep(1)
        assert manager.get_agent_status("a").started, "it is being stopped"
        assert not (await manager.stop_agent("a", reason="enough")).started
        await asyncio.sleep(7200)
        assert not manager.get_agent_status("a").started

    play(scenario, say, tools=[hold])


def test_an_agent_that_a_person_stops_once_more_stays_stopped() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await fail_thrice(manager)
        await manager.stop_agent("a")
        await asyncio.sleep(3600)
        assert not manager.get_agent_status("a").started

    play(scenario, bad_until(30))


def test_an_agent_that_is_stopped_for_what_a_person_has_to_change_tells_the_user_by_mail() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await fail_thrice(manager)
        await asyncio.sleep(7200)
        status = manager.get_agent_status("a")
        assert not status.started
        (mail,) = await manager.mailbox(USER)
        assert mail.body == status.reason
        assert "then start the agent" in mail.body

    play(scenario, bad_until(1e9, ModelRefusedError))


def test_an_agent_whose_place_was_taken_meanwhile_starts_when_there_is_one_again() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_started_agents": 1})
        await fail_thrice(manager)
        await manager.create_agent("b")
        await asyncio.sleep(3600)
        assert not manager.get_agent_status("a").started
        await manager.stop_agent("b")
        await asyncio.sleep(61)
        assert manager.get_agent_status("a").started

    play(scenario, bad_until(30))

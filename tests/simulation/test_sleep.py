"""Sleeping and waking, on virtual time."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import InvalidInputError, StateError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, calls, play, play_over_crash, prompt_of, round_of, until


def test_a_sleeper_wakes_when_its_time_has_come_and_is_told_so() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        status = await manager.sleep_agent("alice", duration_seconds=3600)
        assert (status.state, status.sleeping_until) == (AgentState.SLEEPING, 1_800_000_000.0 + 3600)
        task = await manager.send_task("alice", "wait for me")
        await asyncio.sleep(3599)
        assert manager.get_agent_status("alice").state is AgentState.SLEEPING
        assert (await manager.wait_task(task)).result is not None
        prompts = [each.prompt for each in await manager.list_tasks("alice")]
        assert "You were asleep and have been woken. Reason: the sleep time is over" in prompts

    play(scenario)


def test_a_busy_agent_sleeps_when_its_work_is_done() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        first = await manager.send_task("alice", "first")
        second = await manager.send_task("alice", "second")
        await manager.sleep_agent("alice", duration_seconds=1000)
        assert manager.get_agent_status("alice").state is AgentState.ACTIVE
        await manager.wait_task(first)
        assert manager.get_agent_status("alice").state is AgentState.SLEEPING
        await asyncio.sleep(500)
        assert not (await manager.get_task(second.id)).state.ended
        await manager.wait_task(second)

    play(scenario, latency_seconds=10)


@pytest.mark.parametrize(
    ("priority", "events", "wakes"),
    [("normal", [], False), ("high", [], True), ("urgent", [], True), ("low", ["mail_received"], True)],
)
def test_which_mail_wakes_a_sleeper(priority: str, events: list[str], wakes: bool) -> None:  # noqa: FBT001
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.sleep_agent("alice", duration_seconds=1000, wake_events=events)
        await manager.send_mail("alice", "Psst", "x", priority=priority)
        await asyncio.sleep(100)
        assert (manager.get_agent_status("alice").state is AgentState.IDLE) is wakes
        assert ((await manager.mailbox("alice"))[0].state == "read") is wakes

    play(scenario)


def test_waking_takes_a_reason_which_the_agent_is_told() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.sleep_agent("alice", wake_events=["alert"])
        await manager.wake_agent("alice", reason="look at this")
        await until(lambda: manager.get_agent_status("alice").state is AgentState.IDLE)
        assert "look at this" in (await manager.list_tasks("alice"))[0].prompt
        with pytest.raises(StateError, match="Cannot wake"):
            await manager.wake_agent("alice")

    play(scenario)


def test_a_new_sleep_replaces_the_old_one() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.sleep_agent("alice", duration_seconds=10)
        await manager.sleep_agent("alice", duration_seconds=1000)
        await asyncio.sleep(500)
        assert manager.get_agent_status("alice").state is AgentState.SLEEPING
        await manager.stop_agent("alice")
        await asyncio.sleep(1000)
        assert manager.get_agent_status("alice").state is AgentState.STOPPED
        assert await manager.list_tasks("alice") == []

    play(scenario)


@pytest.mark.parametrize("down_for_seconds", [0.0, 100_000.0])
def test_a_sleep_survives_a_crash_and_an_overdue_wake_up_fires_at_start(down_for_seconds: float) -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.sleep_agent("alice", duration_seconds=1000)
        await manager.create_agent("bob")
        await manager.sleep_agent("bob", wake_events=["alert"])

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert manager.get_agent_status("bob").state is AgentState.SLEEPING
        assert manager.get_agent_status("bob").wake_events == ("alert",)
        if not down_for_seconds:
            assert manager.get_agent_status("alice").state is AgentState.SLEEPING
            await asyncio.sleep(995)
            assert manager.get_agent_status("alice").state is AgentState.SLEEPING
        await asyncio.sleep(10)
        assert manager.get_agent_status("alice").state is AgentState.IDLE
        assert len(await manager.list_tasks("alice")) == 1

    play_over_crash(before, after, crash_after_seconds=0.4, down_for_seconds=down_for_seconds)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"duration_seconds": 0},
        {"duration_seconds": -5},
        {"duration_seconds": 1e12},
        {"duration_seconds": float("nan")},
        {"until": 5.0},
        {"until": 1e18},
    ],
)
def test_a_sleep_that_makes_no_sense_is_refused_and_nothing_changes(arguments: dict[str, float]) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        before = len(await manager.notifications())
        with pytest.raises(InvalidInputError):
            await manager.sleep_agent("alice", **arguments)  # type: ignore[arg-type]
        assert manager.get_agent_status("alice").state is AgentState.IDLE
        assert len(await manager.notifications()) == before

    play(scenario)


def test_an_agent_does_not_sleep_over_what_would_have_woken_it() -> None:
    def say(request: ModelRequest) -> Answer | str:
        return call("sleep", wake_events=["alert"]) if round_of(request) == 0 else prompt_of(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"subscribes": ["alert"]})
        await manager.send_task("alice", "look around")
        await asyncio.sleep(0.5)
        await manager.broadcast_event("alert", {"number": 1})
        await manager.send_mail("alice", "Now", "Please.", priority="urgent")
        await manager.send_mail("alice", "Later", "If you have time.")
        await until(lambda: manager.get_agent_status("alice").state is AgentState.SLEEPING)
        assert [task.kind for task in await manager.list_tasks("alice")] == ["mailbox_message", "event", "user_prompt"]
        assert manager.get_agent_status("alice").unread_mail == 1

    play(scenario, say)


def test_urgent_mail_that_goes_back_to_the_mailbox_is_not_slept_over() -> None:
    @tool
    async def dawdle() -> str:
        """Take a long time."""
        await asyncio.sleep(1000)
        return ""

    def say(request: ModelRequest) -> Answer | str:
        if "You have mail" in prompt_of(request):
            return "handled"
        return calls(("check_mail", {}), ("sleep", {"wake_events": ["never"]}), ("dawdle", {}))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "look")
        await asyncio.sleep(0.5)
        await manager.send_mail("alice", "Now", "Please.", priority="urgent")
        await asyncio.sleep(10)
        await manager.cancel_task(task)

        async def is_so() -> bool:
            return (await manager.mailbox("alice"))[0].state == "read"

        await until(is_so)

    play(scenario, say, tools=[dawdle])

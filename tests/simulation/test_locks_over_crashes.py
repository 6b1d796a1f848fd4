"""Locks over the death of the process: leases run on, tokens rise on, nobody is forgotten."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.models.base import ModelRequest
from tests.effort import spread
from tests.simulation.stage import play_over_crash, prompt_of, until
from tests.simulation.test_locks import (
    acquire,
    create,
    final_of,
    holders,
    nap,
    now,
    release,
    rest,
    rounds,
    team,
    told_of_locks,
)

ASK = {"to_agent": "user", "subject": "May I?", "body": "?", "timeout_seconds": 5000}

CONTEST = team(
    a=rounds(acquire(ttl_seconds=300), rest(4), release(), "done"),
    b=rounds(acquire(ttl_seconds=300), acquire(ttl_seconds=300), "done"),
    c=rounds([acquire(ttl_seconds=300), acquire("gate", ttl_seconds=300)], rest(2), "done"),
    d=rounds(acquire(ttl_seconds=300), "a part\n[CONTINUE]"),
    e=rounds(acquire("gate", ttl_seconds=300), acquire(ttl_seconds=300, wait_seconds=5), "done"),
)


def test_a_lock_that_was_free_over_a_restart_goes_on_with_its_tokens() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        for _ in range(3):
            await manager.run_task("a", "go")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert manager.list_locks() == []
        assert "token 4" in await manager.run_task("a", "go")

    play_over_crash(before, after, rounds(acquire()), crash_after_seconds=20)


def test_a_lease_that_ran_out_while_the_process_was_down_ends_at_the_start() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        await manager.send_task("a", "go")
        await asyncio.sleep(3)
        await manager.send_task("b", "go", task_id="waiter")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert "token 2" in await final_of(manager, "waiter")
        assert now() < 5
        assert ("lock.expired", "a", 1) in await told_of_locks(manager)

    say = team(a=rounds(acquire(ttl_seconds=50), rest(1000), "done"), b=rounds(acquire(wait_seconds=500)))
    play_over_crash(before, after, say, crash_after_seconds=20, down_for_seconds=100, tools=[nap])


def test_a_wait_and_a_lease_that_are_not_over_go_on_after_a_restart() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        await manager.pause_agent("b")
        await manager.send_task("a", "go")
        await asyncio.sleep(3)
        await manager.resume_agent("b")
        await manager.send_task("b", "go", task_id="waiter")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert holders(manager) == [("door", "a", 1)]
        assert manager.get_agent_status("b").waiting_for == ("lock:door",)
        assert "token 2" in await final_of(manager, "waiter")
        assert 65 < now() < 75, "a was paused by the process's end only, and its lease ran on"

    say = team(a=rounds(acquire(ttl_seconds=100), ("send_mail_with_switch", ASK), "done"), b=rounds(acquire()))
    play_over_crash(before, after, say, crash_after_seconds=20, down_for_seconds=10)


async def assert_one_holder_at_a_time(manager: AsyncAgentSessionManager) -> None:
    """Judge by the log: a lock is acquired only when it is free, with the next token, and every wait has an end."""
    held: dict[str, str] = {}
    tokens: dict[str, int] = {}
    waiting: set[str] = set()
    for note in await manager.notifications(limit=100_000):
        params = note.params
        name = str(params.get("name"))
        match note.name:
            case "lock.acquired":
                assert name not in held, f"{params} while {held[name]} has it"
                held[name] = params["agentId"]
                assert params["token"] == max(tokens.values(), default=0) + 1
                tokens[name] = params["token"]
            case "lock.renewed":
                assert (held[name], tokens[name]) == (params["agentId"], params["token"])
            case "lock.released" | "lock.expired":
                assert held.pop(name) == params["agentId"]
            case "lock.waiting":
                assert name in held
                waiting.add(params["stepId"])
            case "lock.wait_ended":
                waiting.remove(params["stepId"])
    assert (held, waiting) == ({}, set())


@pytest.mark.parametrize("crash_after", [0.1 + 0.37 * step for step in spread(59, usual=20, first=0)])
def test_over_a_crash_at_any_time_there_is_one_holder_and_nobody_is_forgotten(crash_after: float) -> None:
    def say(request: ModelRequest) -> Answer | str:
        return "the rest" if "Continue" in prompt_of(request) else CONTEST(request)

    async def before(manager: AsyncAgentSessionManager) -> None:
        for name in "abcde":
            await manager.create_agent(name)
            await manager.send_task(name, "go", task_id=name)
            await asyncio.sleep(0.4)
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        for name in manager.active_sessions:
            if await manager.list_tasks(name):
                assert (await manager.wait_task(name)).state is TaskState.COMPLETED
        assert now() < 60
        await until(lambda: all(status.state is AgentState.IDLE for status in manager.list_agents()))
        await assert_one_holder_at_a_time(manager)
        assert holders(manager) == []
        assert (await manager._session.kernel.store.load("default")).waits == ()

    play_over_crash(before, after, say, crash_after_seconds=crash_after, tools=[nap], seed=int(crash_after * 100))

"""A session that was closed is over: what ended in its last moments sets off nothing in the one that follows it."""

from __future__ import annotations

import asyncio
from typing import Any

from ai_whisperer import AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.simulation.loop import VirtualClock, simulate
from ai_whisperer.store.sqlite import SqliteStore
from tests.simulation.stage import Say, Scenario, call, opened, prompt_of, round_of, until


@tool(idempotent=True)
async def work_on(seconds: float) -> str:
    """Let time pass."""
    await asyncio.sleep(seconds)
    return "done"


def play_over_close(before: Scenario, after: Scenario, say: Say, **settings: Any) -> None:
    """Run a scenario, close its session cleanly, and run another one on the same store, in the same process."""

    async def main() -> None:
        store = SqliteStore.in_memory()
        clock = VirtualClock()
        first = opened(store, say, clock=clock, **settings)
        await first.open()
        await before(first)
        await first.close(grace_seconds=10)
        async with opened(store, say, clock=clock, **settings) as second:
            await after(second)
        await store.close()

    simulate(main())


async def notes(manager: AsyncAgentSessionManager, name: str) -> list[dict[str, Any]]:
    return [note.params for note in await manager.notifications(limit=100_000) if note.name == name]


def test_a_lease_that_was_given_while_the_session_closed_ends_once() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            ttl_seconds = 500 if prompt_of(request) == "first" else 20
            return call("acquire_lock", name="door", ttl_seconds=ttl_seconds, wait_seconds=5000)
        return call("work_on", seconds=3000) if prompt_of(request) == "second" and round_of(request) == 1 else "done"

    async def before(manager: AsyncAgentSessionManager) -> None:
        for agent_id in ("a", "b"):
            await manager.create_agent(agent_id)
        await manager.send_task("a", "first")
        await asyncio.sleep(0.5)
        await manager.send_task("b", "second")
        await until(lambda: manager.get_agent_status("b").waiting_for != ())

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert [lock.agent_id for lock in manager.list_locks()] == ["b"]
        await asyncio.sleep(100)
        assert len(await notes(manager, "lock.expired")) == 1
        assert manager.list_locks() == []

    play_over_close(before, after, say, latency_seconds=3, tools=[work_on])


def test_a_task_that_was_continued_while_the_session_closed_fails_once_at_its_deadline() -> None:
    def say(request: ModelRequest) -> Answer | str:
        return "one part\n[CONTINUE]" if prompt_of(request) == "go" else call("work_on", seconds=1000)

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.send_task("a", "go", task_id="t", timeout_seconds=60)
        await asyncio.sleep(1)

    async def after(manager: AsyncAgentSessionManager) -> None:
        await asyncio.sleep(200)
        assert (await manager.get_task("t")).state is TaskState.CONTINUED
        assert [error["taskId"] for error in await notes(manager, "async.task.error")] == ["t~1"]
        assert manager.failure is None

    play_over_close(before, after, say, latency_seconds=3, tools=[work_on])


def test_who_was_behind_in_a_session_that_was_deleted_reads_nothing_of_another_with_its_id() -> None:
    async def main() -> None:
        store, clock = SqliteStore.in_memory(), VirtualClock()
        first = opened(store, lambda _: "done", clock=clock)
        await first.open()
        await first.create_agent("ann")
        behind, in_time = first.subscribe(after=0), first.subscribe(after=0)
        first._session.kernel.log.forget()  # all that follows is read from the store
        await first.close(grace_seconds=0)
        kept = [note.seq async for note in in_time]
        assert kept == [note.seq for note in await store.notifications(first.session_id, after=0, limit=99)]
        await store.delete_session(first.session_id)
        await asyncio.sleep(1)
        async with opened(store, lambda _: "done", clock=clock) as other:
            for number in range(len(kept) + 1):
                await other.create_agent(f"other-{number}")
            assert [note async for note in behind] == []
        await store.close()

    simulate(main())

"""Guarded blocks: only the holder of the lock gets in, and the lease does not pass on before it is out again."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from ai_whisperer import AsyncAgentSessionManager, ToolContext, tool
from ai_whisperer.errors import LockNotHeldError
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.tools.function import CancelSignal
from tests.simulation.stage import play
from tests.simulation.test_locks import (
    Call,
    acquire,
    create,
    final_of,
    holders,
    nap,
    now,
    rest,
    rounds,
    team,
    told_of_locks,
)


@tool
async def write(context: ToolContext, token: int, seconds: float = 0.0, lock: str = "door") -> str:
    """Do something that takes a while, guarded."""
    with context.guard(lock, token):
        await asyncio.sleep(seconds)
        return f"written at {asyncio.get_running_loop().time():g}"


def written(token: int, **given: object) -> tuple[str, dict[str, object]]:
    return "write", {"token": token, **given}


async def ended_at(manager: AsyncAgentSessionManager, name: str) -> float:
    """When a lease ended so, in seconds after the beginning."""
    note = next(note for note in await manager.notifications(limit=1000) if note.name == name)
    return round(note.at - 1_800_000_000.0, 3)


def test_the_holder_writes_with_its_token() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        assert "written at" in await manager.run_task("a", "go")

    play(scenario, rounds(acquire(), written(1)), tools=[write])


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (written(2), "holds lock 'door' with token 1, not with token 2: that was never its token"),
        (written(1, lock="gate"), "This task does not hold lock 'gate': it never did"),
        (written(0), "The token must be the whole number above 0"),
        (written(1, lock=""), "The lock needs a name"),
    ],
)
def test_nobody_writes_with_another_token_or_without_the_lock(
    call: tuple[str, dict[str, object]], problem: str
) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        told = await manager.run_task("a", "go")
        assert problem in told
        assert "written" not in told

    play(scenario, rounds(acquire(), call), tools=[write])


def test_another_task_cannot_use_the_token_of_the_holder() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        assert "This task does not hold lock 'door'" in await manager.run_task("b", "go")
        await manager.wait_task(holder)

    play(scenario, team(a=rounds(acquire(), rest(20), "done"), b=rounds(written(1))), tools=[write, nap])


def test_a_holder_whose_lease_is_over_is_refused_and_told_who_has_the_lock() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(3)
        await manager.send_task("b", "go")
        told = await final_of(manager, holder)
        assert "the lease of a, with token 1, ran out at 2027-01-15 08:00:11 UTC. b holds it now with token 2." in told
        assert "written" not in told

    say = team(a=rounds(acquire(ttl_seconds=10), rest(20), written(1)), b=rounds(acquire(), rest(50), "done"))
    play(scenario, say, tools=[write, nap])


def test_one_who_lost_the_lock_and_got_it_back_cannot_use_its_old_token() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        told = await manager.run_task("a", "go")
        assert "with token 2, not with token 1: the lease of a, with token 1, ran out" in told
        assert "look again, then use token 2" in told

    say = rounds(acquire(ttl_seconds=10), rest(20), acquire(), written(1))
    play(scenario, say, tools=[write, nap])


def test_a_lease_that_runs_out_within_the_block_passes_on_after_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(3)
        waiter = await manager.send_task("b", "go")
        await asyncio.sleep(13)
        assert holders(manager) == [("door", "a", 1)], "its time is over, but its block is not"
        assert "written at 22" in await final_of(manager, holder)
        await manager.wait_task(waiter)
        assert await ended_at(manager, "lock.expired") == 22.0

    say = team(a=rounds(acquire(ttl_seconds=10), written(1, seconds=20)), b=rounds(acquire(), "done"))
    play(scenario, say, tools=[write])


def test_who_breaks_a_lock_waits_for_the_block_and_no_longer() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        await manager.break_lock("door", "enough")
        assert round(now(), 3) == 22.0
        assert "written at 22" in await final_of(manager, holder)

    play(scenario, rounds(acquire(), written(1, seconds=20)), tools=[write])


@pytest.mark.parametrize("how", ["break", "release"])
def test_a_lock_is_taken_from_a_holder_that_does_one_guarded_block_right_after_the_other(how: str) -> None:
    @tool
    async def write_on(context: ToolContext, token: int) -> str:
        """Do many guarded blocks without a moment between them."""
        for _ in range(100):
            with context.guard("door", token):
                await asyncio.sleep(10)
        return "never refused"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(15)
        if how == "break":
            await manager.break_lock("door", "enough")
        else:
            await manager.release_lock("door", 1)
        assert round(now(), 3) == 22.0, "when the second block had ended"
        assert "never refused" not in await final_of(manager, holder)
        assert now() < 30
        assert holders(manager) == []

    play(scenario, rounds(acquire(ttl_seconds=5000), ("write_on", {"token": 1})), tools=[write_on])


def test_one_who_gives_up_waiting_for_a_block_changes_nothing() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await manager.break_lock("door", "enough")
        assert "written at 22" in await final_of(manager, holder)
        assert "lock.broken" not in [note.name for note in await manager.notifications(limit=1000)]

    play(scenario, rounds(acquire(), written(1, seconds=20)), tools=[write])


def test_a_block_that_takes_too_long_loses_the_lock_and_is_told_so() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(3)
        waiter = await manager.send_task("b", "go")
        await manager.wait_task(waiter)
        assert await ended_at(manager, "lock.expired") == 32.0, "it began at 2, and 30 seconds are the most"
        told = await final_of(manager, holder)
        assert "The guarded block took more than 30 seconds and lost the lock meanwhile" in told
        assert "written at 5" not in told

    say = team(a=rounds(acquire(ttl_seconds=10), written(1, seconds=50)), b=rounds(acquire(), "done"))
    play(scenario, say, tools=[write])


def test_a_long_block_within_its_lease_loses_nothing() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        assert "written at 52" in await manager.run_task("a", "go")

    play(scenario, rounds(acquire(ttl_seconds=500), written(1, seconds=50)), tools=[write])


def test_two_blocks_of_one_task_keep_the_lease_until_both_are_over() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        await manager.run_task("a", "go")
        assert await ended_at(manager, "lock.expired") == 17.0

    say = rounds(acquire(ttl_seconds=5), [written(1, seconds=10), written(1, seconds=15)])
    play(scenario, say, tools=[write])


def test_a_block_that_is_cancelled_lets_go() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        await manager.cancel_task(holder)
        await asyncio.sleep(1)
        assert manager.list_locks() == []
        assert (await told_of_locks(manager))[-1] == ("lock.released", "a", 1)
        assert (await manager.acquire_lock("door")).token == 2

    play(scenario, rounds(acquire(ttl_seconds=500), written(1, seconds=20)), tools=[write])


def test_what_the_block_raises_is_what_comes_out_of_it() -> None:
    @tool
    async def fail(context: ToolContext) -> str:
        """Fail."""
        with context.guard("door", 1):
            raise ValueError("the disk is full")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        assert "ValueError: the disk is full" in await manager.run_task("a", "go")

    play(scenario, rounds(acquire(), ("fail", {})), tools=[fail])


def test_a_call_outside_a_session_holds_no_lock() -> None:
    context = ToolContext(session_id="s", agent_id="a", task_id="t", step_id="t~1", cancelled=CancelSignal())
    with pytest.raises(LockNotHeldError, match="belongs to no task"), context.guard("door", 1):
        pytest.fail("nobody may get in here")


def test_a_tool_in_a_thread_is_guarded_too() -> None:
    inside, go_on = threading.Event(), threading.Event()
    threads: list[int] = []

    @tool
    def write_in_thread(context: ToolContext, token: int) -> str:
        """Write in a thread."""
        with context.guard("door", token):
            threads.append(threading.get_ident())
            inside.set()
            go_on.wait(20)
        return "written"

    async def main() -> None:
        say = rounds(acquire(), ("write_in_thread", {"token": 2}), ("write_in_thread", {"token": 1}))
        manager = AsyncAgentSessionManager(
            model_factory=lambda _: FunctionModel(say), tools=[write_in_thread], templates=()
        )
        async with manager, asyncio.timeout(20):
            await manager.create_agent("a")
            task = await manager.send_task("a", "go")
            await asyncio.to_thread(inside.wait, 20)
            breaking = asyncio.ensure_future(manager.break_lock("door", "enough"))
            await asyncio.sleep(0)
            await manager.flushed()
            assert not breaking.done()
            go_on.set()
            await breaking
            told = await final_of(manager, task)
            assert "not with token 2" in told
            assert told.endswith("written")
        assert threads != [threading.get_ident()]
        assert len(threads) == 1

    asyncio.run(main())


def test_the_file_tools_write_only_while_the_lock_is_held(tmp_path: Path) -> None:
    async def main() -> None:
        @tool
        async def lose_the_lock() -> str:
            """Let a person break the lock."""
            await manager.break_lock("door", "enough")
            return "lost"

        def put(text: str) -> Call:
            return "write_file", {"path": "note.txt", "content": text, "lock": "door", "token": 1}

        say = rounds(acquire(), put("first"), ("lose_the_lock", {}), put("late"))
        manager = AsyncAgentSessionManager(
            work=tmp_path, model_factory=lambda _: FunctionModel(say), tools=[lose_the_lock], templates=()
        )
        async with manager, asyncio.timeout(20):
            await manager.create_agent("a", {"tools": ["acquire_lock", "write_file", "lose_the_lock"]})
            told = await manager.run_task("a", "go")
        assert "user broke the lease of a, with token 1" in told

    asyncio.run(main())
    assert [path.read_text() for path in tmp_path.rglob("note.txt")] == ["first"]

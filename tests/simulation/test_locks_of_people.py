"""Locks that people and programs take: in the same queue as agents, renewed and released by their token, broken."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.errors import ClosedError, InvalidInputError, LockHeldError, LockNotHeldError
from tests.simulation.stage import play, play_over_crash
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

LOCK_TOOLS = ["acquire_lock", "renew_lock", "release_lock", "list_locks"]


def held_by(manager: AsyncAgentSessionManager) -> list[tuple[str, str | None, int]]:
    return [(lock.name, lock.holder, lock.token) for lock in manager.list_locks()]


async def settled() -> None:
    """Let what was begun go as far as it can."""
    await asyncio.sleep(1)


def test_a_person_takes_renews_and_releases_a_lock_by_its_token() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        lock = await manager.acquire_lock("door", ttl_seconds=10)
        assert (lock.holder, lock.token, lock.task_id, lock.agent_id) == ("user", 1, None, None)
        await asyncio.sleep(8)
        renewed = await manager.renew_lock("door", lock.token, 10)
        assert (renewed.token, renewed.expires_at) == (1, manager._session.kernel.clock.now() + 10)
        await asyncio.sleep(8)
        assert held_by(manager) == [("door", "user", 1)]
        assert (await manager.release_lock("door", lock.token)).holder == "user"
        assert manager.list_locks() == []
        assert [name for name, _, _ in await told_of_locks(manager)] == [
            "lock.acquired",
            "lock.renewed",
            "lock.released",
        ]

    play(scenario)


def test_a_lock_that_is_held_is_refused_at_once_to_one_who_will_not_wait() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.acquire_lock("door", holder="nightly backup")
        with pytest.raises(LockHeldError, match="held by nightly backup"):
            await manager.acquire_lock("door")
        assert [name for name, _, _ in await told_of_locks(manager)] == ["lock.acquired"]

    play(scenario)


def test_the_same_person_does_not_get_a_lock_twice() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.acquire_lock("door", holder="me")
        with pytest.raises(LockHeldError):
            await manager.acquire_lock("door", holder="me")

    play(scenario)


def test_people_and_agents_stand_in_one_queue_in_the_order_of_arrival() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        first = await manager.acquire_lock("door", ttl_seconds=100)
        one = await manager.send_task("a", "go")
        await settled()
        await settled()
        person = asyncio.ensure_future(manager.acquire_lock("door", wait_seconds=100, holder="ann"))
        await settled()
        other = await manager.send_task("b", "go")
        await settled()
        await settled()
        (lock,) = manager.list_locks()
        assert [each.waiter for each in lock.waiting] == ["a", "ann", "b"]
        assert [each.task_id for each in lock.waiting] == [one.id, None, other.id]
        await manager.release_lock("door", first.token)
        taken = await person
        assert (taken.holder, taken.token) == ("ann", 3)
        await manager.release_lock("door", taken.token)
        assert "token 4" in await final_of(manager, other)
        assert [(name, token) for name, _, token in await told_of_locks(manager) if name == "lock.acquired"] == [
            ("lock.acquired", number) for number in (1, 2, 3, 4)
        ]

    play(scenario, rounds(acquire(), rest(5), release()), tools=[nap])


def test_a_person_who_waited_too_long_is_told_who_still_has_the_lock() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.acquire_lock("door", ttl_seconds=100, holder="ann")
        with pytest.raises(LockHeldError, match="after 10 seconds lock 'door' is still held by ann"):
            await manager.acquire_lock("door", wait_seconds=10)
        assert now() == 10
        assert (await told_of_locks(manager))[-1] == ("lock.wait_ended", None, "timed_out")
        assert manager.list_locks()[0].waiting == ()

    play(scenario)


def test_one_who_gives_up_waiting_is_passed_over() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        first = await manager.acquire_lock("door", ttl_seconds=100)
        gone = asyncio.ensure_future(manager.acquire_lock("door", wait_seconds=50))
        await settled()
        stays = asyncio.ensure_future(manager.acquire_lock("door", wait_seconds=50, holder="ann"))
        await settled()
        gone.cancel()
        await asyncio.wait([gone])
        await manager.release_lock("door", first.token)
        assert (await stays).token == 2
        assert ("lock.wait_ended", None, "abandoned") in await told_of_locks(manager)

    play(scenario)


@pytest.mark.parametrize("seed", range(20))
def test_one_who_leaves_at_the_moment_at_which_it_gets_the_lock_does_not_keep_it(seed: int) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        first = await manager.acquire_lock("door", ttl_seconds=100)
        gone = asyncio.ensure_future(manager.acquire_lock("door", wait_seconds=50))
        await settled()
        freed = asyncio.ensure_future(manager.release_lock("door", first.token))
        for _ in range(seed % 5):
            await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone, freed])
        await settled()
        if gone.cancelled():
            assert manager.list_locks() == []
        else:
            assert held_by(manager) == [("door", "user", gone.result().token)]

    play(scenario, seed=seed)


def test_a_person_who_waits_or_holds_closes_no_circle() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        lock = await manager.acquire_lock("door", ttl_seconds=100)
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        gate = asyncio.ensure_future(manager.acquire_lock("gate", wait_seconds=100))
        await settled()
        await manager.release_lock("door", lock.token)
        assert "token" in await final_of(manager, holder)
        assert (await gate).holder == "user"

    play(scenario, rounds(acquire("gate"), acquire("door"), "the token is mine"))


def test_an_agent_waits_for_a_lock_that_a_person_holds_and_sees_it_in_the_list() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", tools=LOCK_TOOLS)
        await manager.acquire_lock("door", ttl_seconds=20, holder="ann")
        told = await manager.run_task("a", "go")
        assert '{"name":"door","holder":"ann","token":1,' in told
        assert '"waiting":[]' in told
        assert "You hold lock 'door' with token 2" in told

    play(scenario, rounds(("list_locks", {}), acquire()))


def test_an_agent_renews_its_lock() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", tools=[*LOCK_TOOLS, "nap"])
        told = await manager.run_task("a", "go")
        assert "Lock 'door' with token 1 is yours for 30 seconds more." in told
        assert "lock.expired" not in [name for name, _, _ in await told_of_locks(manager)]

    renewal = ("renew_lock", {"name": "door", "ttl_seconds": 30})
    play(scenario, rounds(acquire(ttl_seconds=10), rest(5), renewal, rest(20)), tools=[nap])


def test_an_agent_that_takes_its_lock_again_keeps_it_for_longer() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        told = await manager.run_task("a", "go")
        assert told.count("You hold lock 'door' with token 1") == 2
        assert "lock.expired" not in [name for name, _, _ in await told_of_locks(manager)]

    play(scenario, rounds(acquire(ttl_seconds=10), rest(5), acquire(ttl_seconds=30), rest(20)), tools=[nap])


def test_an_agent_cannot_renew_what_it_does_not_hold() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", tools=LOCK_TOOLS)
        assert "This task does not hold lock 'door': it never did" in await manager.run_task("a", "go")

    play(scenario, rounds(("renew_lock", {"name": "door"})))


def test_a_broken_lock_goes_to_the_next_and_its_holder_is_told_who_broke_it_and_why() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab", tools=[*LOCK_TOOLS, "nap"])
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        waiter = await manager.send_task("b", "go")
        await asyncio.sleep(3)
        broken = await manager.break_lock("door", "a has gone astray")
        assert (broken.holder, broken.token) == ("a", 1)
        assert held_by(manager) == [("door", "b", 2)]
        note = next(note for note in await manager.notifications(limit=1000) if note.name == "lock.broken")
        assert (note.params["name"], note.params["holder"], note.params["token"]) == ("door", "a", 1)
        assert (note.params["by"], note.params["reason"]) == ("user", "a has gone astray")
        told = await final_of(manager, holder)
        assert (
            told.count("user broke the lease of a, with token 1, at 2027-01-15 08:00:08 UTC ('a has gone astray')") == 2
        )
        await manager.wait_task(waiter)

    say = team(
        a=rounds(acquire(ttl_seconds=500), rest(20), ("renew_lock", {"name": "door"}), release()),
        b=rounds(acquire(), rest(50), "done"),
    )
    play(scenario, say, tools=[nap])


def test_to_break_what_nobody_holds_is_an_error_that_lists_what_is_held() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.acquire_lock("gate")
        with pytest.raises(LockNotHeldError, match=r"Nobody holds lock 'door'.*Held locks: gate"):
            await manager.break_lock("door", "why not")

    play(scenario)


@pytest.mark.parametrize(
    ("how", "became"),
    [
        ("release", "user released it, with token 1, at"),
        ("expiry", "the lease of user, with token 1, ran out at"),
        ("break", r"user broke the lease of user, with token 1, at .* \('mine'\)"),
    ],
)
def test_an_old_token_is_refused_with_what_became_of_it(how: str, became: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        old = await manager.acquire_lock("door", ttl_seconds=5)
        if how == "release":
            await manager.release_lock("door", old.token)
        elif how == "break":
            await manager.break_lock("door", "mine")
        else:
            await asyncio.sleep(6)
        for again in (manager.renew_lock("door", old.token), manager.release_lock("door", old.token)):
            with pytest.raises(LockNotHeldError, match=f"{became}.*Nobody holds it now"):
                await again
        await manager.acquire_lock("door", holder="ann")
        with pytest.raises(LockNotHeldError, match=f"{became}.*ann holds it now with token 2"):
            await manager.renew_lock("door", old.token)

    play(scenario)


def test_a_token_can_be_checked_by_whoever_is_shown_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        lock = await manager.acquire_lock("door", ttl_seconds=5)
        check = manager.check_lock("door", lock.token)
        assert (check.is_current, check.lock, check.ended) == (True, lock, None)
        assert not manager.check_lock("door", lock.token + 1).is_current
        assert not manager.check_lock("gate", lock.token).is_current
        await asyncio.sleep(6)
        check = manager.check_lock("door", lock.token)
        assert (check.is_current, check.lock) == (False, None)
        assert check.ended is not None
        assert (check.ended.ending, check.ended.holder) == ("expired", "user")

    play(scenario)


@pytest.mark.parametrize(
    "given",
    [
        {"name": ""},
        {"name": "x" * 201},
        {"ttl_seconds": 0},
        {"ttl_seconds": float("nan")},
        {"ttl_seconds": "long"},
        {"wait_seconds": -1},
        {"wait_seconds": 8 * 86_400},
        {"holder": " "},
        {"holder": 5},
    ],
)
def test_a_lock_that_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(InvalidInputError):
            await manager.acquire_lock(**{"name": "door", **given})
        assert manager.list_locks() == []

    play(scenario)


def test_a_person_who_waits_when_the_session_is_closed_is_told() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.acquire_lock("door", ttl_seconds=100)
        waiting = asyncio.ensure_future(manager.acquire_lock("door", wait_seconds=50))
        await settled()
        await manager.close()
        with pytest.raises(ClosedError, match="closed before the lock was free"):
            await waiting

    play(scenario)


def test_the_lease_of_a_person_survives_the_death_of_the_process_and_a_wait_does_not() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.acquire_lock("door", ttl_seconds=100, holder="ann")
        await manager.acquire_lock("gate", ttl_seconds=25)
        await manager.acquire_lock("door", wait_seconds=1000, holder="bob")

    async def after(manager: AsyncAgentSessionManager) -> None:
        await settled()
        assert held_by(manager) == [("door", "ann", 1)], "the lease of the gate ran out while the process was down"
        assert ("lock.expired", None, 2) in await told_of_locks(manager)
        assert manager.list_locks()[0].waiting == ()
        await manager.renew_lock("door", 1, 500)
        await asyncio.sleep(300)
        await manager.release_lock("door", 1)
        assert (await manager.acquire_lock("door")).token == 3

    play_over_crash(before, after, crash_after_seconds=20, down_for_seconds=30)


def test_a_task_that_is_cancelled_leaves_its_lock_to_a_person_who_waits() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        waiting = asyncio.ensure_future(manager.acquire_lock("door", wait_seconds=100))
        await settled()
        assert holders(manager) == [("door", "a", 1)]
        await manager.cancel_task(holder)
        assert (await waiting).token == 2

    play(scenario, rounds(acquire(ttl_seconds=500), rest(200)), tools=[nap])

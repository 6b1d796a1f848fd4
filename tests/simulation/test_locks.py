"""Locks: fair leases that end with their holder, by their time, or when they are given back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer, ToolCall
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import calls, play, prompt_of, results_of, round_of

Call = tuple[str, dict[str, object]]


def now() -> float:
    return asyncio.get_running_loop().time()


@tool
async def nap(seconds: float) -> str:
    """Let time pass."""
    await asyncio.sleep(seconds)
    return "rested"


def acquire(name: str = "door", **arguments: object) -> Call:
    return "acquire_lock", {"name": name, **arguments}


def release(name: str = "door") -> Call:
    return "release_lock", {"name": name}


def rest(seconds: float) -> Call:
    return "nap", {"seconds": seconds}


def rounds(*each: Call | list[Call] | str) -> Callable[[ModelRequest], Answer | str]:
    """An agent that does this round by round, a text being its last word; by default it says what it was told."""

    def say(request: ModelRequest) -> Answer | str:
        number = round_of(request)
        if number >= len(each):
            return " | ".join(results_of(request))
        wanted = each[number]
        if isinstance(wanted, str):
            return wanted
        return calls(*wanted) if isinstance(wanted, list) else calls(wanted)

    return say


def team(**members: Callable[[ModelRequest], Answer | str]) -> Callable[[ModelRequest], Answer | str]:
    """Agents of which each does what its function says; a task for agent `b` that says `x` does what `b_x` says."""

    def say(request: ModelRequest) -> Answer | str:
        special = f"{request.agent_id}_{prompt_of(request)}"
        return members[special if special in members else request.agent_id](request)

    return say


async def told_of_locks(manager: AsyncAgentSessionManager) -> list[tuple[Any, ...]]:
    """What the log says about locks: what happened, to which agent, and with which token or outcome."""
    return [
        (note.name, note.params["agentId"], note.params.get("token", note.params.get("outcome")))
        for note in await manager.notifications(limit=100_000)
        if note.name.startswith("lock.")
    ]


async def create(manager: AsyncAgentSessionManager, names: str, **config: object) -> None:
    for name in names:
        await manager.create_agent(name, config or None)


async def final_of(manager: AsyncAgentSessionManager, task: Any) -> str:
    ended = await manager.wait_task(task)
    assert ended.result is not None, ended.error
    return ended.result.final


def holders(manager: AsyncAgentSessionManager) -> list[tuple[str, str | None, int]]:
    return [(lock.name, lock.agent_id, lock.token) for lock in manager.list_locks()]


def test_a_lock_is_given_in_the_order_in_which_it_was_asked_for_with_rising_tokens() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "abcd")
        tasks = []
        for name in "cadb":
            tasks.append(await manager.send_task(name, "go"))
            await asyncio.sleep(3)
        assert holders(manager) == [("door", "c", 1)]
        assert manager.get_agent_status("b").waiting_for == ("lock:door",)
        for task in tasks:
            await manager.wait_task(task)
        assert [(name, who) for name, who, _ in await told_of_locks(manager) if name == "lock.acquired"] == [
            ("lock.acquired", name) for name in "cadb"
        ]
        assert [token for name, _, token in await told_of_locks(manager) if name == "lock.acquired"] == [1, 2, 3, 4]
        assert holders(manager) == []

    say = rounds(acquire(), rest(20), release(), "done")
    play(scenario, say, tools=[nap])


def test_everything_about_a_lock_is_told() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "abc")
        first = await manager.send_task("a", "go")
        await asyncio.sleep(3)
        second = await manager.send_task("b", "go")
        third = await manager.send_task("c", "go")
        for task in (first, second, third):
            await manager.wait_task(task)
        await asyncio.sleep(100)
        assert await told_of_locks(manager) == [
            ("lock.acquired", "a", 1),
            ("lock.waiting", "b", None),
            ("lock.waiting", "c", None),
            ("lock.renewed", "a", 1),
            ("lock.wait_ended", "c", "timed_out"),
            ("lock.released", "a", 1),
            ("lock.acquired", "b", 2),
            ("lock.wait_ended", "b", "acquired"),
            ("lock.expired", "b", 2),
        ]
        notes = {note.name: note.params for note in await manager.notifications(limit=10_000)}
        assert notes["lock.renewed"]["expiresAt"] > notes["lock.waiting"]["deadlineAt"]
        assert notes["lock.waiting"]["holder"] == "a"
        assert notes["lock.wait_ended"]["stepId"].startswith(second.id)
        assert notes["lock.expired"]["name"] == "door"

    say = team(
        a=rounds(acquire(), rest(5), acquire(), rest(20), release(), "done"),
        b=rounds(acquire(ttl_seconds=10), rest(50), "done"),
        c=rounds(acquire(wait_seconds=15), "done"),
    )
    play(scenario, say, tools=[nap], seed=1)


def test_the_holder_is_told_the_token_and_the_time_it_has_left_when_it_renews() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        first, _, renewed = (await manager.run_task("a", "go")).split(" | ")
        assert first.startswith("You hold lock 'door' with token 1 for 60 seconds.")
        assert renewed.startswith("You hold lock 'door' with token 1 for 90 seconds.")

    play(scenario, rounds(acquire(), rest(30), acquire(ttl_seconds=90)), tools=[nap])


def test_renewal_keeps_the_lock_beyond_its_first_lease() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        waiter = await manager.send_task("b", "go")
        await manager.wait_task(holder)
        assert now() > 100
        assert "token 2" in await final_of(manager, waiter)
        assert "lock.expired" not in [name for name, _, _ in await told_of_locks(manager)]

    say = team(a=rounds(acquire(), rest(50), acquire(), rest(50), "done"), b=rounds(acquire()))
    play(scenario, say, tools=[nap])


def test_a_lease_that_is_over_goes_to_the_next_and_the_old_holder_cannot_release_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        waiter = await manager.send_task("b", "go")
        await asyncio.sleep(10)
        assert holders(manager) == [("door", "b", 2)]
        assert (
            "This task does not hold lock 'door': the lease of a, with token 1, ran out at 2027-01-15 08:00:11 UTC. "
            "b holds it now with token 2. This task holds: none."
        ) in await final_of(manager, holder)
        assert manager.list_locks()[0].agent_id == "b"
        await manager.wait_task(waiter)

    say = team(a=rounds(acquire(ttl_seconds=10), rest(20), release()), b=rounds(acquire(), rest(30), "done"))
    play(scenario, say, tools=[nap])


def test_only_the_holder_can_release_and_is_told_what_it_holds() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        holder = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        told = await manager.run_task("b", "go")
        assert "This task does not hold lock 'door'" in told
        assert "a holds it now with token 1. This task holds: gate, window." in told
        assert holders(manager) == [("door", "a", 1)]
        await manager.wait_task(holder)

    say = team(a=rounds(acquire(), rest(20), "done"), b=rounds([acquire("window"), acquire("gate"), release()]))
    play(scenario, say, tools=[nap])


def test_another_task_of_the_same_agent_waits_like_any_other() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", limits={"max_concurrent_tasks": 2})
        await manager.send_task("a", "go")
        await asyncio.sleep(5)
        assert "token 2" in await final_of(manager, await manager.send_task("a", "too"))
        assert now() > 20

    play(scenario, team(a=rounds(acquire(), rest(20), "done"), a_too=rounds(acquire())), tools=[nap])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"name": ""}, "The lock needs a name"),
        ({"name": "  "}, "The lock needs a name"),
        ({"name": "one\ntwo"}, "cannot be the name of a lock: use printable characters"),
        ({"name": "tape\u202e"}, "cannot be the name of a lock: use printable characters"),
        ({"name": "x" * 201}, "201 bytes, at most 200"),
        ({"name": "x", "ttl_seconds": 0}, "ttl_seconds"),
        ({"name": "x", "ttl_seconds": -1}, "ttl_seconds"),
        ({"name": "x", "ttl_seconds": 8 * 86_400}, "at most 7 days"),
        ({"name": "x", "wait_seconds": 0}, "wait_seconds"),
        ({"name": "x", "wait_seconds": 1e12}, "at most 100 years"),
        ({"name": "x", "holder": "b"}, "holder"),
        ({}, "name"),
    ],
)
def test_a_lock_that_makes_no_sense_is_refused_with_the_reason(arguments: dict[str, object], problem: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        assert problem in await manager.run_task("a", "go")
        assert await told_of_locks(manager) == []

    play(scenario, rounds(("acquire_lock", arguments)))


def test_a_name_that_is_not_text_is_refused() -> None:
    wanted = ToolCall(call_id="c", name="acquire_lock", arguments='{"name": "\\ud800"}')

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        await manager.run_task("a", "go")
        assert await told_of_locks(manager) == []

    play(scenario, lambda r: Answer(tool_calls=(wanted,)) if round_of(r) == 0 else results_of(r)[-1])


@pytest.mark.parametrize("how", ["completion", "failure", "cancel", "stop", "deadline"])
def test_a_lock_is_released_when_its_holder_ends(how: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab", limits={"max_steps_per_task": 4 if how == "failure" else 100})
        holder = await manager.send_task("a", how, timeout_seconds=20 if how == "deadline" else None)
        await asyncio.sleep(5)
        waiter = await manager.send_task("b", "go")
        await asyncio.sleep(5)
        if how == "cancel":
            await manager.cancel_task(holder)
        elif how == "stop":
            await manager.stop_agent("a")
        assert "token 2" in await final_of(manager, waiter)
        assert now() < 40
        assert (await manager.get_task(holder.id)).state.ended
        assert holders(manager) == []

    short = rounds(acquire(), rest(15), "done")
    long = rounds(acquire(ttl_seconds=5000), rest(1000), "done")
    failing = rounds(acquire(), rest(15), acquire(), acquire())
    play(
        scenario,
        team(a_completion=short, a_failure=failing, a=long, b=rounds(acquire())),
        tools=[nap],
    )


@pytest.mark.parametrize("how", ["timeout", "cancel", "stop", "deadline"])
def test_one_that_no_longer_waits_is_passed_over(how: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "abc")
        await manager.send_task("a", "go")
        await asyncio.sleep(5)
        waiter = await manager.send_task("b", how, timeout_seconds=10 if how == "deadline" else None)
        await asyncio.sleep(3)
        last = await manager.send_task("c", "go")
        await asyncio.sleep(3)
        if how == "cancel":
            await manager.cancel_task(waiter)
        elif how == "stop":
            await manager.stop_agent("b")
        await manager.wait_task(waiter)
        assert now() < 25
        outcome = "abandoned" if how in ("cancel", "stop") else "timed_out"
        assert ("lock.wait_ended", "b", outcome) in await told_of_locks(manager)
        assert manager.get_agent_status("b").waiting_for == ()
        assert "token 2" in await final_of(manager, last)

    say = team(
        a=rounds(acquire(), rest(40), "done"),
        b_timeout=rounds(acquire(wait_seconds=10)),
        b=rounds(acquire()),
        c=rounds(acquire()),
    )
    play(scenario, say, tools=[nap])


def test_one_that_waited_too_long_is_told_who_still_has_the_lock() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        await manager.send_task("a", "go")
        await asyncio.sleep(5)
        assert (
            await manager.run_task("b", "go")
            == "Timeout: after 10 seconds lock 'door' is still held by a. You no longer wait."
        )

    play(scenario, team(a=rounds(acquire(), rest(40), "done"), b=rounds(acquire(wait_seconds=10))), tools=[nap])


def test_a_waiter_whose_agent_is_paused_keeps_its_place_gets_the_lock_and_its_lease_runs() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "abc")
        await manager.send_task("a", "go")
        await asyncio.sleep(5)
        paused = await manager.send_task("b", "go")
        await asyncio.sleep(3)
        await manager.pause_agent("b")
        last = await manager.send_task("c", "go")
        await asyncio.sleep(22)
        assert holders(manager) == [("door", "b", 2)]
        assert manager.get_agent_status("b").state is AgentState.PAUSED
        assert manager.get_agent_status("b").waiting_for == ()
        assert "token 3" in await final_of(manager, last)
        assert 50 < now() < 60, "the lease of b ran out"
        await manager.resume_agent("b")
        assert "token 2" in await final_of(manager, paused)

    say = team(a=rounds(acquire(), rest(20), "done"), b=rounds(acquire(ttl_seconds=30)), c=rounds(acquire()))
    play(scenario, say, tools=[nap])


def test_a_continuation_keeps_the_locks_of_its_task() -> None:
    def a(request: ModelRequest) -> Answer | str:
        if "Continue" in prompt_of(request):
            return rounds(rest(10), release())(request)
        return rounds(acquire(), "a part\n[CONTINUE]")(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        task = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        assert holders(manager) == [("door", "a", 1)]
        assert "token 2" in await manager.run_task("b", "go")
        assert "Released lock 'door'." in await final_of(manager, task)

    play(scenario, team(a=a, b=rounds(acquire())), tools=[nap])


def test_a_stop_frees_the_locks_of_a_task_that_is_still_to_be_continued() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        await manager.send_task("a", "go")
        await asyncio.sleep(1.5)
        await manager.pause_agent("a")
        await asyncio.sleep(5)
        assert (manager.get_agent_status("a").queue_size, holders(manager)) == (1, [("door", "a", 1)])
        await manager.stop_agent("a")
        assert holders(manager) == []

    play(scenario, rounds(acquire(ttl_seconds=5000), "a part\n[CONTINUE]"))


def test_one_that_asks_for_a_lock_twice_at_once_gets_it_once_with_the_last_lease() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "ab")
        await manager.send_task("a", "go")
        await asyncio.sleep(5)
        task = await manager.send_task("b", "go")
        await asyncio.sleep(20)
        lock = manager.list_locks()[0]
        assert (lock.agent_id, lock.token) == ("b", 2)
        assert lock.expires_at is not None
        assert lock.acquired_at is not None
        assert lock.expires_at - lock.acquired_at == 300
        first, second, _ = (await final_of(manager, task)).split(" | ")
        assert "token 2 for 100 seconds" in first
        assert "token 2 for 300 seconds" in second

    twice = [acquire(ttl_seconds=100), acquire(ttl_seconds=300)]
    play(scenario, team(a=rounds(acquire(), rest(20), "done"), b=rounds(twice, rest(10))), tools=[nap])

"""Circles of agents that wait for each other, over questions and locks: refused at once, and nobody hangs."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.models.base import ModelRequest
from tests.effort import some
from tests.simulation.stage import call, calls, play, play_over_crash, prompt_of, results_of, round_of

SWITCH, LOCK = "switch", "lock"

Call = tuple[str, dict[str, object]]


@tool
async def nap(seconds: float) -> str:
    """Let time pass."""
    await asyncio.sleep(seconds)
    return "rested"


@tool
async def nap_until(second: float) -> str:
    """Let time pass until the clock shows so much."""
    await asyncio.sleep(second - asyncio.get_running_loop().time())
    return "rested"


def touched(arguments: Mapping[str, Any]) -> list[str]:
    return [f"write {name}" for name in arguments["names"]]


@tool(touches=touched)
async def use(names: str, seconds: float) -> str:
    """Use things for a while, which nobody else can meanwhile."""
    await asyncio.sleep(seconds)
    return f"used {names}"


def ask(to: str) -> Call:
    return "send_mail_with_switch", {"to_agent": to, "subject": "Question", "body": "What?"}


def acquire(name: str, **arguments: object) -> Call:
    return "acquire_lock", {"name": name, "ttl_seconds": 5000, **arguments}


def play_rounds(rounds: dict[str, list[list[Call]]]) -> Callable[[ModelRequest], Answer | str]:
    """Each agent makes its calls round by round and then says what the last round brought."""

    def say(request: ModelRequest) -> Answer | str:
        mine, number = rounds[request.agent_id], round_of(request)
        if number < len(mine):
            return calls(*mine[number])
        return " | ".join(results_of(request)[-len(mine[-1]) :]) if mine else "fine"

    return say


def circle_of(kinds: tuple[str, ...]) -> dict[str, list[list[Call]]]:
    """What the agents do so that each waits for the next, and the last one would close the circle.

    Whoever is waited for over a lock has it first. All wait one after the other, the closing one last.
    """
    names = "abcdef"[: len(kinds)]
    rounds: dict[str, list[list[Call]]] = {}
    for place, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        following = names[(place + 1) % len(names)]
        first = [[acquire(f"lock of {name}")]] if kinds[place - 1] == LOCK else []
        wait = ask(following) if kind == SWITCH else acquire(f"lock of {following}")
        rounds[name] = [*first, [("nap_until", {"second": 10.0 * (place + 1)})], [wait]]
    return rounds


def is_begun_by_the_user(kinds: tuple[str, ...], place: int) -> bool:
    """Whoever is asked begins because of that, all others by themselves; so does the one whom the last would ask."""
    return place == 0 or kinds[place - 1] == LOCK


async def assert_nothing_is_left(manager: AsyncAgentSessionManager) -> None:
    assert manager.list_locks() == []
    assert all(status.waiting_for == () and status.running_tasks == () for status in manager.list_agents())
    assert (await manager._session.kernel.store.load("default")).waits == ()
    assert manager.list_resources() == []


async def all_tasks(manager: AsyncAgentSessionManager, *, step_seconds: float = 1.0) -> list[TaskRecord]:
    """All tasks there are, when all have ended; raises `TimeoutError` if they do not."""
    async with asyncio.timeout(5000):
        while True:
            agents = manager.list_agents()
            tasks = [task for status in agents for task in await manager.list_tasks(status.agent_id)]
            if all(task.state.ended for task in tasks) and not any(status.queue_size for status in agents):
                await manager.flushed()
                return tasks
            await asyncio.sleep(step_seconds)


@pytest.mark.parametrize("size", range(2, 7))
def test_the_wait_that_closes_a_circle_is_refused_at_once_and_all_others_end(size: int) -> None:
    for kinds in itertools.product((SWITCH, LOCK), repeat=size):
        names = "abcdef"[:size]

        async def scenario(
            manager: AsyncAgentSessionManager, kinds: tuple[str, ...] = kinds, names: str = names
        ) -> None:
            for name in names:
                await manager.create_agent(name)
            for place, name in enumerate(names):
                if is_begun_by_the_user(kinds, place):
                    await manager.send_task(name, "go", task_id=name)
            await asyncio.sleep(10.0 * len(names) - 3)
            waiting = [bool(manager.get_agent_status(name).waiting_for) for name in names]
            assert waiting == [True] * (len(names) - 1) + [False], f"{kinds}: all but the last wait"
            tasks = await all_tasks(manager)
            assert asyncio.get_running_loop().time() < 10 * len(names) + 3 * len(names)
            assert [task.state for task in tasks] == [TaskState.COMPLETED] * len(names)
            last = next(task for task in tasks if task.agent_id == names[-1])
            assert last.result is not None
            assert f"({' → '.join([names[-1], *names])})" in last.result.final, kinds
            assert last.result.final.startswith("You cannot wait for")
            ended = [
                n for n in await manager.notifications(limit=10_000) if n.name in ("switch.ended", "lock.wait_ended")
            ]
            assert {n.params["outcome"] for n in ended} <= {"answered", "acquired"}
            assert len(ended) == len(names) - 1
            await assert_nothing_is_left(manager)

        play(scenario, play_rounds(circle_of(kinds)), tools=[nap_until], seed=size)


@pytest.mark.parametrize("kinds", list(itertools.product((SWITCH, LOCK), repeat=3)))
def test_a_circle_is_refused_also_if_its_other_waits_began_before_the_process_died(kinds: tuple[str, ...]) -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        for place, name in enumerate("abc"):
            await manager.create_agent(name)
            if is_begun_by_the_user(kinds, place):
                await manager.send_task(name, "go")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        waiting = [bool(manager.get_agent_status(name).waiting_for) for name in "abc"]
        assert waiting == [True, True, False]
        tasks = await all_tasks(manager)
        assert asyncio.get_running_loop().time() < 10
        last = next(task for task in tasks if task.agent_id == "c")
        assert last.result is not None
        assert "(c → a → b → c)" in last.result.final
        await assert_nothing_is_left(manager)

    say = play_rounds(circle_of(kinds))
    play_over_crash(before, after, say, crash_after_seconds=25, tools=[nap_until])


def test_two_that_want_two_locks_in_opposite_order_do_not_hang_when_both_are_handed_over() -> None:
    rounds: dict[str, list[list[Call]]] = {
        "r": [[acquire("1"), acquire("2")], [("nap", {"seconds": 50})]],
        "p": [[("nap", {"seconds": 10})], [acquire("1"), acquire("2")]],
        "q": [[("nap", {"seconds": 20})], [acquire("2"), acquire("1")]],
    }

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in rounds:
            await manager.create_agent(name)
            await manager.send_task(name, "go")
        await all_tasks(manager)
        assert asyncio.get_running_loop().time() < 100
        held = [n.params for n in await manager.notifications(limit=10_000) if n.name == "lock.acquired"]
        assert [(n["name"], n["agentId"]) for n in held[2:]] == [("1", "p"), ("2", "p"), ("1", "q"), ("2", "q")]
        await assert_nothing_is_left(manager)

    play(scenario, play_rounds(rounds), tools=[nap])


@pytest.mark.parametrize("kind", [SWITCH, LOCK])
def test_a_circle_that_would_close_only_when_a_lock_changes_hands_is_refused_beforehand(kind: str) -> None:
    """x waits for a lock that the holder will give back, and for y; y must not get into the queue behind x."""
    for_y = ask("y") if kind == SWITCH else acquire("of y")
    rounds: dict[str, list[list[Call]]] = {
        "holder": [[acquire("wanted")], [("nap", {"seconds": 50})]],
        "x": [[("nap", {"seconds": 10})], [acquire("wanted"), for_y]],
        "y": [[acquire("of y")], [("nap", {"seconds": 20})], [acquire("wanted")]],
    }

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in rounds:
            await manager.create_agent(name)
            if name != "y" or kind == LOCK:
                await manager.send_task(name, "go")
        tasks = await all_tasks(manager)
        assert asyncio.get_running_loop().time() < 70
        told = next(task.result.final for task in tasks if task.agent_id == "y" and task.result is not None)
        assert "x has it or gets it before you, and waits for you (y → x → y)" in told
        await assert_nothing_is_left(manager)

    play(scenario, play_rounds(rounds), tools=[nap])


def test_a_question_does_not_wait_behind_another_of_its_conversation() -> None:
    """Else b, when it has answered the first, could wait for what a holds while a waits for the second."""
    rounds = {"a": [[acquire("of a")], [ask("b"), ask("b")]]}

    def b(request: ModelRequest) -> Answer | str:
        mail_id = prompt_of(request).split("Mail id: ")[1].split()[0]
        if round_of(request) == 0:
            return call("reply_mail", mail_id=mail_id, body="yes")
        return calls(acquire("of a")) if round_of(request) == 1 else results_of(request)[-1]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.create_agent("b")
        await manager.run_task("a", "go")
        tasks = await all_tasks(manager)
        assert asyncio.get_running_loop().time() < 20
        assert len({task.thread_id for task in tasks}) == 3
        await assert_nothing_is_left(manager)

    say = play_rounds(rounds)
    play(scenario, lambda request: b(request) if request.agent_id == "b" else say(request))


def test_a_task_that_holds_a_lock_is_continued_before_more_urgent_work_that_wants_the_lock() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if "Continue" in prompt_of(request):
            return "the second part"
        if "urgent" in prompt_of(request):
            return calls(acquire("lock")) if round_of(request) == 0 else results_of(request)[-1]
        rounds: list[Answer | str] = [calls(acquire("lock")), calls(("nap", {"seconds": 10})), "a part\n[CONTINUE]"]
        return rounds[round_of(request)]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        first = await manager.send_task("a", "hold it")
        await asyncio.sleep(5)
        second = await manager.send_task("a", "urgent", priority="urgent")
        assert (await manager.wait_task(first)).state is TaskState.COMPLETED
        ended = await manager.wait_task(second)
        assert ended.result is not None
        assert "token 2" in ended.result.final
        assert asyncio.get_running_loop().time() < 30
        await assert_nothing_is_left(manager)

    play(scenario, say, tools=[nap])


def chaotic(request: ModelRequest) -> Answer | str:
    """An agent that takes locks, gives them back, uses things, asks others and goes on, all of it by chance."""
    chance = random.Random(request.step_id)
    depth = prompt_of(request).count("deeper")
    if round_of(request) >= 5 - 2 * depth or chance.random() < 0.1:
        return "part\n[CONTINUE]" if chance.random() < 0.3 else "end"
    wanted: list[Call] = []
    for _ in range(chance.randint(1, 3)):
        kind = chance.choice(["acquire", "acquire", "release", "ask", "nap", "use", "use"])
        if kind == "acquire":
            wanted.append(acquire(chance.choice("KLMN"), wait_seconds=100_000))
        elif kind == "release":
            wanted.append(("release_lock", {"name": chance.choice("KLMN")}))
        elif kind == "nap":
            wanted.append(("nap", {"seconds": chance.randint(1, 20)}))
        elif kind == "use":
            names = "".join(chance.sample("XYZ", chance.randint(1, 3)))
            wanted.append(("use", {"names": names, "seconds": chance.randint(1, 20)}))
        elif depth < 2:
            body = "deeper " * (depth + 1)
            to = chance.choice("abcdef")
            wanted.append((ask(to)[0], {**ask(to)[1], "body": body, "timeout_seconds": 100_000}))
    return calls(*wanted) if wanted else "end"


@pytest.mark.parametrize("seed", range(some(15)))
def test_agents_that_lock_and_ask_by_chance_never_come_to_a_standstill(seed: int) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in "abcdef":
            await manager.create_agent(name, {"limits": {"max_concurrent_tasks": 2}})
        for number in range(12):
            await manager.send_task("abcdef"[number % 6], "go", priority=["urgent", "low", "normal"][number % 3])
        await all_tasks(manager, step_seconds=20.0)
        notes = await manager.notifications(limit=100_000)
        outcomes = {n.params["outcome"] for n in notes if n.name in ("switch.ended", "lock.wait_ended")}
        assert outcomes <= {"answered", "acquired"}
        assert not [n for n in notes if n.name in ("lock.expired", "async.task.error")]
        assert asyncio.get_running_loop().time() < 2000
        await assert_nothing_is_left(manager)

    play(scenario, chaotic, tools=[nap, use], seed=seed)


@pytest.mark.parametrize("size", range(2, 7))
def test_those_who_each_use_what_the_next_one_wants_take_turns_and_all_end(size: int) -> None:
    """A call takes all that it touches together: a ring of wants is no circle of waits."""
    names = "abcdef"[:size]
    wants = {name: name + names[(place + 1) % size] for place, name in enumerate(names)}
    rounds: dict[str, list[list[Call]]] = {
        name: [
            [acquire(f"lock of {name}")],
            [("use", {"names": both, "seconds": 10}), ("use", {"names": both[::-1], "seconds": 10})],
        ]
        for name, both in wants.items()
    }

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in names:
            await manager.create_agent(name)
            await manager.send_task(name, "go")
        tasks = await all_tasks(manager)
        assert all(task.result is not None and task.result.final.count("used") == 2 for task in tasks)
        assert asyncio.get_running_loop().time() < 20 * size + 10
        await assert_nothing_is_left(manager)

    play(scenario, play_rounds(rounds), tools=[use], seed=size)

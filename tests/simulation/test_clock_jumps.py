"""A wall clock that is set: durations take as long as they were meant to, wall-clock times come when it shows them.

Each kind is tried with the clock set by an hour, forward and back, while the process lives and while it is down. What
is measured is the virtual time that really passed, which nobody can set.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.clock import SystemClock
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import LockNotHeldError, ModelServerError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.runtime.session.clock import SessionClock
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import EPOCH, VirtualClock, simulate
from tests.simulation.stage import call, opened, play, prompt_of, round_of

HOUR = 3600.0
BEGUN, DOWN_AT, UP_AT = 10.0, 30.0, 40.0
"""When the clock is set, when the process dies, and when it is there again."""

LASTS = 600.0
Deed = Callable[[AsyncAgentSessionManager], Awaitable[object]]


class Jump:
    """Sets a clock by so much, at that moment, and lets the process die at times."""

    def __init__(self, seconds: float, *, while_down: bool, dies: bool) -> None:
        self.seconds = seconds
        self.while_down = while_down
        self.dies = dies

    def __repr__(self) -> str:
        way = "forward" if self.seconds > 0 else "back"
        when = "while it is down" if self.while_down else "before a crash" if self.dies else "while it lives"
        return f"{way} {when}"


JUMPS = [
    Jump(seconds, while_down=while_down, dies=dies)
    for seconds in (HOUR, -HOUR)
    for while_down, dies in ((False, False), (True, True), (False, True))
]


def say(request: ModelRequest) -> Answer | str:
    """What the prompt of the task asks for."""
    prompt = prompt_of(request)
    if prompt == "ask":
        return call("send_mail_with_switch", to_agent="bob", subject="s", body="b", timeout_seconds=LASTS)
    if prompt == "lock" and round_of(request) == 0:
        return call("acquire_lock", name="mine", ttl_seconds=60.0, wait_seconds=LASTS)
    if prompt == "fail" and request.attempt == 1:
        raise ModelServerError(retry_after_seconds=LASTS)
    if prompt == "approve":
        return call("costly")
    return "done"


async def costly() -> str:
    """Waits for a person."""
    return "ok"


async def sleep_for_long(manager: AsyncAgentSessionManager) -> None:
    await manager.sleep_agent("alice", duration_seconds=LASTS)


async def hold_a_lock(manager: AsyncAgentSessionManager) -> None:
    await manager.acquire_lock("mine", ttl_seconds=LASTS)


async def wait_for_a_lock(manager: AsyncAgentSessionManager) -> None:
    await manager.acquire_lock("mine", ttl_seconds=10 * HOUR)
    await manager.send_task("alice", "lock")


async def ask_somebody_who_is_paused(manager: AsyncAgentSessionManager) -> None:
    await manager.pause_agent("bob")
    await manager.send_task("alice", "ask")


async def have_a_deadline(manager: AsyncAgentSessionManager) -> None:
    await manager.pause_agent("alice")
    await manager.send_task("alice", "go", timeout_seconds=LASTS)


async def wait_for_a_person_with_a_deadline(manager: AsyncAgentSessionManager) -> None:
    await manager.send_task("alice", "approve", timeout_seconds=LASTS)


async def run_for_too_long(manager: AsyncAgentSessionManager) -> None:
    await manager.set_limits({"max_task_seconds": LASTS}, agent_id="alice")
    await manager.send_task("alice", "approve")


async def try_again_later(manager: AsyncAgentSessionManager) -> None:
    await manager.send_task("alice", "fail")


async def fire_at_intervals(manager: AsyncAgentSessionManager) -> None:
    await manager.create_schedule("alice", interval_seconds=LASTS, prompt="go", missed="all")


KINDS: dict[str, tuple[Deed, str]] = {
    "a sleep": (sleep_for_long, "agent.state_changed idle"),
    "a lease": (hold_a_lock, "lock.expired"),
    "a wait for a lock": (wait_for_a_lock, "lock.wait_ended"),
    "a wait for an answer": (ask_somebody_who_is_paused, "switch.ended"),
    "a deadline": (have_a_deadline, "async.task.error"),
    "a deadline while people are asked": (wait_for_a_person_with_a_deadline, "async.task.error"),
    "the time of a task": (run_for_too_long, "async.task.error"),
    "a back-off": (try_again_later, "step.started 2"),
    "an interval": (fire_at_intervals, "schedule.fired"),
}


async def is_over(manager: AsyncAgentSessionManager, wanted: str) -> bool:
    name, _, detail = wanted.partition(" ")
    found = [note for note in await manager.notifications(limit=10_000) if note.name == name]
    if name == "agent.state_changed":
        return any(note.params["from"] == "sleeping" for note in found)
    if name == "step.started":
        return any(note.params.get("attempt") == 2 for note in found)
    return bool(found) and not detail


def took(deed: Deed, wanted: str, jump: Jump) -> float:
    """How many seconds it really took until what was wanted had happened."""
    disk = SimulatedDisk(0)
    clock = VirtualClock()
    passed = 0.0

    async def live(*, first: bool, lasts: float | None) -> bool:
        """Whether it is over within this life."""
        nonlocal passed
        loop = asyncio.get_running_loop()
        manager = opened(disk.open(), say, clock=clock, latency_seconds=0.01, tools=[costly])
        await manager.open()
        if first:
            for name in ("alice", "bob"):
                await manager.create_agent(name, {"approve": ["costly"], "retry": {"max_attempts": 3}})
            await deed(manager)
            await asyncio.sleep(BEGUN - loop.time())
            clock.set(0 if jump.while_down else jump.seconds)
        while (lasts is None or loop.time() < lasts) and loop.time() < 4 * HOUR:
            await asyncio.sleep(0.5)
            if await is_over(manager, wanted):
                passed += loop.time()
                disk.crash()
                return True
        passed += loop.time()
        disk.crash()
        return False

    is_done = simulate(live(first=True, lasts=DOWN_AT if jump.dies else None))
    if not is_done:
        passed = UP_AT
        clock = clock.later(UP_AT)
        clock.set(jump.seconds if jump.while_down else 0)
        is_done = simulate(live(first=False, lasts=None), seed=1)
    disk.close()
    assert is_done, "it never came"
    return passed


@pytest.mark.parametrize("jump", JUMPS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_a_duration_takes_as_long_as_it_was_meant_to(kind: str, jump: Jump) -> None:
    """Over a restart, time counts by the wall clock while the process is down, and never backwards.

    So a clock that is set forward while nobody looks, or before a crash, seems to be a long time down; one that was set
    back lets what was left at the last entry of the log go on.
    """
    seconds = took(*KINDS[kind], jump)
    if not jump.dies:
        assert seconds == pytest.approx(LASTS, abs=2)
    elif jump.seconds > 0:
        assert seconds == pytest.approx(UP_AT, abs=2)
    else:
        assert LASTS - 2 < seconds < LASTS + UP_AT + 2


@pytest.mark.parametrize("jump", JUMPS, ids=repr)
def test_a_sleep_until_a_time_ends_when_the_wall_clock_shows_it(jump: Jump) -> None:
    async def sleep_until(manager: AsyncAgentSessionManager) -> None:
        await manager.sleep_agent("alice", until=EPOCH + LASTS)

    seconds = took(sleep_until, "agent.state_changed idle", jump)
    if jump.seconds < 0:
        assert seconds == pytest.approx(LASTS + HOUR, abs=2)
    else:
        assert seconds <= UP_AT + 61, "it was noticed too late"


@pytest.mark.parametrize("seed", range(30))
def test_cron_settles_each_time_once_however_often_the_clock_is_set_and_the_process_dies(seed: int) -> None:
    chance = random.Random(seed)
    disk, clock, latest = SimulatedDisk(seed), VirtualClock(), 0.0

    async def live(*, first: bool) -> list[dict[str, Any]]:
        nonlocal clock, latest
        manager = opened(disk.open(), lambda _: "done", clock=clock)
        await manager.open()
        if first:
            await manager.create_schedule(cron="*/5 * * * *", event="tick", missed="all")
        for _ in range(5):
            await asyncio.sleep(61 + chance.random() * 1000)  # so long it may take until a set clock is noticed
            latest = max(latest, clock.now())
            clock.set(chance.choice((HOUR, -HOUR, 0.0)))
        await asyncio.sleep(chance.random() * 200)
        await manager.flushed()
        notes = [note.params for note in await manager.notifications(limit=10_000) if note.name == "schedule.fired"]
        disk.crash()
        clock = clock.later(asyncio.get_running_loop().time() + chance.random() * 1000)
        return notes

    for life in range(4):
        fired = simulate(live(first=life == 0), seed=seed + life)
    disk.close()
    due = [each["dueAt"] for each in fired]
    last = max(due, default=EPOCH)
    assert due == [EPOCH + 300 * number for number in range(1, len(due) + 1)], "each once and in order"
    assert last >= latest - 300 - 1, "the times that the wall clock has shown were settled"


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_what_people_see_is_when_the_wall_clock_will_show_it(seconds: float) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("alice", "bob"):
            await manager.create_agent(name)
        await manager.sleep_agent("alice", duration_seconds=LASTS)
        await manager.sleep_agent("bob", until=EPOCH + 2 * HOUR)
        await manager.create_schedule("bob", interval_seconds=LASTS, prompt="go", schedule_id="counted")
        await manager.create_schedule("bob", cron="0 0 * * *", prompt="go", schedule_id="named")
        cron_at = manager.get_schedule("named").next_at
        lock = await manager.acquire_lock("mine", ttl_seconds=LASTS)
        await asyncio.sleep(10)
        clock.set(seconds)
        await asyncio.sleep(61)
        told = [note.params for note in await manager.notifications(limit=1000) if note.name == "clock.changed"]
        assert told == [{"clockOffsetSeconds": seconds}]
        due_at = EPOCH + seconds + LASTS
        assert manager.get_agent_status("alice").sleeping_until == due_at
        assert manager.get_agent_status("bob").sleeping_until == EPOCH + 2 * HOUR
        assert manager.get_schedule("counted").next_at == due_at
        assert manager.get_schedule("named").next_at == cron_at
        assert manager.list_locks()[0].expires_at == due_at
        renewed = await manager.renew_lock("mine", lock.token, 100)
        assert renewed.expires_at == clock.now() + 100
        assert manager.check_lock("mine", lock.token).lock == renewed
        snapshot = await manager.snapshot()
        assert snapshot.clock_offset_seconds == seconds
        assert snapshot.locks[0].expires_at == renewed.expires_at
        assert {each.next_at for each in snapshot.schedules} == {due_at, cron_at}

    clock = VirtualClock()
    play(scenario, clock=clock)


def test_the_holder_of_a_lease_has_it_no_longer_than_the_others_think() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        lock = await manager.acquire_lock("mine", ttl_seconds=100)
        await asyncio.sleep(50)
        clock.set(-HOUR)
        waiting = asyncio.ensure_future(manager.acquire_lock("mine", ttl_seconds=100, wait_seconds=HOUR))
        await asyncio.sleep(49)
        assert manager.check_lock("mine", lock.token).is_current
        assert not waiting.done()
        await asyncio.sleep(2)
        assert not manager.check_lock("mine", lock.token).is_current
        with pytest.raises(LockNotHeldError, match="ran out"):
            await manager.renew_lock("mine", lock.token, 100)
        assert (await waiting).token == lock.token + 1

    clock = VirtualClock()
    play(scenario, clock=clock)


def test_a_session_that_counts_nothing_takes_the_time_of_the_wall_clock_over() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await asyncio.sleep(100)
        clock.set(HOUR)
        await manager.send_task("alice", "go")
        assert (await manager.list_tasks("alice"))[0].created_at == clock.now()
        assert (await manager.snapshot()).clock_offset_seconds == 0

    clock = VirtualClock()
    play(scenario, clock=clock)


@pytest.mark.parametrize("was_noticed", [True, False])
def test_a_session_that_counts_nothing_is_caught_up_with_by_a_wall_clock_that_was_set_back(
    *, was_noticed: bool
) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await asyncio.sleep(100)
        clock.set(-HOUR)
        if was_noticed:
            await manager.send_task("alice", "go")
            await asyncio.sleep(10)
            assert (await manager.snapshot()).clock_offset_seconds < 0
        await asyncio.sleep(48 * HOUR)
        await manager.send_task("alice", "go")
        assert (await manager.list_tasks("alice"))[0].created_at == clock.now()
        assert (await manager.snapshot()).clock_offset_seconds == 0
        times = [note.at for note in await manager.notifications(limit=1000)]
        assert times == sorted(times)

    clock = VirtualClock()
    play(scenario, clock=clock)


@pytest.mark.parametrize("seed", range(20))
def test_entries_stay_in_the_order_of_their_times_however_the_wall_clock_is_set(seed: int) -> None:
    chance = random.Random(seed)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        for number in range(30):
            clock.set(chance.choice((HOUR, -HOUR, 0.0, -0.3, -0.7, -1.2, 0.7)))
            await manager.send_task("alice", str(number))
            await asyncio.sleep(chance.choice((0.0, 0.3, 1.0, 100.0, HOUR)))
        await manager.flushed()
        times = [note.at for note in await manager.notifications(limit=10_000)]
        assert times == sorted(times)

    clock = VirtualClock()
    play(scenario, clock=clock)


def test_nothing_happens_before_its_cause_when_the_clock_is_set_back() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        for number in range(3):
            await manager.send_task("alice", str(number), thread_id="talk")
            await asyncio.sleep(100)
            clock.set(-HOUR)
        times = [note.at for note in await manager.notifications(limit=1000)]
        assert times == sorted(times)
        assert [task.prompt for task in await manager.list_tasks("alice")] == ["2", "1", "0"]

    clock = VirtualClock()
    play(scenario, clock=clock)


def test_small_steps_of_the_wall_clock_are_noticed_together() -> None:
    async def scenario() -> list[bool]:
        clock = VirtualClock()
        session = SessionClock(clock)
        seen = []
        for _ in range(8):
            clock.set(0.2)
            seen.append(session.is_off(session.now()))
        return seen

    assert simulate(scenario()) == [False] * 7 + [True]


def test_the_system_counts_seconds_that_nobody_can_set() -> None:
    clock = SystemClock()
    readings = [clock.elapsed() for _ in range(100)]
    assert readings == sorted(readings)


@pytest.mark.parametrize("agent_is", ["paused", "stopped"])
def test_a_task_fails_at_its_deadline_by_the_log_too_though_the_clock_was_set_before(agent_is: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await (manager.pause_agent("alice") if agent_is == "paused" else manager.stop_agent("alice"))
        task = await manager.send_task("alice", "go", timeout_seconds=60)
        await asyncio.sleep(30)
        clock.set(HOUR)
        failed = await manager.wait_task(task)
        assert failed.deadline_at is not None
        assert failed.finished_at == pytest.approx(failed.deadline_at, abs=1)

    clock = VirtualClock()
    play(scenario, clock=clock)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_what_begins_after_the_clock_was_set_while_nothing_was_counted_takes_its_time(seconds: float) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with AsyncAgentSessionManager(clock=clock, model_factory=lambda _: FunctionModel(say)) as manager:
            for name in ("sleeper", "late"):
                await manager.create_agent(name)
            await manager.pause_agent("late")
            await asyncio.sleep(10)
            clock.set(seconds)
            begun = clock.elapsed()
            await manager.sleep_agent("sleeper", duration_seconds=30)
            task = await manager.send_task("late", "too long", timeout_seconds=60)
            await asyncio.sleep(29)
            assert manager.get_agent_status("sleeper").state == "sleeping"
            await manager.wait_task(task)
            assert clock.elapsed() - begun == pytest.approx(60, abs=1)
            assert manager.get_agent_status("sleeper").state != "sleeping"

    simulate(main())

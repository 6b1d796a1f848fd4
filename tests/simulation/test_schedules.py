"""Schedules at work, on virtual time. Simulations begin on 15 January 2027 at 08:00 UTC."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, Notification, TaskState, WhispererError
from ai_whisperer.core.tasks import continuation_id
from ai_whisperer.domain.tasks import TaskKind, TaskRecord
from ai_whisperer.errors import (
    ClosedError,
    DuplicateIdError,
    InvalidInputError,
    ScheduleError,
    StateError,
    TooLargeError,
    UnknownAgentError,
    UnknownScheduleError,
)
from ai_whisperer.simulation.loop import EPOCH, VirtualClock
from tests.simulation.stage import names_of, opened, play, play_over_crash

HOUR = 3600.0
Deed = Callable[[AsyncAgentSessionManager], Awaitable[object]]


async def told(manager: AsyncAgentSessionManager, name: str) -> list[Notification]:
    return [note for note in await manager.notifications(limit=100_000) if note.name == name]


async def fired_at(manager: AsyncAgentSessionManager) -> list[float]:
    """The due instants that fired, in seconds since the simulation began."""
    return [round(note.params["dueAt"] - EPOCH, 1) for note in await told(manager, "schedule.fired")]


async def missed_by_reason(manager: AsyncAgentSessionManager) -> dict[str, int]:
    found: dict[str, int] = {}
    for note in await told(manager, "schedule.missed"):
        found[note.params["reason"]] = found.get(note.params["reason"], 0) + note.params["count"]
    return found


async def tasks_of(manager: AsyncAgentSessionManager, agent: str = "alice") -> list[TaskRecord]:
    return (await manager.list_tasks(agent, limit=10_000))[::-1]


def test_a_cron_schedule_gives_the_agent_its_prompt_at_the_times_of_its_zone() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        record = await manager.create_schedule(
            "alice", cron="0 9 * * *", zone="America/New_York", prompt="good morning", schedule_id="morning"
        )
        assert record.next_at == datetime(2027, 1, 15, 14, tzinfo=UTC).timestamp()
        await asyncio.sleep(3 * 86_400)
        assert await fired_at(manager) == [6 * HOUR, 30 * HOUR, 54 * HOUR]
        tasks = await tasks_of(manager)
        assert [task.created_at - EPOCH for task in tasks] == [6 * HOUR, 30 * HOUR, 54 * HOUR]
        assert {(task.kind, task.prompt, task.cause, task.state) for task in tasks} == {
            (TaskKind.SCHEDULED, "good morning", "schedule:morning", TaskState.COMPLETED)
        }
        first = (await told(manager, "schedule.fired"))[0]
        assert first.cause == "schedule:morning"
        assert first.params == {
            "scheduleId": "morning",
            "agentId": "alice",
            "dueAt": EPOCH + 6 * HOUR,
            "nextAt": EPOCH + 30 * HOUR,
            "taskId": tasks[0].id,
        }
        record = manager.get_schedule("morning")
        assert (record.fired, record.last_at, record.next_at) == (3, EPOCH + 54 * HOUR, EPOCH + 78 * HOUR)
        assert await told(manager, "schedule.missed") == []

    play(scenario)


def test_an_interval_is_counted_from_the_creation_and_does_not_drift() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await asyncio.sleep(0.5)
        await manager.create_schedule("alice", interval_seconds=90, prompt="look")
        await asyncio.sleep(1000)
        assert await fired_at(manager) == [0.5 + 90 * number for number in range(1, 12)]

    play(scenario, latency_seconds=7.3)


def test_an_event_schedule_broadcasts_and_needs_no_agent() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        record = await manager.create_schedule(interval_seconds=10, event="tick", data={"n": (1, 2)})
        assert record.definition.data == {"n": [1, 2]}
        await asyncio.sleep(25)
        events = await manager._session.kernel.store.events("default", limit=10)
        assert [(each.name, each.sender, each.data) for each in events] == [
            ("tick", f"schedule:{record.id}", {"n": [1, 2]})
        ] * 2
        assert {note.params["eventId"] for note in await told(manager, "schedule.fired")} == {
            each.id for each in events
        }
        assert (await names_of(manager)).count("event.broadcast") == 2

    play(scenario)


def test_a_paused_schedule_rests_and_goes_on_from_now() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        record = await manager.create_schedule("alice", interval_seconds=100, prompt="go", missed="all")
        await asyncio.sleep(150)
        assert (await manager.pause_schedule(record)).paused
        with pytest.raises(StateError, match="paused already"):
            await manager.pause_schedule(record.id)
        await asyncio.sleep(1000)
        resumed = await manager.resume_schedule(record)
        assert (resumed.paused, resumed.next_at) == (False, EPOCH + 1200)
        with pytest.raises(StateError, match="not paused"):
            await manager.resume_schedule(record)
        await asyncio.sleep(100)
        assert await fired_at(manager) == [100, 1200]
        assert await told(manager, "schedule.missed") == []
        assert [note.params["paused"] for note in await told(manager, "schedule.changed")] == [True, False]

    play(scenario)


def test_a_deleted_schedule_fires_no_more_and_its_tasks_stay() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_schedule("alice", interval_seconds=10, prompt="go", schedule_id="s")
        await asyncio.sleep(15)
        deleted = await manager.delete_schedule("s")
        assert deleted.fired == 1
        await asyncio.sleep(100)
        assert len(await tasks_of(manager)) == 1
        assert manager.list_schedules() == []
        assert (await told(manager, "schedule.deleted"))[0].params == {"scheduleId": "s", "agentId": "alice"}
        with pytest.raises(UnknownScheduleError, match=r"no schedule 's'. Known ids: none yet"):
            await manager.delete_schedule("s")

    play(scenario)


def test_an_id_can_be_used_again_even_for_the_same_instants() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        for _ in range(2):
            await manager.create_schedule("alice", cron="* * * * *", prompt="go", schedule_id="s")
            await asyncio.sleep(61)
            await manager.delete_schedule("s")
            clock.set(-50)
        assert await fired_at(manager) == [60, 60]
        assert len({task.id for task in await tasks_of(manager)}) == 2
        assert manager.failure is None

    clock = VirtualClock()
    play(scenario, clock=clock)


def test_schedules_are_listed_by_agent_in_the_order_of_their_creation() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"aliases": ["al"]})
        await manager.create_agent("bob")
        for name, agent in (("z", "alice"), ("a", "bob"), ("m", "alice")):
            await manager.create_schedule(agent, interval_seconds=50, prompt="go", schedule_id=name)
            await asyncio.sleep(1)
        await manager.create_schedule(interval_seconds=50, event="tick", schedule_id="e")
        await asyncio.sleep(100)
        assert [each.id for each in manager.list_schedules()] == ["z", "a", "m", "e"]
        assert [each.id for each in manager.list_schedules("AL")] == ["z", "m"]
        with pytest.raises(UnknownScheduleError, match=r"no schedule 'x'. Known ids: a, e, m, z"):
            manager.get_schedule("x")

    play(scenario)


def test_the_same_call_again_with_the_same_id_is_the_same_schedule() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        first = await manager.create_schedule("alice", cron="0 9 * * *", prompt="go", schedule_id="s")
        await asyncio.sleep(2 * HOUR)
        again = await manager.create_schedule("Alice", cron="0 9 * * *", prompt="go", schedule_id="s")
        assert (again.created_at, again.fired) == (first.created_at, 1)
        for changed in ({"cron": "0 8 * * *"}, {"prompt": "other"}, {"missed": "all"}, {"zone": "Asia/Tokyo"}):
            fields: dict[str, Any] = {"cron": "0 9 * * *", "prompt": "go"} | changed
            with pytest.raises(DuplicateIdError, match="another schedule 's'"):
                await manager.create_schedule("alice", schedule_id="s", **fields)
        assert (await names_of(manager)).count("schedule.created") == 1

    play(scenario)


@pytest.mark.parametrize(
    ("policy", "fired", "missed"),
    [
        ("skip", [100, 1100], {"late": 9}),
        ("once", [100, 1000, 1100], {"late": 8}),
        ("all", [100, *range(200, 1101, 100)], {}),
    ],
)
def test_what_fell_due_while_the_process_was_down_goes_by_the_policy(
    policy: str, fired: list[float], missed: dict[str, int]
) -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_schedule("alice", interval_seconds=100, prompt="go", missed=policy)
        await asyncio.sleep(150)

    async def after(manager: AsyncAgentSessionManager) -> None:
        await asyncio.sleep(60)
        assert await fired_at(manager) == fired
        assert await missed_by_reason(manager) == missed
        assert len(await tasks_of(manager)) == len(fired)
        assert manager.list_schedules()[0].next_at == pytest.approx(EPOCH + 1200, abs=0.1)

    play_over_crash(before, after, crash_after_seconds=150, down_for_seconds=920)


@pytest.mark.parametrize(
    ("policy", "fired", "missed"),
    [
        ("skip", [120, 1080], {"late": 7}),
        ("once", [120, 960, 1080], {"late": 6}),
        ("all", [*range(120, 1081, 120)], {}),
    ],
)
def test_what_a_wall_clock_that_is_set_forward_passes_over_goes_by_the_policy(
    policy: str, fired: list[float], missed: dict[str, int]
) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_schedule("alice", cron="*/2 * * * *", prompt="go", missed=policy)
        await asyncio.sleep(150)
        clock.set(880)
        await asyncio.sleep(60)
        assert await fired_at(manager) == fired
        assert await missed_by_reason(manager) == missed
        assert len(await tasks_of(manager)) == len(fired)
        assert manager.list_schedules()[0].next_at == EPOCH + 1200

    clock = VirtualClock()
    play(scenario, clock=clock)


def test_a_wall_clock_that_is_set_back_fires_nothing_twice() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_schedule("alice", cron="*/2 * * * *", prompt="go", missed="all")
        await asyncio.sleep(550)
        clock.set(-400)
        await asyncio.sleep(449)
        assert await fired_at(manager) == [120, 240, 360, 480]
        await asyncio.sleep(200)
        assert await fired_at(manager) == [120, 240, 360, 480, 600, 720]

    clock = VirtualClock()
    play(scenario, clock=clock)


def test_a_sleeping_agent_has_one_task_of_a_schedule_waiting_not_a_thousand() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.sleep_agent("alice", duration_seconds=10_005)
        await manager.create_schedule("alice", interval_seconds=10, prompt="go", missed="skip")
        await manager.create_schedule("alice", interval_seconds=10, prompt="also", missed="once")
        await manager.create_schedule("alice", interval_seconds=1000, prompt="each", missed="all")
        await asyncio.sleep(10_004)
        waiting = [task.prompt for task in await tasks_of(manager) if task.state is TaskState.QUEUED]
        assert sorted(waiting) == ["also", *["each"] * 10, "go"]
        assert await missed_by_reason(manager) == {"still_waiting": 2 * 999}
        await asyncio.sleep(30)
        assert [each.fired for each in manager.list_schedules()] == [4, 4, 10]

    play(scenario, latency_seconds=0.1)


def test_while_a_task_of_the_schedule_runs_the_next_one_waits() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_schedule("alice", interval_seconds=10, prompt="go")
        await asyncio.sleep(45)
        assert [task.state for task in await tasks_of(manager)] == [TaskState.RUNNING, TaskState.QUEUED]
        assert await missed_by_reason(manager) == {"still_waiting": 2}

    play(scenario, latency_seconds=1000)


@pytest.mark.parametrize("policy", ["skip", "once", "all"])
def test_what_a_stopped_agent_or_a_full_queue_cannot_take_is_missed_and_announced(policy: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("stopped")
        await manager.stop_agent("stopped")
        await manager.create_agent("full", {"limits": {"max_queue_length": 1}}, auto_start=False)
        await manager.send_task("full", "waits")
        for agent in ("stopped", "full"):
            await manager.create_schedule(agent, interval_seconds=100, prompt="go", missed=policy)
        await manager.create_schedule("stopped", interval_seconds=100, event="tick", missed=policy)
        await manager.create_schedule("full", interval_seconds=100, event="tock", missed=policy)
        await asyncio.sleep(250)
        assert await missed_by_reason(manager) == {"agent_stopped": 4, "queue_full": 2}
        assert await tasks_of(manager, "stopped") == []
        assert [each.name for each in await manager._session.kernel.store.events("default", limit=9)] == [
            "tock",
            "tock",
        ]
        await manager.start_agent("stopped")
        await asyncio.sleep(100)
        assert [task.created_at for task in await tasks_of(manager, "stopped")] == [EPOCH + 300]
        note = (await told(manager, "schedule.missed"))[0]
        assert (note.params["policy"], note.params["count"], note.params["agentId"]) == (policy, 1, "stopped")

    play(scenario)


def test_years_of_missed_seconds_fill_the_queue_and_the_rest_is_counted() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_queue_length": 2500}}, auto_start=False)
        await manager.create_schedule("alice", interval_seconds=1, prompt="go", missed="all", schedule_id="s")

    async def after(manager: AsyncAgentSessionManager) -> None:
        await asyncio.sleep(0.5)
        record = manager.get_schedule("s")
        missed = (await missed_by_reason(manager))["queue_full"]
        assert record.fired == 2500
        assert record.last_at == record.created_at + 2500
        assert record.next_at is not None
        assert record.created_at + record.fired + missed + 1 == record.next_at > EPOCH + 10 * 365 * 86_400
        assert manager.get_agent_status("alice").queue_size == 2500

    play_over_crash(before, after, crash_after_seconds=0.5, down_for_seconds=10 * 365 * 86_400)


def test_a_scheduled_task_that_is_continued_does_not_meet_another_one() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_schedule("alice", interval_seconds=100, prompt="go")
        await asyncio.sleep(250)
        first, second = (task for task in await tasks_of(manager) if task.kind is TaskKind.SCHEDULED)
        for task in (first, second):
            assert (await manager.get_task(continuation_id(task))).parent_id == task.id
            assert (await manager.wait_task(task)).state is TaskState.COMPLETED

    asked: list[str] = []

    def say(request: Any) -> str:
        asked.append(request.step_id)
        return "[CONTINUE]\nmore to come" if len(asked) % 2 else "done"

    play(scenario, say)


def test_the_schedules_of_a_definition_come_with_the_agent_and_change_with_it() -> None:
    hourly = {"interval_seconds": 3600, "prompt": "hourly"}
    daily = {"cron": "0 9 * * *", "zone": "Europe/Berlin", "prompt": "daily"}

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"schedule": [hourly, daily]}, auto_start=False)
        assert [(each.id, each.agent_id) for each in manager.list_schedules("alice")] == [
            ("alice-1", "alice"),
            ("alice-2", "alice"),
        ]
        names = await names_of(manager)
        assert names[:3] == ["agent.created", "schedule.created", "schedule.created"]
        await asyncio.sleep(HOUR + 1)
        await manager.start_agent("alice", {"schedule": [hourly, {**daily, "prompt": "other"}, {**hourly}]})
        kept, changed, new = manager.list_schedules("alice")
        assert (kept.id, kept.fired, kept.created_at) == ("alice-1", 1, EPOCH)
        assert (changed.id, changed.definition.prompt, changed.created_at) == ("alice-2", "other", EPOCH + HOUR + 1)
        assert new.id == "alice-3"
        await manager.stop_agent("alice")
        await manager.start_agent("alice", {})
        assert manager.list_schedules() == []

    play(scenario)


def test_a_definition_whose_schedule_ids_are_taken_changes_nothing() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_schedule(interval_seconds=9, event="tick", schedule_id="alice-1")
        before = await manager.notifications()
        config = {"schedule": [{"interval_seconds": 5, "prompt": "go"}]}
        with pytest.raises(DuplicateIdError, match="'alice-1' already"):
            await manager.create_agent("alice", config)
        assert await manager.notifications() == before
        assert manager.list_agents() == []
        await manager.create_agent("alice", auto_start=False)
        with pytest.raises(DuplicateIdError, match="'alice-1' already"):
            await manager.start_agent("alice", config)
        assert manager.get_agent_status("alice").started is False
        assert manager.get_schedule("alice-1").definition.event == "tick"

    play(scenario)


@pytest.mark.parametrize(
    ("deed", "error", "message"),
    [
        (lambda m: m.create_schedule("alice", cron="0 25 * * *", prompt="go"), ScheduleError, "hour field '25'"),
        (lambda m: m.create_schedule("alice", cron="0 0 30 2 *", prompt="go"), ScheduleError, "never comes"),
        (lambda m: m.create_schedule("alice", interval_seconds=5, zone="X", prompt="go"), ScheduleError, "zone 'X'"),
        (lambda m: m.create_schedule("alice", interval_seconds=0.1, prompt="go"), ScheduleError, "interval_seconds"),
        (lambda m: m.create_schedule("alice", prompt="go"), ScheduleError, "cron or interval_seconds: neither"),
        (lambda m: m.create_schedule(interval_seconds=5, prompt="go"), ScheduleError, "needs an agent"),
        (lambda m: m.create_schedule("nobody", interval_seconds=5, prompt="go"), UnknownAgentError, "no agent"),
        (lambda m: m.create_schedule("alice", interval_seconds=5, prompt="x" * 101), TooLargeError, "at most 100"),
        (
            lambda m: m.create_schedule("alice", interval_seconds=cast(Any, "5"), prompt="go"),
            ScheduleError,
            "`interval_seconds` must be a number",
        ),
        (lambda m: m.create_schedule("alice", cron=cast(Any, 5), prompt="go"), ScheduleError, "`cron` must be text"),
        (lambda m: m.create_schedule("alice", interval_seconds=cast(Any, [5]), prompt="go"), ScheduleError, "seconds"),
        (
            lambda m: m.create_schedule(zone=cast(Any, None), event="e", cron="0 * * * *"),
            ScheduleError,
            "`zone` must be text",
        ),
        (
            lambda m: m.create_schedule("alice", interval_seconds=5, prompt="go", missed="never"),
            ScheduleError,
            'skip, once, all, not "never"',
        ),
        (
            lambda m: m.create_schedule(interval_seconds=5, event="e", data=object()),
            ScheduleError,
            "data: .* must be JSON",
        ),
        (
            lambda m: m.create_schedule("alice", interval_seconds=5, prompt="go", schedule_id="a~b"),
            InvalidInputError,
            "without '~'",
        ),
        (
            lambda m: m.create_schedule("alice", interval_seconds=5, prompt="go", schedule_id=""),
            InvalidInputError,
            "cannot be an id",
        ),
        (lambda m: m.pause_schedule("none"), UnknownScheduleError, "Known ids: there"),
        (lambda m: m.resume_schedule("there"), StateError, "not paused"),
        (lambda m: m.delete_schedule(cast(Any, None)), InvalidInputError, "by its id"),
        (lambda m: m.create_agent("x", {"schedule": [{"cron": "0 9 * * *"}]}), InvalidInputError, r"schedule\[0\]"),
    ],
)
def test_bad_input_is_refused_with_the_field_and_nothing_is_written(
    deed: Deed, error: type[WhispererError], message: str
) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_prompt_bytes": 100}})
        await manager.create_schedule(interval_seconds=1e6, event="tick", schedule_id="there")
        before, schedules = await manager.notifications(), manager.list_schedules()
        with pytest.raises(error, match=message):
            await deed(manager)
        await manager.flushed()
        assert await manager.notifications() == before
        assert manager.list_schedules() == schedules
        assert [status.agent_id for status in manager.list_agents()] == ["alice"]

    play(scenario)


def test_a_closed_session_fires_nothing_and_says_so() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_schedule("alice", interval_seconds=10, prompt="go")
        await manager.close()
        await asyncio.sleep(100)
        with pytest.raises(ClosedError):
            manager.list_schedules()

    play(scenario)


def test_schedules_come_back_as_they_were() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_schedule("alice", interval_seconds=100, prompt="go", schedule_id="runs")
        await manager.create_schedule("alice", cron="0 9 L * *", zone="Asia/Tokyo", prompt="x", schedule_id="rests")
        await manager.create_schedule(interval_seconds=7, event="tick", data=[1], missed="skip", schedule_id="gone")
        await manager.pause_schedule("rests")
        await manager.delete_schedule("gone")
        seen.extend(manager.list_schedules())

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert manager.list_schedules() == seen
        await asyncio.sleep(300)
        assert [each.fired for each in manager.list_schedules()] == [3, 0]

    seen: list[object] = []
    play_over_crash(before, after, crash_after_seconds=50)


def test_a_schedule_whose_zone_is_unknown_after_a_restart_is_paused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_schedule("alice", cron="0 * * * *", zone="Asia/Tokyo", prompt="go", schedule_id="s")
        await manager.create_schedule("alice", cron="0 * * * *", prompt="go", schedule_id="utc")

    async def after(manager: AsyncAgentSessionManager) -> None:
        monkeypatch.setattr("ai_whisperer.core.schedules.is_zone", lambda name: name == "UTC")
        await asyncio.sleep(2 * HOUR)
        assert manager.get_schedule("s").paused
        assert "zone 'Asia/Tokyo' is not known here" in (await told(manager, "schedule.changed"))[0].params["reason"]
        with pytest.raises(ScheduleError, match="Asia/Tokyo"):
            await manager.resume_schedule("s")
        assert (manager.get_schedule("s").paused, manager.get_schedule("utc").fired) == (True, 2)

    play_over_crash(before, after, crash_after_seconds=50)


def test_ten_thousand_schedules_cost_nothing_while_none_is_due() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await asyncio.gather(
            *(
                manager.create_schedule("alice", cron=f"{n % 60} {n // 60 % 6} 1 6 *", prompt="go", missed="skip")
                for n in range(10_000)
            )
        )
        timers = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        assert len([timer for timer in timers if not timer.cancelled()]) <= 1
        began = time.process_time()
        await asyncio.sleep(30 * 86_400)
        assert time.process_time() - began < 10  # a look at the clock each minute, 43,200 times; no look at schedules
        assert await told(manager, "schedule.fired") == []
        assert manager.get_agent_status("alice").state is AgentState.IDLE

    play(scenario)


def test_the_same_schedule_survives_many_closings_and_openings() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_schedule("alice", interval_seconds=10, prompt="go", missed="all", schedule_id="s")

    async def after(manager: AsyncAgentSessionManager) -> None:
        store = manager._session.kernel.store
        clock = manager._clock
        for _ in range(20):
            await manager.close()
            await asyncio.sleep(7)
            manager = opened(store, lambda _: "done", clock=cast(VirtualClock, clock))
            await manager.open()
            await asyncio.sleep(4)
        await manager.flushed()
        assert await fired_at(manager) == [10 * number for number in range(1, 23)]
        assert len(await tasks_of(manager)) == 22
        await manager.close()

    play_over_crash(before, after, crash_after_seconds=1, latency_seconds=0.1)


def test_a_schedule_wakes_its_agent_if_it_is_to() -> None:
    """Without that its prompt waits until the agent wakes by itself."""

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("sound", "light"):
            await manager.create_agent(name)
            await manager.sleep_agent(name, duration_seconds=10 * HOUR, wake_events=["alert"])
        await manager.create_schedule("sound", interval_seconds=HOUR, prompt="look", missed="skip")
        record = await manager.create_schedule("light", interval_seconds=HOUR, prompt="look", wake=True)
        assert record.definition.wake
        await asyncio.sleep(HOUR + 60)
        assert [task.state for task in await tasks_of(manager, "sound")] == [TaskState.QUEUED]
        assert manager.get_agent_status("sound").state is AgentState.SLEEPING
        assert [(task.prompt, task.state) for task in await tasks_of(manager, "light")] == [
            ("look", TaskState.COMPLETED)
        ]
        assert manager.get_agent_status("light").state is AgentState.IDLE

    play(scenario)


def test_an_agent_that_is_about_to_sleep_stays_awake_for_a_schedule_that_wakes_it() -> None:
    """What it fired a moment before would otherwise wait for ever, since nothing fires again while it waits."""

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "work for half a minute")
        await manager.create_schedule("alice", interval_seconds=10, prompt="look", wake=True)
        await asyncio.sleep(12)
        assert [task.state for task in await tasks_of(manager)] == [TaskState.RUNNING, TaskState.QUEUED]
        await manager.sleep_agent("alice", wake_events=["never"])
        await asyncio.sleep(60)
        assert (await tasks_of(manager))[1].state is TaskState.COMPLETED

    play(scenario, latency_seconds=30.0)


def test_an_event_needs_no_wake() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(ScheduleError, match="wake goes with a prompt only"):
            await manager.create_schedule(interval_seconds=10, event="tick", wake=True)

    play(scenario)


def test_the_hourly_check_of_the_monitor_fires_by_itself() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("monitor")
        await manager.sleep_agent("monitor", wake_events=["alert", "hourly_check"])
        await asyncio.sleep(HOUR + 60)
        assert [event.name for event in await manager.list_events()] == ["hourly_check"]
        assert [task.kind for task in await tasks_of(manager, "monitor")] == ["wake_up"]

    play(scenario)


def test_the_round_of_debbie_wakes_her() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("debbie")
        await manager.sleep_agent("debbie", wake_events=["never"])
        await asyncio.sleep(HOUR / 2 + 60)
        assert [(task.kind, task.state) for task in await tasks_of(manager, "debbie")] == [("scheduled", "completed")]

    play(scenario)

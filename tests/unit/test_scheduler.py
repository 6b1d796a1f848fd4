import asyncio
import math

import pytest

from ai_whisperer.runtime.session.clock import SessionClock
from ai_whisperer.runtime.session.timers import Timers
from ai_whisperer.simulation.loop import VirtualClock, simulate


def test_callbacks_come_in_the_order_of_their_times_and_past_ones_at_once() -> None:
    async def scenario() -> list[tuple[str, float]]:
        clock = VirtualClock()
        start = clock.now()
        scheduler = Timers(SessionClock(clock))
        fired: list[tuple[str, float]] = []
        for name, delay in (("late", 7200.0), ("early", 5.0), ("past", -10.0), ("middle", 90.0)):
            scheduler.at(start + delay, name, lambda name=name: fired.append((name, clock.now() - start)))  # type: ignore[misc]
        await asyncio.sleep(8000)
        return fired

    assert simulate(scenario()) == [("past", 0.0), ("early", 5.0), ("middle", 90.0), ("late", 7200.0)]


def test_a_cancelled_or_replaced_entry_does_not_fire() -> None:
    async def scenario() -> list[str]:
        clock = VirtualClock()
        scheduler = Timers(SessionClock(clock))
        fired: list[str] = []
        scheduler.at(clock.now() + 1, "cancelled", lambda: fired.append("cancelled"))
        scheduler.at(clock.now() + 1, "replaced", lambda: fired.append("old"))
        scheduler.at(clock.now() + 2, "replaced", lambda: fired.append("new"))
        scheduler.cancel("cancelled")
        await asyncio.sleep(10)
        return fired

    assert simulate(scenario()) == ["new"]


def test_what_is_never_due_wakes_nobody() -> None:
    async def scenario() -> int:
        scheduler = Timers(SessionClock(VirtualClock()))
        scheduler.at(math.inf, "never", lambda: None)
        return len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]

    assert simulate(scenario()) == 0


def test_ten_thousand_sleepers_need_one_timer_of_the_event_loop() -> None:
    async def scenario() -> int:
        clock = VirtualClock()
        scheduler = Timers(SessionClock(clock))
        fired: list[int] = []
        for number in range(10_000):
            scheduler.at(clock.now() + 10_000 + number, str(number), lambda: fired.append(1))
        timers = len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]
        await asyncio.sleep(30_000)
        assert len(fired) == 10_000
        return timers

    assert simulate(scenario()) == 1


def test_a_wall_clock_that_was_set_forward_is_noticed_within_a_minute() -> None:
    async def scenario() -> float:
        clock = VirtualClock(0.0)
        scheduler = Timers(SessionClock(clock))
        fired: list[float] = []
        scheduler.at_wall(100_000, "far", lambda: fired.append(clock.elapsed()))
        await asyncio.sleep(10)
        clock.set(100_000)
        await asyncio.sleep(200)
        return fired[0]

    assert simulate(scenario()) <= 60.0


@pytest.mark.parametrize("seconds", [3600.0, -3600.0])
def test_what_lasts_for_a_while_is_over_then_however_the_wall_clock_is_set(seconds: float) -> None:
    async def scenario() -> float:
        clock = VirtualClock(0.0)
        session = SessionClock(clock)
        scheduler = Timers(session)
        fired: list[float] = []
        scheduler.at(session.now() + 100, "lease", lambda: fired.append(clock.elapsed()))
        await asyncio.sleep(10)
        clock.set(seconds)
        await asyncio.sleep(8000)
        return fired[0]

    assert simulate(scenario()) == 100.0


def test_a_wall_clock_that_was_set_back_lets_its_times_wait() -> None:
    async def scenario() -> float:
        clock = VirtualClock(0.0)
        scheduler = Timers(SessionClock(clock))
        fired: list[float] = []
        scheduler.at_wall(100, "noon", lambda: fired.append(clock.elapsed()))
        await asyncio.sleep(10)
        clock.set(-3600)
        await asyncio.sleep(8000)
        return fired[0]

    assert simulate(scenario()) == 3700.0


def test_an_entry_that_goes_by_the_other_clock_from_now_on_fires_once() -> None:
    async def scenario() -> list[float]:
        clock = VirtualClock(0.0)
        scheduler = Timers(SessionClock(clock))
        fired: list[float] = []
        scheduler.at(10, "key", lambda: fired.append(clock.elapsed()))
        scheduler.at_wall(20, "key", lambda: fired.append(clock.elapsed()))
        await asyncio.sleep(100)
        return fired

    assert simulate(scenario()) == [20.0]


def test_a_callback_that_fails_keeps_no_other_from_its_time() -> None:
    async def scenario() -> list[str]:
        loop = asyncio.get_running_loop()
        complaints: list[str] = []
        loop.set_exception_handler(lambda _, context: complaints.append(str(context["exception"])))
        clock = VirtualClock()
        scheduler = Timers(SessionClock(clock))
        fired: list[str] = []
        scheduler.at(clock.now() + 1, "bad", lambda: fired.remove("nothing"))
        scheduler.at(clock.now() + 2, "good", lambda: fired.append("good"))
        await asyncio.sleep(10)
        assert len(complaints) == 1
        return fired

    assert simulate(scenario()) == ["good"]


def test_after_the_close_nothing_is_called_back_any_more() -> None:
    async def scenario() -> list[str]:
        clock = VirtualClock()
        scheduler = Timers(SessionClock(clock))
        fired: list[str] = []
        scheduler.at(clock.now() + 1, "before", lambda: fired.append("before"))
        scheduler.close()
        scheduler.at(clock.now() + 1, "after", lambda: fired.append("after"))
        await asyncio.sleep(10)
        return fired

    assert simulate(scenario()) == []


def test_entries_that_were_cancelled_do_not_pile_up_behind_one_that_is_live() -> None:
    async def main() -> None:
        scheduler = Timers(SessionClock(VirtualClock()))
        scheduler.at(VirtualClock().now() + 60, "live", lambda: None)
        for number in range(1000):
            scheduler.at(VirtualClock().now() + 1e6, f"key{number}", lambda: None)
            scheduler.cancel(f"key{number}")
        assert len(scheduler._steady._heap) < 100

    simulate(main())


def test_what_was_cancelled_keeps_nothing_from_its_time_after_the_clock_has_followed_the_wall_clock() -> None:
    async def scenario() -> list[float]:
        clock = VirtualClock(0.0)
        session = SessionClock(clock)
        scheduler = Timers(session)
        fired: list[float] = []
        scheduler.at(session.now() + 1000, "sleep", lambda: fired.append(-1.0))
        scheduler.cancel("sleep")
        clock.set(3600)
        session.settle(after=session.now())
        scheduler.at(session.now() + 10, "lease", lambda: fired.append(clock.elapsed()))
        await asyncio.sleep(2000)
        return fired

    assert simulate(scenario()) == [10.0]

"""Nodes go by the clock of the database where their own is wrong, and by their own where it is not."""

from __future__ import annotations

import time

import pytest

from ai_whisperer.cluster.clock import ClusterClock


def shown(clock: ClusterClock) -> float:
    """How far the clock is ahead of the machine's."""
    return round(clock.now() - time.time(), 1)


@pytest.mark.parametrize("ahead", [600.0, -600.0, 3.0])
def test_a_clock_that_is_off_is_corrected_and_a_person_told(ahead: float, caplog: pytest.LogCaptureFixture) -> None:
    clock = ClusterClock()
    clock.notice(ahead)
    assert shown(clock) == ahead
    side = "behind" if ahead > 0 else "ahead of"
    assert f"{abs(ahead):.0f} s {side} that of the database" in caplog.text
    caplog.clear()
    clock.notice(ahead + 0.7)
    clock.notice(None)
    assert shown(clock) == ahead, "small differences move nothing"
    assert not caplog.records


def test_when_the_machine_is_set_right_its_own_clock_counts_again() -> None:
    clock = ClusterClock()
    clock.notice(600.0)
    clock.notice(1.5)
    assert shown(clock) == 1.5, "near the limit it does not go to and fro"
    clock.notice(0.3)
    assert shown(clock) == 0
    assert clock.ahead == 0


def test_a_clock_that_is_right_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    clock = ClusterClock()
    for ahead in (0.0, 1.9, -1.9):
        clock.notice(ahead)
        assert shown(clock) == 0
    assert not caplog.records

"""How much longer somebody is waited for whose time is up."""

from __future__ import annotations

import pytest

from ai_whisperer.core.lateness import spared_seconds


@pytest.mark.parametrize(
    ("late", "times", "wanted"),
    [(0.0, 1, 0.0), (0.09, 4, 0.0), (0.5, 0, 0.5), (0.5, 4, 0.5), (0.5, 5, 0.0), (100.0, 0, 10.0), (0.0, 5, 0.0)],
)
def test_somebody_is_spared_for_as_long_as_we_were_late(late: float, times: int, wanted: float) -> None:
    assert spared_seconds(late_seconds=late, patience_seconds=10.0, times_spared=times) == wanted


def test_on_time_somebody_is_spared_for_a_turn_once() -> None:
    assert 0 < spared_seconds(late_seconds=0.0, patience_seconds=10.0, times_spared=0) < 0.001

"""The garbage collector of a server."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ai_whisperer.server.collector import settle_collector


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_what_is_there_is_not_looked_at_again_and_new_objects_less_often() -> None:
    before = gc.get_threshold()
    settle_collector()
    assert gc.get_freeze_count() > 1_000
    assert gc.get_threshold()[0] > before[0]


def test_what_becomes_garbage_later_is_found_all_the_same() -> None:
    settle_collector()
    made: list[object] = []
    made.append(made)
    kept = len(gc.get_objects())
    del made
    assert gc.collect() >= 1
    assert len(gc.get_objects()) < kept

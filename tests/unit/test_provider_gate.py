"""The gate of an account without a session: what time does, what a crowd costs, how long it is kept."""

from __future__ import annotations

import asyncio
import gc
import math
import weakref
from collections.abc import Iterable

import pytest

from ai_whisperer.core.provider_gate import Place, ProviderGate, Waiting
from ai_whisperer.domain.providers import Account
from ai_whisperer.runtime.limits.provider_turns import gate_of

ACCOUNT = Account(provider="test")


class WatchedGate(ProviderGate):
    """Counts how often all that wait are looked at."""

    looked = 0

    def all_waiting(self) -> Iterable[Waiting]:
        self.looked += 1
        return super().all_waiting()


def waiting(number: int, *, arrived_at: float, patience: float = 3_600.0, outage: float = 1_800.0) -> Waiting:
    place = Place(0, arrived_at, number)
    return Waiting(place, arrived_at=arrived_at, max_retry_after_seconds=patience, max_outage_seconds=outage)


def held(gate: ProviderGate, seconds: float) -> ProviderGate:
    """The gate after a provider has asked at the time 0 to be left alone for so long."""
    passed = gate.enter(0.0)
    assert passed is not None
    gate.refused(passed, 0.0, seconds=seconds, is_asked_for=True, reason="Slow down.")
    return gate


def test_whoever_comes_to_a_gate_that_is_held_does_not_look_at_all_who_wait_there() -> None:
    gate = WatchedGate()
    held(gate, 60.0)
    for number in range(1_000):
        gate.line_up(waiting(number, arrived_at=1.0))
        assert gate.let_in(1.0) == []
        assert gate.look_again_at(1.0) == 60.0
        assert (gate.given_up(1.0), gate.moving_on(1.0)) == ([], [])
    assert gate.looked == 0


def test_the_least_patient_is_let_in_when_its_patience_is_over_whoever_has_left_before() -> None:
    gate = held(ProviderGate(), 1_000.0)
    gone, hasty = waiting(1, arrived_at=1.0, patience=10.0), waiting(2, arrived_at=5.0, patience=20.0)
    for each in (gone, hasty, waiting(3, arrived_at=6.0)):
        gate.line_up(each)
    gate.leave(gone)
    assert gate.let_in(11.0) == []
    assert gate.look_again_at(11.0) == 25.0
    ((first, _),) = gate.let_in(25.0)
    assert first is hasty
    assert gate.let_in(26.0) == [], "one tries"
    assert gate.look_again_at(26.0) == 1_000.0


def test_all_whose_patience_is_over_try_one_after_the_other() -> None:
    gate = held(ProviderGate(), 1_000.0)
    hasty = [waiting(number, arrived_at=1.0, patience=10.0) for number in range(3)]
    for each in hasty:
        gate.line_up(each)
    for expected in hasty:
        ((found, passed),) = gate.let_in(20.0)
        assert found is expected
        gate.refused(passed, 20.0, seconds=1.0, is_asked_for=False, reason="Slow down.")


def test_each_is_given_up_when_its_own_time_is_over() -> None:
    gate = held(ProviderGate(), 1_000.0)
    short, long = waiting(1, arrived_at=10.0, outage=50.0), waiting(2, arrived_at=10.0, outage=90.0)
    for each in (short, long):
        gate.line_up(each)
    assert [gate.given_up(time) for time in (59.0, 60.0, 99.0, 100.0, 101.0)] == [[], [short], [], [long], []]
    assert gate.waiting == 0


@pytest.mark.parametrize(("asked_for", "lasting"), [(5.0, 0.0), (60.0, 59.0), (math.inf, math.inf)])
def test_only_a_long_hold_is_a_reason_to_ask_another_model(asked_for: float, lasting: float) -> None:
    assert held(ProviderGate(), asked_for).lasting_seconds(1.0) == lasting


def test_a_provider_that_is_down_is_a_reason_to_ask_another_model_while_one_tries_too() -> None:
    gate = ProviderGate()
    for _ in range(5):
        passed = gate.enter(0.0)
        assert passed is not None
        gate.failed(passed, 0.0, seconds=2.0, reason="down")
    assert gate.lasting_seconds(1.0) == 10.0
    assert gate.lasting_seconds(2.0) == 0.0, "somebody has to try"
    assert gate.enter(2.0) is not None
    assert gate.lasting_seconds(2.0) == 10.0


def test_the_gates_of_an_event_loop_that_is_over_are_not_kept() -> None:
    async def asks() -> weakref.ref[asyncio.AbstractEventLoop]:
        event_loop = asyncio.get_running_loop()
        gate = gate_of(ACCOUNT, event_loop)
        assert gate is gate_of(ACCOUNT, event_loop)
        return weakref.ref(event_loop)

    ended = asyncio.run(asks())
    asyncio.run(asks())
    gc.collect()
    assert ended() is None

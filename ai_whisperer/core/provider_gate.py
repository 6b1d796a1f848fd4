"""Who may ask one account of a provider, and when: pure, with the time given by whoever asks.

How many requests may be under way at once is found out. It begins with few and doubles while the provider takes them;
where it refuses one, it goes back by a third and then comes near that number again in ever smaller steps, and beyond it
in growing ones. All that a provider refuses of those that began together is one refusal.

While a provider asks to be left alone, or is down, nobody begins. Then one does, and if it is taken, two, four …
`runtime/limits/provider_turns` does what is decided here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from ai_whisperer.domain.providers import GateState

FIRST_ALLOWED = 32.0
"""So many begin at once where nothing is known of the account yet."""
_KEPT = 0.7
"""So much is kept of what was allowed when a request is refused."""
_LEAST_GAIN = 0.25
"""When all that are allowed were taken once, so many more are, however near the number is at which one was refused."""
_OUTAGES_IN_A_ROW = 5
"""After so many outages without a request that is taken between them the provider counts as down for all."""
LASTING_SECONDS = 10.0
"""Whoever has another model does not wait longer than this for an account that lets nobody in."""
_ACCOUNTED_SECONDS = 120.0
"""So long a request that was taken may be the reason why the next one is refused: limits mostly hold for a minute."""


class Place(NamedTuple):
    """The place in the line: what is urgent first, then who came first."""

    rank: int
    since: float
    number: int


class Waiting:
    """One request that waits for its turn.

    `most` is how many may be under way beside it (0: as many as there can be). It is left alone no longer than
    `max_retry_after_seconds` because the provider asks for that, and waits for a provider that takes nobody for
    `max_outage_seconds`. `moves_on` says that there is another model to ask.
    """

    __slots__ = ("arrived_at", "is_over", "max_outage_seconds", "max_retry_after_seconds", "most", "moves_on", "place")

    def __init__(
        self,
        place: Place,
        *,
        arrived_at: float,
        max_retry_after_seconds: float,
        max_outage_seconds: float,
        most: int = 0,
        moves_on: bool = False,
    ) -> None:
        self.place = place
        self.arrived_at = arrived_at
        self.max_retry_after_seconds = max_retry_after_seconds
        self.max_outage_seconds = max_outage_seconds
        self.most = most
        self.moves_on = moves_on
        self.is_over = False


class Pass:
    """One request that was let in, until it has `ended`."""

    __slots__ = ("began_alone", "began_at", "is_over", "is_taken", "round")

    def __init__(self, *, round_: int, began_at: float, began_alone: bool) -> None:
        self.round = round_
        self.began_at = began_at
        self.began_alone = began_alone
        self.is_taken = False
        self.is_over = False


class ProviderGate:
    """The gate of one account. Times are seconds of a clock that only rises."""

    def __init__(self) -> None:
        self.allowed = FIRST_ALLOWED
        self.under_way = 0
        self.waiting = 0
        self.held_until = -math.inf
        self.is_down = False
        self.is_asked_for = False
        """Whether the provider itself named the time until which it is left alone."""
        self.reason = ""
        self.requests = 0
        self.refusals = 0
        self.outages = 0
        self._knee = math.inf
        self._round = 0
        self._taken_at = -math.inf
        """When the latest of those that were taken began."""
        self._in_round = 0
        self._taken_in_round = 0
        self._resumes = False
        self._outages_in_a_row = 0
        self.refusals_in_a_row = 0
        """How often all had to wait since a request was taken last."""
        self._held_since = -math.inf
        self._shut_since: float | None = None
        self._lines: dict[int, list[tuple[Place, Waiting]]] = {}
        self._moving_on = 0
        self._no_patience_before = math.inf
        self._none_gives_up_before = math.inf
        """No one of those that wait does so before then: until that time nobody looks at all of them."""

    @property
    def state(self) -> GateState:
        if self._shut_since is not None:
            return GateState.DOWN if self.is_down else GateState.HELD
        return GateState.LIMITED if self.waiting else GateState.OPEN

    def lasting_seconds(self, now: float) -> float:
        """For how long it lets nobody in, if that is so long that another model is the better choice; else 0."""
        left = self.held_until - now
        if self.is_down and (left > 0 or self._in_round > 0):
            return max(left, LASTING_SECONDS)
        return left if left > LASTING_SECONDS else 0.0

    def enter(self, now: float, *, most: int = 0) -> Pass | None:
        """Let a request in at once, if nobody waits before it and there is room."""
        if self.waiting:
            return None
        self._resume(now)
        return self._begin(now) if self._has_room(now, most) else None

    def line_up(self, waiting: Waiting) -> None:
        heappush(self._lines.setdefault(waiting.most, []), (waiting.place, waiting))
        self.waiting += 1
        self._moving_on += waiting.moves_on
        self._no_patience_before = min(self._no_patience_before, self._patient_until(waiting))
        self._none_gives_up_before = min(self._none_gives_up_before, self._waits_until(waiting))

    def leave(self, waiting: Waiting) -> None:
        """It waits no longer: its task was cancelled, paused, or looks elsewhere."""
        if not waiting.is_over:
            waiting.is_over = True
            self.waiting -= 1
            self._moving_on -= waiting.moves_on

    def let_in(self, now: float) -> list[tuple[Waiting, Pass]]:
        """Those whose turn it is, first the first. Whoever is let in does not wait any more."""
        found = []
        while (chosen := self._next(now)) is not None:
            self.leave(chosen)
            found.append((chosen, self._begin(now)))
        return found

    def look_again_at(self, now: float) -> float | None:
        """When somebody may be let in because time has passed; None if only what happens can bring that."""
        if not self.waiting or now >= self.held_until:
            return None
        return self.held_until if self._in_round else min(self.held_until, self._no_patience_before)

    def taken(self, passed: Pass) -> None:
        """The provider takes the request: a gate that let nobody in is open again. It is said again with the answer."""
        if passed.is_over:
            return
        self._outages_in_a_row = self.refusals_in_a_row = 0
        if passed.is_taken:
            return
        passed.is_taken = True
        if passed.began_at > self._taken_at:
            self._taken_at = passed.began_at
        if passed.round != self._round:
            return  # it began before the provider refused others
        self._taken_in_round += 1
        if self.under_way * 2 >= self.allowed or self.waiting:
            gain = min(max(abs(self._knee - self.allowed) / 2, _LEAST_GAIN), self.allowed)
            self.allowed += gain / self.allowed
        if self._shut_since is None:
            return
        if self.is_down:
            self.allowed = self.under_way + 1.0
        self._shut_since, self.held_until, self.is_down, self._resumes, self.reason = None, -math.inf, False, False, ""

    def ended(self, passed: Pass) -> None:
        """The request has ended, however it did. It may be said twice."""
        if not passed.is_over:
            passed.is_over = True
            self.under_way -= 1
            self._in_round -= passed.round == self._round

    def stands_alone(self, passed: Pass) -> bool:
        """Whether nothing else was under way, nor taken lately: what the request is refused is its own matter."""
        was_taken_lately = passed.began_at <= self._taken_at + _ACCOUNTED_SECONDS
        return passed.began_alone and self.under_way == 1 and not was_taken_lately

    def refused(self, passed: Pass, now: float, *, seconds: float, is_asked_for: bool, reason: str) -> None:
        """The provider asks for fewer requests; the one that was refused is repeated after so many seconds.

        All wait if the provider says until when, or if there is nothing under way any more that may show what it takes.
        """
        self.refusals += 1
        under_way = self.under_way
        self.ended(passed)
        flows = self._taken_in_round > 0 or self.under_way > 0
        if passed.round == self._round:
            self._begin_round()
            self._knee = max(min(self.allowed, under_way), 1.0)
            self.allowed = max(self._knee * _KEPT, 1.0)
        if is_asked_for or not flows:
            self.refusals_in_a_row += 1
            self._hold(now, seconds, reason, is_asked_for=is_asked_for)

    def failed(self, passed: Pass, now: float, *, seconds: float, reason: str) -> None:
        """The provider is down, or cannot be reached; the request that found that is repeated after so many seconds."""
        self.outages += 1
        self.ended(passed)
        self._outages_in_a_row += 1
        if self.is_down:
            if passed.round == self._round:
                self._hold(now, seconds, reason, is_asked_for=False)
        elif self._outages_in_a_row >= _OUTAGES_IN_A_ROW:
            self.is_down = True
            self._knee = math.inf
            self._hold(now, seconds, reason, is_asked_for=False)

    def given_up(self, now: float) -> list[Waiting]:
        """Those that have waited long enough for a gate that lets nobody in; they do not wait any more."""
        if self._shut_since is None or now < self._none_gives_up_before:
            return []
        found, self._none_gives_up_before = self._due(now, self._waits_until)
        return self._sent_away(found)

    def moving_on(self, now: float) -> list[Waiting]:
        """Those that ask another model rather than to wait so long; they do not wait any more."""
        if not self._moving_on or not self.lasting_seconds(now):
            return []
        return self._sent_away([each for each in self.all_waiting() if each.moves_on])

    def shut_seconds(self, waiting: Waiting, now: float) -> float:
        """How long it has waited while nobody was let in."""
        return 0.0 if self._shut_since is None else max(now - max(self._shut_since, waiting.arrived_at), 0.0)

    def shut_for(self, now: float) -> float:
        """How long nobody was let in, up to now."""
        return 0.0 if self._shut_since is None else max(now - self._shut_since, 0.0)

    def all_waiting(self) -> Iterable[Waiting]:
        return (each for line in self._lines.values() for _, each in line if not each.is_over)

    def _hold(self, now: float, seconds: float, reason: str, *, is_asked_for: bool) -> None:
        if self._shut_since is None:
            self._shut_since = now
        if now >= self.held_until:
            self._held_since = now
            self._begin_round()
        self.held_until = max(self.held_until, now + seconds)
        self.is_asked_for = is_asked_for
        self.reason = reason
        self._resumes = True

    def _resume(self, now: float) -> None:
        """When all had to wait, begin with one, or with as many as have been under way all the time."""
        if self._resumes and now >= self.held_until:
            self._resumes = False
            self.allowed = max(min(self.allowed, self.under_way), 1.0)

    def _begin_round(self) -> None:
        self._round += 1
        self._in_round = self._taken_in_round = 0

    def _begin(self, now: float) -> Pass:
        passed = Pass(round_=self._round, began_at=now, began_alone=self.under_way == 0)
        self.under_way += 1
        self._in_round += 1
        self.requests += 1
        return passed

    def _has_room(self, now: float, most: int) -> bool:
        if now < self.held_until:
            return False
        has_room = not self._in_round if self.is_down else self.under_way < int(self.allowed)
        return has_room and (not most or self.under_way < most)

    def _next(self, now: float) -> Waiting | None:
        if not self.waiting:
            self._lines.clear()
            self._no_patience_before = self._none_gives_up_before = math.inf
            return None
        if now < self.held_until:
            if self._in_round or now < self._no_patience_before:
                return None
            impatient, later = self._due(now, self._patient_until)
            self._no_patience_before = now if impatient else later
            return min(impatient, key=lambda each: each.place, default=None)
        self._resume(now)
        lines = [line for most, line in self._lines.items() if self._has_room(now, most) and _cleared(line)]
        return min(lines, key=lambda line: line[0][0])[0][1] if lines else None

    def _patient_until(self, waiting: Waiting) -> float:
        return max(self._held_since, waiting.arrived_at) + waiting.max_retry_after_seconds

    def _waits_until(self, waiting: Waiting) -> float:
        since = waiting.arrived_at if self._shut_since is None else max(self._shut_since, waiting.arrived_at)
        return since + waiting.max_outage_seconds

    def _due(self, now: float, time_of: Callable[[Waiting], float]) -> tuple[list[Waiting], float]:
        """Those whose time has come, and when that of the next one does."""
        times = [(time_of(each), each) for each in self.all_waiting()]
        later = min((time for time, _ in times if time > now), default=math.inf)
        return [each for time, each in times if time <= now], later

    def _sent_away(self, found: list[Waiting]) -> list[Waiting]:
        for each in found:
            self.leave(each)
        return found


def _cleared(line: list[tuple[Place, Waiting]]) -> bool:
    """Whether somebody waits in the line. Those at its head that do not are taken out."""
    while line and line[0][1].is_over:
        heappop(line)
    return bool(line)

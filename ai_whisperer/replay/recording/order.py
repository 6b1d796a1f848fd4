"""Who goes first in a replay: the recorded log is the schedule.

Of all that is ready to run at one moment, each task at work, each input, each timer and the line for places of loops
has a number: that of the entry that is recorded next of it. The lowest goes first, and only when all entries before are
told. What tells nothing before something comes from outside, or before time goes on, goes when nothing else can.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from ai_whisperer.core.causal_paths import Paths
from ai_whisperer.replay.recording.comparing import LogComparison
from ai_whisperer.replay.recording.format import Entry, Recording
from ai_whisperer.replay.recording.inputs import OPEN
from ai_whisperer.replay.recording.turns import AT_ONCE, LAST, LATE_SECONDS, SOON
from ai_whisperer.runtime.agents.loop import AILoop
from ai_whisperer.runtime.agents.work import AgentWork
from ai_whisperer.runtime.limits.slots import Again, LoopSlots
from ai_whisperer.runtime.session.current import current_loop
from ai_whisperer.runtime.session.timers import Timers

INPUT = "input "
"""How the name of a task begins that makes an input; the number of its first entry follows."""
_LOOP = "loop "
_DEADLINE = "deadline of "


class _Task(NamedTuple):
    """A task at work."""

    id: str


class _Overdue(NamedTuple):
    """What ends a task whose time is over."""

    task_id: str


class _Input(NamedTuple):
    """What makes an input. `seq` is its first entry."""

    seq: int


_Owner = _Task | _Overdue | _Input | Timers | LoopSlots


class RecordedOrder:
    """The places of what is ready to run. The comparison knows what was told."""

    def __init__(
        self, recording: Recording, paths: Paths, comparison: LogComparison, *, now: Callable[[], float]
    ) -> None:
        self._paths = paths
        self._now = now
        self._ends = [*(each.seq - 1 for each in recording.inputs if each.call == OPEN), recording.header.last]
        self._comparison = comparison
        self._is_told = comparison.is_told
        self._by_cause: dict[str, _Line] = defaultdict(_Line)
        self._times: dict[int, float] = {}
        self._from_outside = {each.seq for each in recording.replies if each.seq}
        self._from_outside |= {each.seq for each in recording.results if each.seq}
        for entry in recording.entries:
            self._times[entry.seq] = entry.at
            self._by_cause[_owner_of(entry)].numbers.append(entry.seq)
            if entry.name == "async.task.started":
                self._by_cause[f"begins {entry.params['agentId']}"].numbers.append(entry.seq)
                if entry.cause != f"task:{entry.params['taskId']}":
                    self._by_cause[f"task:{entry.params['taskId']}"].numbers.append(entry.seq)
            if entry.name == "step.interrupted":
                self._from_outside.add(entry.seq)

    def turn(self, place: int) -> float | None:
        """When what has this place was told, if all before was."""
        return self._times.get(place, 0.0) if place <= self._comparison.first_untold else None

    def time_of(self, number: int) -> float | None:
        """When an entry was told."""
        return self._times.get(number)

    def end(self) -> int:
        """The number of the last entry of the process that lives now."""
        place = bisect_left(self._ends, self._comparison.first_untold)
        return self._ends[place] if place < len(self._ends) else LAST

    def place(self, handle: asyncio.Handle) -> int:
        """The number of the entry that this leads to; `AT_ONCE` for what serves others."""
        match owner := _owner(handle):
            case None:
                return AT_ONCE
            case _Task():
                number = self._of_task(owner.id)
                return number + SOON if number in self._from_outside else self._held_back(number)
            case _Input():
                return owner.seq + SOON if self._is_told(owner.seq) else owner.seq
            case _Overdue():
                return self._held_back(self._of_timer(f"deadline:{owner.task_id}"))
            case Timers():
                return self._held_back(min(map(self._of_timer, owner.due()), default=0))
        first = owner.line_up(self._place_in_line)
        return AT_ONCE if first is None else self._held_back(self._place_in_line(first))

    def _place_in_line(self, who: object) -> int:
        """The number of the entry that is recorded next of one that waits for a place.

        Who has nothing to do with one lets it go at once.
        """
        if isinstance(who, AgentWork):
            return self._next(f"begins {who.agent_id}") if who.would_begin else AT_ONCE
        if isinstance(who, AILoop):
            return self._of_task(who.running.journal.task.id) if who.is_ready else AT_ONCE
        return self._of_task(who.task_id) if isinstance(who, Again) else LAST

    def _held_back(self, number: int) -> int:
        """The place of what leads to this entry, if that is told about now: else it leads to something else before."""
        at = self._times.get(min(number, self.end()), float("inf"))
        return number if at <= self._now() + LATE_SECONDS else number + SOON

    def _of_task(self, task_id: str) -> int:
        return self._next(f"task:{self._paths.causal(task_id)}")

    def _of_timer(self, key: str) -> int:
        return self._next(f"timer:{self._paths.causal(key)}")

    def _next(self, cause: str) -> int:
        line = self._by_cause.get(cause)
        return LAST if line is None else line.first(self._is_told)


class _Line:
    """The numbers of the entries of one cause."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._next = 0

    def first(self, is_told: Callable[[int], bool]) -> int:
        while self._next < len(self.numbers) and is_told(self.numbers[self._next]):
            self._next += 1
        return self.numbers[self._next] if self._next < len(self.numbers) else LAST


def _owner_of(entry: Entry) -> str:
    return f"task:{entry.params['taskId']}" if entry.name == "step.interrupted" else entry.cause


def _owner(handle: asyncio.Handle) -> _Owner | None:
    """Whose next entry this leads to."""
    runs: Any = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]  # noqa: SLF001 - no other way
    if isinstance(runs, asyncio.Task):
        name = runs.get_name()
        if name.startswith(_LOOP):
            return _Task(name[len(_LOOP) :])
        if name.startswith(_DEADLINE):
            return _Overdue(name[len(_DEADLINE) :])
        if name.startswith(INPUT):
            return _Input(int(name[len(INPUT) :]))
        runs = handle._context.get(current_loop)  # type: ignore[attr-defined]  # noqa: SLF001 - a call of several
    if isinstance(runs, AILoop):
        return _Task(runs.running.journal.task.id)
    return runs if isinstance(runs, Timers | LoopSlots) else None

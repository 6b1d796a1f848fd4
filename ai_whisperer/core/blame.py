"""Which task may be what kills the process, and what becomes of it after the next start.

A death says little about each of the tasks that were under way, and less if somebody kills the process from outside.
So a task is blamed only for what it alone can explain:

1. Tasks that were under way go on together once. Those that were under way at the second death too, without a finished
   step between, are tried one after the other, before all else goes on.
2. A task at whose trial the process died is held back, for longer than it had run until the death. All that is above
   suspicion goes on meanwhile. If the process dies without the task, the death has another cause: the task is no more
   than a suspect again. If not, it is tried once more.
3. A task that was tried so three times, and the process died each time and never without it, becomes a dead letter.

All this is about a process: of its sessions one at a time tries a task, see `runtime.life.trial_turn`.

A task that finishes a step of the kind that was under way is above suspicion, and counted anew.
"""

from __future__ import annotations

from enum import Enum, auto

SUSPECT = 2
"""So many starts without a finished step make a task a suspect: its next start is a trial."""

MOST_STARTS = 5
"""The process died at so many starts of a task that becomes a dead letter."""

_SHORTEST_REST_SECONDS = 3.0
LONGEST_REST_SECONDS = 3600.0
_TIMES_AS_LONG = 10.0


def trial_key(task_id: str) -> str:
    """The name of the timer of a task that is held back."""
    return f"trial:{task_id}"


class Verdict(Enum):
    """What becomes of a task that was running when the process died."""

    GO_ON = auto()
    TRY = auto()
    HOLD_BACK = auto()
    SET_ASIDE = auto()


def judge(attempts: int, *, under_way: bool, held_back: bool) -> Verdict:
    """Judge a task that was started so many times without a finished step.

    It was `under_way` if a step of it had begun, `held_back` if the process died without it.
    """
    if held_back:
        return Verdict.TRY
    if not under_way or attempts < SUSPECT:
        return Verdict.GO_ON
    if attempts == SUSPECT:
        return Verdict.TRY
    return Verdict.SET_ASIDE if attempts >= MOST_STARTS else Verdict.HOLD_BACK


def attempts_at_start(attempts: int, *, under_way: bool) -> int:
    """How many starts of the task are counted once it begins again; the last does not count if nothing was begun."""
    return attempts + 1 if under_way else max(attempts, 1)


def rest_seconds(ran_seconds: float, *, chance: float) -> float:
    """How long a task is held back that ran for so long until the death.

    `chance`, from 0 to 1, keeps it from falling in with deaths that come at regular times.
    """
    rest = max(_TIMES_AS_LONG * ran_seconds, _SHORTEST_REST_SECONDS) * (1.0 + chance)
    return min(rest, LONGEST_REST_SECONDS)

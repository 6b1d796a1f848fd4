"""When a crashed loop begins again, and when an agent has failed too often."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ai_whisperer.domain.definition import Supervision

INTERNAL = "internal"
"""The code of a failure that no error of ours explains: the loop crashed."""

OUTAGE = "model_unavailable"
"""The code of a task whose provider was down for longer than is waited for."""

FAULTS = frozenset(
    {
        INTERNAL,
        OUTAGE,
        "crash_limit",
        "model",
        "model_name",
        "model_refused",
        "model_too_long",
        "model_rate_limit",
        "model_server",
        "model_timeout",
        "model_cut_off",
        "model_empty",
        "answer_size",
        "answer_time",
    }
)
"""The failures that speak against an agent. That a task reached a limit of its own does not."""

PROVIDER_FAULTS = frozenset({OUTAGE, "model_rate_limit", "model_server", "model_timeout", "model_cut_off"})
"""Those of them that pass by themselves, since the provider is their cause: an agent stopped for them starts again."""

_FIRST_REST_SECONDS = 300.0
_LONGEST_REST_SECONDS = 3_600.0


class Fault(NamedTuple):
    """A task that failed then, with the code of its error."""

    at: float
    code: str


def restart_key(task_id: str) -> str:
    """The name of the entry in the scheduler that lets a crashed loop begin again."""
    return f"restart:{task_id}"


def restart_delay(policy: Supervision, *, restarts: int, chance: Callable[[], float]) -> float | None:
    """Seconds until a loop that crashed after so many restarts begins again, longer each time; None: give it up."""
    if restarts >= policy.max_restarts:
        return None
    delay = min(policy.first_delay_seconds * 2.0 ** min(restarts, 60), policy.max_delay_seconds)
    return delay * (0.5 + chance() / 2)


def too_many(policy: Supervision, faults: deque[Fault], *, now: float) -> bool:
    """Whether the agent has failed too often within the window. Forgets what lies before it.

    One outage is enough, since it was waited for already: the next tasks would be lost to it one by one.
    """
    while faults and faults[0].at <= now - policy.window_seconds:
        faults.popleft()
    return len(faults) >= policy.max_failures or ended_in_outage(faults)


def ended_in_outage(faults: deque[Fault]) -> bool:
    """Whether the last of these failures is that the provider is down."""
    return bool(faults) and faults[-1].code == OUTAGE


def rest_seconds(faults: Iterable[Fault], *, stops: int, chance: Callable[[], float]) -> float | None:
    """How long an agent stays stopped for these faults, longer at each of the stops in a row; None: for a person."""
    if any(fault.code not in PROVIDER_FAULTS for fault in faults):
        return None
    rest = min(_FIRST_REST_SECONDS * 2.0 ** min(stops - 1, 60), _LONGEST_REST_SECONDS)
    return rest * (1.0 + chance() / 2)

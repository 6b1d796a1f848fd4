"""When a crashed loop begins again, and when an agent has failed too often."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ai_whisperer.definition import Supervision

INTERNAL = "internal"
"""The code of a failure that no error of ours explains: the loop crashed."""

FAULTS = frozenset(
    {
        INTERNAL,
        "crash_limit",
        "model",
        "model_name",
        "model_refused",
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


def restart_key(task_id: str) -> str:
    """The name of the entry in the scheduler that lets a crashed loop begin again."""
    return f"restart:{task_id}"


def restart_delay(policy: Supervision, *, restarts: int, chance: Callable[[], float]) -> float | None:
    """Seconds until a loop that crashed after so many restarts begins again, longer each time; None: give it up."""
    if restarts >= policy.max_restarts:
        return None
    delay = min(policy.first_delay_seconds * 2.0 ** min(restarts, 60), policy.max_delay_seconds)
    return delay * (0.5 + chance() / 2)


def too_many(policy: Supervision, failures: deque[float], *, now: float) -> bool:
    """Whether the agent has failed too often within the window. Forgets what lies before it."""
    while failures and failures[0] <= now - policy.window_seconds:
        failures.popleft()
    return len(failures) >= policy.max_failures

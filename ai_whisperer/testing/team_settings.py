"""What a team can be told at its beginning: lengths of time, and the settings of its session."""

from __future__ import annotations

import math
from datetime import timedelta
from inspect import signature
from typing import Any

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.choices import nearest
from ai_whisperer.core.moments import seconds_in
from ai_whisperer.errors import InvalidInputError

__tracebackhide__ = True  # pytest shows the line of the test instead

Length = float | str | timedelta
"""A length of time: seconds, a text such as `2h` or `1h 30min`, or a `timedelta`."""

_SIMULATED = ("data", "store", "work", "model_factory", "clock", "random", "page", "tools", "agent_tools", "model")
"""What of a manager the simulation decides."""
_OWN_SETTINGS = ("words", "tools", "seed", "latency", "start", "patience", "folder", "recording", "model")


def seconds_of(length: Length) -> float:
    """The seconds in a length of time; raises `InvalidInputError`."""
    if isinstance(length, timedelta):
        seconds: float | None = length.total_seconds()
    else:
        seconds = seconds_in(length) if isinstance(length, str) else length
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise InvalidInputError(
            f"{length!r} is not a length of time. Write 90 (seconds), '0.5s', '15min' or '1h 30min'."
        )
    return float(seconds)


def checked_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, if a manager that is simulated can have them; raises `InvalidInputError`."""
    known = [name for name in signature(AsyncAgentSessionManager).parameters if name not in _SIMULATED]
    for name in settings:
        if name not in known:
            near = nearest(name, [*known, *_OWN_SETTINGS])
            meant = "" if near is None else f" Did you mean '{near}'?"
            raise InvalidInputError(
                f"A team has no setting '{name}'.{meant} It has: {', '.join([*_OWN_SETTINGS, *known])}."
            )
    return settings

"""Which limits hold, and whether they make sense."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from ai_whisperer.definition import EffectiveLimits, Limits
from ai_whisperer.errors import DefinitionError

DEFAULTS = EffectiveLimits()
_MOST = 10**15
_LONGEST_SECONDS = 1e9


def effective(*layers: Limits) -> EffectiveLimits:
    """The limits that hold: each as the first of the layers states it, or its default."""
    stated: dict[str, Any] = {}
    for layer in reversed(layers):
        stated |= {name: value for name, value in asdict(layer).items() if value is not None}
    return EffectiveLimits(**stated) if stated else DEFAULTS


def check_limits(limits: Limits) -> None:
    """Raise `DefinitionError` that names the limit unless each that is stated can be kept."""
    for name, value in asdict(limits).items():
        if value is None:
            continue
        least = 0 if getattr(DEFAULTS, name) == 0 or name == "max_continuations" else 1
        if name.endswith("_seconds"):
            if not 0 < value < _LONGEST_SECONDS:
                raise DefinitionError(
                    f"limits.{name} must be more than 0 and below {_LONGEST_SECONDS:g} seconds, not {value}."
                )
        elif not least <= value <= _MOST:
            raise DefinitionError(f"limits.{name} must be at least {least} and at most {_MOST:,}, not {value}.")

"""Which limits hold, where they come from, and whether they make sense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from ai_whisperer.choices import nearest
from ai_whisperer.domain.limits import MAY_BE_ZERO, EffectiveLimits, EffectiveSessionLimits, Limits, LimitSource
from ai_whisperer.errors import DefinitionError

DEFAULTS = EffectiveLimits()
SESSION_DEFAULTS = EffectiveSessionLimits()
AGENT_LIMITS = Limits.__struct_fields__
SESSION_LIMITS = EffectiveSessionLimits.__struct_fields__
_MOST = 10**15
_MOST_SECONDS_OF_A_LIMIT = 1e9

Stated = Limits | Mapping[str, Any] | None
"""Limits as they are written: a record of them, or numbers by name."""

Layers = Sequence[tuple[LimitSource, Limits]]
"""What was stated where; what stands first goes over what comes after it."""

_L = TypeVar("_L", bound=Limits)


def effective(*layers: Limits) -> EffectiveLimits:
    """The limits of an agent that hold: each as the first of the layers states it, or its default."""
    stated = _stated(layers, AGENT_LIMITS)
    return EffectiveLimits(**stated) if stated else DEFAULTS


def effective_for_session(*layers: Limits) -> EffectiveSessionLimits:
    """What a session may use in all: each as the first of the layers states it, or its default."""
    return EffectiveSessionLimits(**_stated(layers, SESSION_LIMITS))


def source_of(name: str, layers: Layers) -> LimitSource:
    """Where the limit that holds was stated."""
    return next(
        (source for source, layer in layers if getattr(layer, name, None) is not None),
        LimitSource.DEFAULT,
    )


def limits_from(given: Stated, kind: type[_L]) -> _L:
    """The limits as a record of this kind; raises `DefinitionError` that names the one that is wrong."""
    if given is None:
        return kind()
    return changed(kind(), given)


def changed(stated: _L, changes: Stated) -> _L:
    """The limits with these instead; raises `DefinitionError` that names the one that is wrong.

    None in a mapping takes a limit back, so that what is stated below holds again. In a record of limits it says
    nothing.
    """
    return replace(stated, **changes_by_name(changes, type(stated)))


def changes_by_name(changes: Stated, kind: type[Limits]) -> dict[str, Any]:
    """What is to be stated, by name, with None for what is taken back; raises `DefinitionError` as `changed` does."""
    if isinstance(changes, Limits):
        changes = {name: value for name, value in asdict(changes).items() if value is not None}
    if not isinstance(changes, Mapping):
        raise DefinitionError(
            f"Limits are numbers by name, such as max_queue_length=100, not {type(changes).__name__}."
        )
    for name in changes:
        if name not in kind.__struct_fields__:
            raise DefinitionError(_unknown(name, kind))
    try:
        written = msgspec.convert(dict(changes), kind)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise DefinitionError(_misfit(changes) or f"The limits are not valid: {error}.") from error
    check_limits(written)
    return {name: getattr(written, name) for name in changes}


def tightened(stated: Limits, holder: Limits, held: EffectiveLimits) -> Limits:
    """The limits of an agent that may use no more than the one that states `holder` and for which `held` are in force.

    What neither of them states is left to the session, which may change it.
    """
    tighter = {
        name: most
        for name, most in asdict(held).items()
        if (getattr(holder, name), getattr(stated, name)) != (None, None)
        and _is_tighter(name, most, getattr(stated, name))
    }
    return replace(stated, **tighter) if tighter else stated


def _is_tighter(name: str, most: float, stated: float | None) -> bool:
    """Whether the first number leaves less. 0 is no limit where 0 is the default."""
    if stated is None:
        return True
    unlimited = getattr(DEFAULTS, name) == 0
    if unlimited and 0 in (most, stated):
        return most != 0
    return most < stated


def check_limits(limits: Limits) -> None:
    """Raise `DefinitionError` that names the limit unless each that is stated can be kept."""
    for name, value in asdict(limits).items():
        if value is None:
            continue
        default = getattr(DEFAULTS if name in AGENT_LIMITS else SESSION_DEFAULTS, name)
        least = 0 if default == 0 or name in MAY_BE_ZERO else 1
        if name.endswith("_seconds"):
            if not 0 < value < _MOST_SECONDS_OF_A_LIMIT:
                raise DefinitionError(
                    f"limits.{name} must be more than 0 and below {_MOST_SECONDS_OF_A_LIMIT:g} seconds, not {value}."
                )
        elif not least <= value <= _MOST:
            raise DefinitionError(f"limits.{name} must be at least {least} and at most {_MOST:,}, not {value}.")


def _stated(layers: Sequence[Limits], names: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for layer in reversed(layers):
        for name in names:
            value = getattr(layer, name, None)
            if value is not None:
                found[name] = value
    return found


def _unknown(name: object, kind: type[Limits]) -> str:
    if name in SESSION_LIMITS:
        return f"limits.{name} is a limit of a whole session, not of an agent. Set it for the session or the server."
    near = nearest(str(name), kind.__struct_fields__)
    hint = f" Did you mean {near}?" if near else ""
    return f"There is no limit {name!r}.{hint} Limits are: {', '.join(kind.__struct_fields__)}."


def _misfit(changes: Mapping[str, Any]) -> str | None:
    """What is to be said of the first value that is no number, or not a whole one where it must be."""
    for name, value in changes.items():
        takes_parts = isinstance(getattr(DEFAULTS if name in AGENT_LIMITS else SESSION_DEFAULTS, name), float)
        if value is None or (isinstance(value, int | float if takes_parts else int) and not isinstance(value, bool)):
            continue
        return f"limits.{name} must be a {'' if takes_parts else 'whole '}number, not {value!r}."
    return None

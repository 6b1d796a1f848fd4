"""What is to be otherwise in a fork: single fields of agents, named as `AGENT.FIELD`, and effects outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ai_whisperer.choices import nearest
from ai_whisperer.core.definitions import definition_from
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.forks import Effects
from ai_whisperer.errors import InvalidInputError, UnknownAgentError

_EXAMPLE = "writer.prompt or writer.limits.max_steps_per_task"


def checked_changes(given: Any) -> dict[str, Any]:
    """The changes by the fields they are for; raises `InvalidInputError` for anything else."""
    if not isinstance(given, Mapping) or not all(isinstance(place, str) for place in given):
        raise InvalidInputError(f"The changes {str(given)[:80]!r} are no fields with values, such as {_EXAMPLE}.")
    return dict(given)


def changed_definitions(known: Mapping[str, AgentDefinition], changes: Mapping[str, Any]) -> dict[str, AgentDefinition]:
    """The definitions of the agents that the changes name, by id.

    Raises `InvalidInputError`, `UnknownAgentError` or a `DefinitionError` that says what was meant, if that is clear.
    """
    plain: dict[str, dict[str, Any]] = {}
    for place, value in changes.items():
        agent_id, fields = _place_of(place, known)
        whole = plain.setdefault(agent_id, msgspec.to_builtins(known[agent_id]))
        for field in fields[:-1]:
            if whole.get(field) is None:
                whole[field] = {}
            whole = whole[field]
            if not isinstance(whole, dict):
                raise InvalidInputError(
                    f"'{place:.100}': '{field}' has no fields of its own. Set {agent_id}.{field} as a whole."
                )
        whole[fields[-1]] = value
    return {agent_id: definition_from(definition) for agent_id, definition in plain.items()}


def _place_of(place: str, known: Iterable[str]) -> tuple[str, list[str]]:
    """The agent that is meant, whose id may have dots, and the field with those that it is in."""
    agent_id = max((each for each in known if place.startswith(f"{each}.")), key=len, default=None)
    if agent_id is None:
        named, dot, _ = place.partition(".")
        if not dot or not named:
            raise InvalidInputError(f"{place[:100]!r} names no field of an agent. Write AGENT.FIELD: {_EXAMPLE}.")
        near = nearest(named, known)
        meant = "" if near is None else f" Did you mean '{near}'?"
        raise UnknownAgentError(
            f"There is no agent {named[:100]!r} in the session at that point.{meant} There are: "
            f"{', '.join(known) or 'none'}."
        )
    fields = place.removeprefix(f"{agent_id}.").split(".")
    if not all(fields):
        raise InvalidInputError(f"{place[:100]!r} names no field of '{agent_id}'. Write AGENT.FIELD: {_EXAMPLE}.")
    return agent_id, fields


def checked_effects(given: Effects | str) -> Effects:
    """What becomes of effects outside in a fork; raises `InvalidInputError`."""
    try:
        return Effects(given)
    except ValueError as error:
        near = nearest(str(given), list(Effects))
        meant = "" if near is None else f" Did you mean '{near}'?"
        raise InvalidInputError(f"effects must be one of {', '.join(Effects)}, not {given!r:.60}.{meant}") from error

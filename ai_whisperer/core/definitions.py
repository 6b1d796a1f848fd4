"""An agent definition from what a person wrote, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ai_whisperer.core.schedules import check_schedule
from ai_whisperer.definition import AgentDefinition
from ai_whisperer.errors import DefinitionError, InvalidInputError

_MAX_SECONDS = 1e9
_MAX_BYTES = 1 << 20


def definition_from(config: AgentDefinition | Mapping[str, Any] | None) -> AgentDefinition:
    """The definition that the mapping describes; raises `DefinitionError` that names the field."""
    if config is None:
        return AgentDefinition()
    if not isinstance(config, AgentDefinition | Mapping):
        raise DefinitionError(f"The agent definition must be a mapping of fields, not {type(config).__name__}.")
    try:
        plain = msgspec.to_builtins(config if isinstance(config, AgentDefinition) else dict(config))
        definition = msgspec.convert(plain, AgentDefinition)
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError) as error:
        known = ", ".join(AgentDefinition.__struct_fields__)
        raise DefinitionError(f"The agent definition is not valid: {error}. Known fields: {known}.") from error
    _check(definition)
    _check_schedule(definition)
    return definition


def _check(definition: AgentDefinition) -> None:
    for field in definition.limits.__struct_fields__:
        least = 0 if field == "max_continuations" else 1
        if getattr(definition.limits, field) < least:
            raise DefinitionError(f"limits.{field} must be at least {least}, not {getattr(definition.limits, field)}.")
    retry = definition.retry
    if retry.max_attempts < 1:
        raise DefinitionError(f"retry.max_attempts must be at least 1, not {retry.max_attempts}.")
    for field in ("first_delay_seconds", "max_delay_seconds"):
        if not 0 <= getattr(retry, field) < _MAX_SECONDS:
            raise DefinitionError(f"retry.{field} must be a number of seconds from 0 on, not {getattr(retry, field)}.")
    if not 0 < retry.stall_seconds < _MAX_SECONDS:
        raise DefinitionError(f"retry.stall_seconds must be more than 0, not {retry.stall_seconds}.")
    if not definition.model.strip():
        raise DefinitionError("model must not be empty. Use 'scripted' or 'provider:name'.")
    try:
        encoded = msgspec.json.encode(definition)
    except (TypeError, ValueError, RecursionError) as error:
        raise DefinitionError(f"The agent definition holds something that is not JSON or not text: {error}.") from error
    if len(encoded) > _MAX_BYTES:
        raise DefinitionError(f"The agent definition has {len(encoded):,} bytes, at most {_MAX_BYTES:,} are allowed.")


def _check_schedule(definition: AgentDefinition) -> None:
    limit = definition.limits.max_prompt_bytes
    for number, each in enumerate(definition.schedule):
        try:
            check_schedule(each, agent_id="itself", max_prompt_bytes=limit)
        except InvalidInputError as error:
            raise DefinitionError(f"schedule[{number}].{error.message}") from error

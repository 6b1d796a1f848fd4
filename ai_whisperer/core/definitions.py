"""An agent definition from what a person wrote, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ai_whisperer.errors import DefinitionError
from ai_whisperer.records import AgentDefinition


def definition_from(config: AgentDefinition | Mapping[str, Any] | None) -> AgentDefinition:
    """The definition that the mapping describes; raises `DefinitionError` that names the field."""
    if config is None:
        return AgentDefinition()
    if not isinstance(config, AgentDefinition):
        try:
            config = msgspec.convert(dict(config), AgentDefinition)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            known = ", ".join(AgentDefinition.__struct_fields__)
            raise DefinitionError(f"The agent definition is not valid: {error}. Known fields: {known}.") from error
    _check(config)
    return config


def _check(definition: AgentDefinition) -> None:
    for field in definition.limits.__struct_fields__:
        if getattr(definition.limits, field) < (0 if field == "max_continuations" else 1):
            raise DefinitionError(f"limits.{field} must be at least 1, not {getattr(definition.limits, field)}.")
    retry = definition.retry
    if retry.max_attempts < 1:
        raise DefinitionError(f"retry.max_attempts must be at least 1, not {retry.max_attempts}.")
    for field in ("first_delay_seconds", "max_delay_seconds", "stall_seconds"):
        if not 0 <= getattr(retry, field) < 1e9:
            raise DefinitionError(f"retry.{field} must be a number of seconds from 0 on, not {getattr(retry, field)}.")
    for field in ("name", "description", "prompt", "model"):
        _check_text(field, getattr(definition, field))
    for alias in definition.aliases:
        _check_text("aliases", alias)
    if not definition.model.strip():
        raise DefinitionError("model must not be empty. Use 'scripted' or 'provider:name'.")
    try:
        msgspec.json.encode(definition)
    except (TypeError, ValueError, RecursionError) as error:
        raise DefinitionError(f"settings must be plain JSON values: {error}.") from error


def _check_text(field: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DefinitionError(f"{field} has a lone surrogate at character {error.start}. Remove it.") from error

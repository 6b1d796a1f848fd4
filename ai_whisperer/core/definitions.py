"""An agent definition from what a person wrote, checked."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

import msgspec

from ai_whisperer.core.contexts import BYTES_FOR_A_TOKEN, text_bytes
from ai_whisperer.core.fields import Place, check_fields
from ai_whisperer.core.limits import check_limits, effective
from ai_whisperer.core.network import grants_of
from ai_whisperer.core.output_schemas import checked_schema
from ai_whisperer.core.schedules import check_schedule
from ai_whisperer.core.signals import check_depth, check_event_name
from ai_whisperer.domain.definition import CLIENT, LIBRARY_CLIENT, OWN_CLIENT, TAKES_IMAGES, Access, AgentDefinition
from ai_whisperer.errors import DefinitionError, InvalidInputError

_MAX_SECONDS = 1e9
_MAX_BYTES = 1 << 20
LEAST_WINDOW = 1_000
_MAX_MODELS = 10

_COMMON_SETTINGS = {
    CLIENT,
    TAKES_IMAGES,
    "extra_body",
    "extra_headers",
    "frequency_penalty",
    "logit_bias",
    "max_tokens",
    "parallel_tool_calls",
    "presence_penalty",
    "seed",
    "service_tier",
    "stop_sequences",
    "temperature",
    "thinking",
    "timeout",
    "tool_choice",
    "top_k",
    "top_p",
}
"""What most providers can be told."""
_NEAR = 0.85

MERGED_FIELDS = ("limits", "retry", "context", "supervision", "settings", "folders")
"""The fields that have fields of their own: one definition over another replaces only those that it states."""


Config = AgentDefinition | Mapping[str, Any] | None
"""A definition, or the fields of one; None leaves all to the template or the defaults."""


def definition_from(config: Config) -> AgentDefinition:
    """The definition that the mapping describes; raises `DefinitionError` that names the field."""
    if config is None:
        return AgentDefinition()
    if not isinstance(config, AgentDefinition | Mapping):
        raise DefinitionError(f"The agent definition must be a mapping of fields, not {type(config).__name__}.")
    try:
        plain = with_access(msgspec.to_builtins(config if isinstance(config, AgentDefinition) else dict(config)))
        definition = msgspec.convert(plain, AgentDefinition)
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError) as error:
        raise _not_valid(config, error) from error
    _check(definition)
    _check_schedule(definition)
    return definition


def _not_valid(config: AgentDefinition | Mapping[str, Any], error: Exception) -> DefinitionError:
    """What is wrong, as it is said of templates: the field, nested or not, with the nearest name or what it takes."""

    def complain(_: Place, complaint: str) -> NoReturn:
        raise DefinitionError(f"The agent definition is not valid: {complaint}")

    try:
        plain = with_access(msgspec.to_builtins(config if isinstance(config, AgentDefinition) else dict(config)))
        check_fields(plain, AgentDefinition, complain=complain)
    except DefinitionError as found:
        return found
    except (TypeError, ValueError, RecursionError):
        pass
    known = ", ".join(AgentDefinition.__struct_fields__)
    return DefinitionError(f"The agent definition is not valid: {error}. Known fields: {known}.")


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of one definition over those of another: lists are replaced, `limits` and its like key by key."""
    under, over = with_access(under), with_access(over)
    fields = {**under, **over}
    for key in MERGED_FIELDS:
        below, above = under.get(key), over.get(key)
        if isinstance(below, Mapping) and isinstance(above, Mapping):
            fields[key] = {**below, **above}
    return fields


def with_access(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields with an access for each folder: a list of names, or text with commas, grants them for reading."""
    named = fields.get("folders")
    if isinstance(named, str):
        named = [name.strip() for name in named.split(",") if name.strip()]
    if not isinstance(named, list | tuple) or not all(isinstance(name, str) for name in named):
        return fields
    return {**fields, "folders": dict.fromkeys(named, Access.READ.value)}


def overridden(base: AgentDefinition, config: AgentDefinition | Mapping[str, Any] | None) -> AgentDefinition:
    """The definition with what the config states instead; raises `DefinitionError` that names the field.

    An `AgentDefinition` states the fields in which it differs from the default.
    """
    if config is None:
        return base
    stated = config if isinstance(config, Mapping) else msgspec.to_builtins(definition_from(config))
    return definition_from(merged(msgspec.to_builtins(base), stated))


def _check(definition: AgentDefinition) -> None:
    _check_limits(definition)
    grants_of(definition.network)
    for number, event in enumerate(definition.subscribes):
        try:
            if event != "*":
                check_event_name(event)
        except InvalidInputError as error:
            raise DefinitionError(f"subscribes[{number}]: {error.message}") from error
    _check_settings(definition.settings)
    if definition.output_schema is not None:
        try:
            checked_schema(definition.output_schema)
        except InvalidInputError as error:
            raise DefinitionError(f"output_schema: {error.message}") from error
    _check_models(definition.models)
    try:
        check_depth(definition.settings)
        encoded = msgspec.json.encode(definition)
    except (TypeError, ValueError, RecursionError) as error:
        raise DefinitionError(f"The agent definition holds something that is not JSON or not text: {error}.") from error
    if len(encoded) > _MAX_BYTES:
        raise DefinitionError(f"The agent definition has {len(encoded):,} bytes, at most {_MAX_BYTES:,} are allowed.")


def _check_models(names: tuple[str, ...]) -> None:
    """Raise unless there is a model, and each of several has a name of its own."""
    if not names or not all(name.strip() for name in names):
        raise DefinitionError("model must not be empty. Use 'scripted' or 'provider:name', or a list of such names.")
    if len(names) > _MAX_MODELS:
        raise DefinitionError(f"model names {len(names)} models, at most {_MAX_MODELS} are allowed.")
    for number, name in enumerate(names):
        if name in names[:number]:
            raise DefinitionError(f"model[{number}] is {name!r:.100} again. Name each model once.")


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Raise for settings that nobody would pass on as they are meant. Providers have others of their own."""
    client = settings.get(CLIENT, OWN_CLIENT)
    if client not in (OWN_CLIENT, LIBRARY_CLIENT):
        raise DefinitionError(f"settings.{CLIENT} must be '{OWN_CLIENT}' or '{LIBRARY_CLIENT}', not {client!r:.100}.")
    for name in settings.keys() - _COMMON_SETTINGS:
        near = get_close_matches(name, _COMMON_SETTINGS, n=1, cutoff=_NEAR)
        if near:
            raise DefinitionError(f"There is no setting '{name}' of a model. Did you mean '{near[0]}'?")
    if not isinstance(settings.get(TAKES_IMAGES, True), bool):
        raise DefinitionError(f"settings.{TAKES_IMAGES} must be true or false, not {settings[TAKES_IMAGES]!r:.100}.")
    most = settings.get("max_tokens", 1)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise DefinitionError(f"settings.max_tokens must be a whole number of at least 1, not {most!r:.100}.")
    for name in ("temperature", "top_p"):
        value = settings.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DefinitionError(f"settings.{name} must be a number, not {value!r:.100}.")


def _check_limits(definition: AgentDefinition) -> None:
    check_limits(definition.limits)
    _check_count("retry", definition.retry, "max_attempts", least=1)
    _check_count("context", definition.context, "keep", least=1)
    _check_window(definition)
    _check_count("supervision", definition.supervision, "max_restarts", least=0)
    _check_count("supervision", definition.supervision, "max_failures", least=1)
    for field in ("first_delay_seconds", "max_delay_seconds"):
        _check_seconds("retry", definition.retry, field, positive=False)
        _check_seconds("supervision", definition.supervision, field, positive=False)
    for field in ("first_token_seconds", "stall_seconds"):
        _check_seconds("retry", definition.retry, field, positive=True)
    _check_seconds("supervision", definition.supervision, "window_seconds", positive=True)


def _check_window(definition: AgentDefinition) -> None:
    """Raise unless the prompt of the agent leaves room for a conversation in the window that is stated."""
    window = definition.context.window
    if window is None:
        return
    _check_count("context", definition.context, "window", least=LEAST_WINDOW)
    prompt = text_bytes(definition.prompt) // BYTES_FOR_A_TOKEN
    if prompt > window // 2:
        raise DefinitionError(
            f"context.window is {window:,} tokens, and the prompt alone has about {prompt:,}. Shorten the prompt, or "
            "state the window that the model really has."
        )


def _check_count(group: str, values: object, field: str, *, least: int) -> None:
    value = getattr(values, field)
    if value < least:
        raise DefinitionError(f"{group}.{field} must be at least {least}, not {value}.")


def _check_seconds(group: str, values: object, field: str, *, positive: bool) -> None:
    value = getattr(values, field)
    if not 0 <= value < _MAX_SECONDS or (positive and value == 0):
        bound = "more than 0" if positive else "0 or more"
        raise DefinitionError(f"{group}.{field} must be {bound} and below {_MAX_SECONDS:g} seconds, not {value}.")


def _check_schedule(definition: AgentDefinition) -> None:
    limit = effective(definition.limits).max_prompt_bytes
    for number, each in enumerate(definition.schedule):
        try:
            check_schedule(each, agent_id="itself", max_prompt_bytes=limit)
        except InvalidInputError as error:
            raise DefinitionError(f"schedule[{number}].{error.message}") from error

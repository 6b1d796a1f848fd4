"""Python types as typed results: the JSON Schema of a type, and the value of that type.

A dataclass, a `msgspec.Struct`, a `TypedDict` and what else `msgspec` knows, and the models and dataclasses of
pydantic, alone or within other types. These are known by what they have, so that it need not be installed.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any, get_args, get_type_hints, is_typeddict

import msgspec

from ai_whisperer.core.json_schema import as_whole
from ai_whisperer.core.output_schemas import checked_schema
from ai_whisperer.errors import InvalidInputError, OutputError

_PYDANTIC = "__pydantic_core_schema__"


def schema_of(output: Any) -> dict[str, Any]:
    """The schema of what is asked for: a type, or a JSON Schema as it is. Raises `InvalidInputError`."""
    if isinstance(output, Mapping):
        return checked_schema(output)
    if not isinstance(output, type) and not hasattr(output, "__origin__") and not hasattr(output, "__args__"):
        raise InvalidInputError(
            f"output must be a type (a dataclass, a msgspec.Struct, a TypedDict, a pydantic model …) or a JSON Schema, "
            f"not {type(output).__name__}. Nothing was changed."
        )
    try:
        adapter = _adapter(output)
        schema = msgspec.json.schema(output) if adapter is None else adapter.json_schema()
    except Exception as error:  # whatever a library says of a type that it cannot describe
        raise InvalidInputError(
            f"There is no JSON Schema of {_name(output)}: {_last_line(error)}. Use a dataclass, a msgspec.Struct, a "
            "TypedDict or a pydantic model whose fields have JSON types, or give a JSON Schema. Nothing was changed."
        ) from error
    return checked_schema(schema)


def value_of(output: Any, value: Any) -> Any:
    """The value as what was asked for: of that type, or as it is for a JSON Schema. Raises `OutputError`."""
    if isinstance(output, Mapping):
        return value
    try:
        adapter, whole = _adapter(output), as_whole(value)
        if adapter is None:
            return msgspec.convert(whole, output)
        return adapter.validate_json(msgspec.json.encode(whole))  # a strict model takes a date as text from JSON alone
    except Exception as error:  # a type may check itself in ways of its own
        raise OutputError(
            f"The answer fits the schema of {_name(output)}, but cannot be one: {error}. See `result.output`."
        ) from error


def _adapter(output: Any) -> Any | None:
    """What pydantic makes of its own types, and of those that have one inside; None for all others."""
    if not _mentions_pydantic(output, set()):
        return None
    return sys.modules["pydantic"].TypeAdapter(output)  # whoever has such a type has imported it


def _mentions_pydantic(kind: Any, seen: set[int]) -> bool:
    if hasattr(kind, _PYDANTIC):
        return True
    if id(kind) in seen:
        return False
    seen.add(id(kind))
    inner = get_args(kind)
    if isinstance(kind, type) and (dataclasses.is_dataclass(kind) or is_typeddict(kind)):
        inner = tuple(get_type_hints(kind, include_extras=True).values())
    return any(_mentions_pydantic(each, seen) for each in inner)


def _last_line(error: Exception) -> str:
    """What is wrong: before it `msgspec` tells what a program could do about it."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].rstrip(".")


def _name(output: Any) -> str:
    return str(getattr(output, "__name__", output))

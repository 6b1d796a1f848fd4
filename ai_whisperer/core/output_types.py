"""Python types as typed results: the JSON Schema of a type, and the value of that type.

A dataclass, a `msgspec.Struct`, a `TypedDict` and what else `msgspec` knows, and the models and dataclasses of
pydantic, which are known by what they have, so that it need not be installed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec

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
        schema = _adapter(output).json_schema() if hasattr(output, _PYDANTIC) else msgspec.json.schema(output)
    except Exception as error:  # whatever a library says of a type that it cannot describe
        raise InvalidInputError(
            f"There is no JSON Schema of {_name(output)}: {error}. Use a dataclass, a msgspec.Struct, a TypedDict or a "
            "pydantic model whose fields have JSON types, or give a JSON Schema. Nothing was changed."
        ) from error
    return checked_schema(schema)


def value_of(output: Any, value: Any) -> Any:
    """The value as what was asked for: of that type, or as it is for a JSON Schema. Raises `OutputError`."""
    if isinstance(output, Mapping):
        return value
    try:
        return _adapter(output).validate_python(value) if hasattr(output, _PYDANTIC) else msgspec.convert(value, output)
    except Exception as error:  # a type may check itself in ways of its own
        raise OutputError(
            f"The answer fits the schema of {_name(output)}, but cannot be one: {error}. See `result.output`."
        ) from error


def _adapter(output: Any) -> Any:
    """What pydantic makes of its own types; whoever has one has imported it."""
    return sys.modules["pydantic"].TypeAdapter(output)


def _name(output: Any) -> str:
    return str(getattr(output, "__name__", output))

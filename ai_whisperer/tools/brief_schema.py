"""A JSON Schema in few words: a model pays for each of them in every request.

What is left out is said elsewhere or is of no use to a model: titles, defaults (the description names those that
matter), that a parameter which may be left out may be null too, bounds, and that others are refused. So are parameters
that are `Unsaid`. Arguments
are still read by the whole type, so a model that oversteps is told what does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec

T = TypeVar("T")
_IS_UNSAID = "x-unsaid"
Unsaid = Annotated[T, msgspec.Meta(extra_json_schema={_IS_UNSAID: True})]
"""The type of a parameter that models are not told of, since they hardly ever need another value than its default."""

_UNSAID = (
    "title",
    "description",
    "default",
    "additionalProperties",
    "maxLength",
    "minimum",
    "exclusiveMinimum",
    "maximum",
)
_NULL = {"type": "null"}


def brief(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object of parameters, shorter; it allows all that the whole one allows but null and extras."""
    definitions = schema.get("$defs", {})
    told: dict[str, Any] = {
        "type": "object",
        "properties": {
            name: _brief(each, definitions) for name, each in schema["properties"].items() if not each.get(_IS_UNSAID)
        },
    }
    return {**told, "required": schema["required"]} if schema.get("required") else told


def _brief(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return _brief(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    kinds = [each for each in schema.get("anyOf", ()) if each != _NULL]
    if len(kinds) == 1:
        return _brief(kinds[0], definitions)
    return {key: value for key, value in schema.items() if key not in _UNSAID}

"""What tools that were made for other frameworks have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_instance(thing: Any, package: str, name: str) -> bool:
    """Whether it is an object of that class of the package, which need not be installed."""
    return any(each.__name__ == name and each.__module__.partition(".")[0] == package for each in type(thing).__mro__)


def plain_schema(made: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object, without what the tool says of itself beside it."""
    schema = {key: value for key, value in made.items() if key not in ("title", "description", "$schema")}
    return {**schema, "type": "object", "properties": schema.get("properties", {})}

"""What tools that were made for other frameworks have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ai_whisperer.tools.parameter_types import told_by
from ai_whisperer.tools.parameters import misfit, no_object, unreadable


def is_instance(thing: Any, package: str, name: str) -> bool:
    """Whether it is an object of that class of the package, which need not be installed."""
    return any(each.__name__ == name and each.__module__.partition(".")[0] == package for each in type(thing).__mro__)


def plain_schema(made: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object, without what the tool says of itself beside it."""
    schema = {key: value for key, value in made.items() if key not in ("title", "description", "$schema")}
    return {**schema, "type": "object", "properties": schema.get("properties", {})}


def json_object(arguments: str) -> dict[str, Any]:
    """The JSON object that the text is; raises `ToolArgumentsError`."""
    try:
        return msgspec.json.decode(arguments or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise no_object(error) from error


def validated(check: Callable[[Any], Any], given: Any, *, known: Iterable[str]) -> Any:
    """What a check by pydantic returns; raises `ToolArgumentsError` that says what does not fit."""
    from pydantic import ValidationError

    try:
        return check(given)
    except KeyboardInterrupt:
        raise
    except ValidationError as error:
        raise misfit(told_by(error), known) from error
    except BaseException as error:  # a class checks its values by code of its own
        raise unreadable(error) from error

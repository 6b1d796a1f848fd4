"""Which JSON Schemas may be asked for: checked when they are given, so that no task fails for its schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from ai_whisperer.core.json_schema import KEYWORDS, TYPES, parts_of, target
from ai_whisperer.core.signals import check_depth
from ai_whisperer.errors import InvalidInputError, TooLargeError

MAX_SCHEMA_BYTES = 64 << 10
_MOST_PATTERN_CHARACTERS = 1_000
_NEAR = 0.8
_NOT_CHECKED = (
    *("if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "contentSchema"),
    *("unevaluatedProperties", "unevaluatedItems", "additionalItems", "contains", "minContains", "maxContains"),
    *("$dynamicRef", "$recursiveRef"),
)
"""What would restrict a value and is not looked at here."""
_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not")


def checked_schema(schema: Any) -> dict[str, Any]:
    """The schema as it is kept; raises `InvalidInputError` that says what is wrong with it, and where."""
    if not isinstance(schema, Mapping):
        raise InvalidInputError(
            f"An output schema must be a JSON Schema, which is an object, not {_kind(schema)}. For a list of things "
            'write {"type": "array", "items": …}; nothing was changed.'
        )
    try:
        check_depth(dict(schema))
        plain: dict[str, Any] = json.loads(json.dumps(schema, allow_nan=False, default=_plain))
        size = len(msgspec.json.encode(plain))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInputError(f"The output schema must be JSON: {error}. Nothing was changed.") from error
    if size > MAX_SCHEMA_BYTES:
        raise TooLargeError(
            f"The output schema has {size:,} bytes, at most {MAX_SCHEMA_BYTES:,} are allowed; nothing was changed. "
            "Ask for less in one task."
        )
    _check(plain, plain, "")
    _check_ends(plain)
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _check(schema: Any, root: dict[str, Any], path: str) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise _wrong(path, f"a schema is an object, not {_kind(schema)}")
    for keyword, told in schema.items():
        place = f"{path}.{keyword}" if path else keyword
        if keyword in _NOT_CHECKED:
            raise _wrong(place, "answers are not checked for this keyword. Leave it out, or say it in the prompt")
        if keyword not in KEYWORDS:
            _check_spelling(keyword, place)
        elif not _VALID[keyword](told):
            raise _wrong(place, f"{keyword} must be {_EXPECTED[keyword]}")
        if keyword == "$ref" and target(told, root) is None:
            raise _wrong(place, f"{told!r} leads nowhere in this schema. References begin with '#/$defs/'")
    for way, each in parts_of(schema):
        _check(each, root, f"{path}.{way}" if path else way)


def _check_spelling(keyword: str, place: str) -> None:
    """Raise for what was meant to be a keyword. Others describe the value, and do not restrict it."""
    near = get_close_matches(keyword, KEYWORDS, n=1, cutoff=_NEAR)
    if near and keyword.lower() not in ("title", "$id"):
        raise _wrong(place, f"there is no keyword {keyword!r}. Did you mean {near[0]!r}?")


def _check_ends(root: dict[str, Any]) -> None:
    """Raise if references lead in a cycle at the same value: nobody could say what fits it."""
    done: set[int] = set()
    on_the_way: set[int] = set()

    def walk(schema: Any, path: str) -> None:
        if not isinstance(schema, dict) or id(schema) in done:
            return
        if id(schema) in on_the_way:
            raise _wrong(path, "its references lead in a cycle")
        on_the_way.add(id(schema))
        if "$ref" in schema:
            walk(target(schema["$ref"], root), path)
        for keyword in _SAME_VALUE:
            told = schema.get(keyword, ())
            for each in told if isinstance(told, list) else (told,):
                walk(each, path)
        on_the_way.discard(id(schema))
        done.add(id(schema))

    def walk_all(schema: Any, path: str) -> None:
        walk(schema, path)
        for way, each in parts_of(schema) if isinstance(schema, dict) else ():
            walk_all(each, f"{path}.{way}" if path else way)

    walk_all(root, "")


def _wrong(path: str, complaint: str) -> InvalidInputError:
    where = f" at `{path}`" if path else ""
    end = "" if complaint.endswith("?") else "."
    return InvalidInputError(f"The output schema is not valid{where}: {complaint}{end} Nothing was changed.")


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _is_number(told: Any) -> bool:
    return isinstance(told, int | float) and not isinstance(told, bool)


def _is_count(told: Any) -> bool:
    return isinstance(told, int) and not isinstance(told, bool) and told >= 0


def _is_schema(told: Any) -> bool:
    return isinstance(told, dict | bool)


def _are_schemas(told: Any) -> bool:
    return isinstance(told, list) and bool(told) and all(map(_is_schema, told))


def _are_named_schemas(told: Any) -> bool:
    return isinstance(told, dict) and all(map(_is_schema, told.values()))


def _are_types(told: Any) -> bool:
    kinds = [told] if isinstance(told, str) else told
    return isinstance(kinds, list) and bool(kinds) and all(isinstance(kind, str) and kind in TYPES for kind in kinds)


def _is_pattern(told: Any) -> bool:
    if not isinstance(told, str) or len(told) > _MOST_PATTERN_CHARACTERS:
        return False
    try:
        re.compile(told)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _are_patterns(told: Any) -> bool:
    return _are_named_schemas(told) and all(map(_is_pattern, told))


_RULES: Mapping[str, tuple[str, Callable[[Any], bool], str]] = {
    "types": ("type", _are_types, f"one or several of {', '.join(TYPES)}"),
    "text": ("$ref format contentEncoding", lambda told: isinstance(told, str), "a text"),
    "values": ("enum", lambda told: isinstance(told, list) and bool(told), "a list of values"),
    "any": ("const", lambda _: True, "a value"),
    "names": (
        "required",
        lambda told: isinstance(told, list) and all(isinstance(each, str) for each in told),
        "a list of names",
    ),
    "named": ("properties", _are_named_schemas, "an object that has a schema for each name"),
    "patterns": ("patternProperties", _are_patterns, "an object that has a schema for each regular expression"),
    "schema": ("additionalProperties propertyNames items not", _is_schema, "a schema"),
    "schemas": ("allOf anyOf oneOf prefixItems", _are_schemas, "a list of schemas"),
    "count": (
        "minLength maxLength minItems maxItems minProperties maxProperties",
        _is_count,
        "a whole number of at least 0",
    ),
    "bool": ("uniqueItems", lambda told: isinstance(told, bool), "true or false"),
    "pattern": ("pattern", _is_pattern, f"a regular expression of at most {_MOST_PATTERN_CHARACTERS:,} characters"),
    "number": ("minimum maximum exclusiveMinimum exclusiveMaximum", _is_number, "a number"),
    "factor": ("multipleOf", lambda told: _is_number(told) and told > 0, "a number above 0"),
}
_VALID = {keyword: valid for keywords, valid, _ in _RULES.values() for keyword in keywords.split()}
_EXPECTED = {keyword: expected for keywords, _, expected in _RULES.values() for keyword in keywords.split()}

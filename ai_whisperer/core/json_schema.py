"""Whether a value fits a JSON Schema, told in words that help whoever wrote the value.

The keywords that make sense for an answer are known. A schema with others that would restrict the value is refused
when it is given, so that nothing passes for checked which is not.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import msgspec

Schema = Mapping[str, Any] | bool

_MOST_COMPLAINTS = 5
_MOST_LOOKS = 100_000
"""So often a value is held against a part of a schema: one that branches at every level could take for ever."""
_SHOWN_CHARACTERS = 60

TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_CALLED = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_FORMATS: Mapping[str, Any] = {
    "date-time": dt.datetime,
    "date": dt.date,
    "time": dt.time,
    "duration": dt.timedelta,
    "uuid": uuid.UUID,
    "decimal": decimal.Decimal,
}
"""The formats that are looked at. A text of any other one is taken as it is."""

Complaints = list[str]


def complaints_about(value: Any, schema: Mapping[str, Any]) -> Complaints:
    """What is wrong with the value, a few things at most; nothing if it fits the schema, which was checked."""
    return _Look(schema).at(value, schema, "")


def resolved(schema: Schema, root: Mapping[str, Any]) -> Schema:
    """The schema that a reference leads to, or the schema itself."""
    seen = 0
    while isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str) and seen < _MOST_LOOKS:
        found = target(schema["$ref"], root)
        if found is None or len(schema) > 1:
            break
        schema = found
        seen += 1
    return schema


def target(reference: str, root: Mapping[str, Any]) -> Schema | None:
    """What a reference within the schema leads to; None if there is nothing."""
    if not reference.startswith("#"):
        return None
    found: Any = root
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return found if isinstance(found, Mapping | bool) else None


class _Look:
    """One look at a value."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _MOST_LOOKS

    def at(self, value: Any, schema: Schema, path: str) -> Complaints:
        self._left -= 1
        if self._left < 0:
            return ["It has too many values, or the schema has too many branches, to be looked at. Answer with less."]
        if isinstance(schema, bool):
            return [] if schema else [f"{_named(path)} must not be there."]
        found: Complaints = []
        for keyword, told in schema.items():
            check = _CHECKS.get(keyword)
            if check is not None:
                found += check(self, value, told, schema, path)
                if len(found) >= _MOST_COMPLAINTS:
                    return found[:_MOST_COMPLAINTS]
        return found

    def reference(self, value: Any, told: str, _: Any, path: str) -> Complaints:
        found = target(told, self._root)
        return [] if found is None else self.at(value, found, path)

    def kind(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        kinds = [told] if isinstance(told, str) else list(told)
        if any(is_of(value, kind) for kind in kinds):
            return []
        wanted = " or ".join(_CALLED.get(kind, kind) for kind in kinds)
        return [f"{_named(path)} must be {wanted}, not {shown(value)}."]

    def enum(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        if any(_same(value, each) for each in told):
            return []
        return [f"{_named(path)} must be one of {', '.join(shown(each) for each in told)}, not {shown(value)}."]

    def const(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        return [] if _same(value, told) else [f"{_named(path)} must be {shown(told)}, not {shown(value)}."]

    def required(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        if not isinstance(value, dict):
            return []
        return [f"{_named(_in(path, name))} is missing." for name in told if name not in value]

    def properties(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        if not isinstance(value, dict):
            return []
        return [each for name in told if name in value for each in self.at(value[name], told[name], _in(path, name))]

    def other_properties(self, value: Any, told: Schema, schema: Any, path: str) -> Complaints:
        if not isinstance(value, dict):
            return []
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        others = [name for name in value if name not in known and not any(_found(each, name) for each in patterns)]
        if told is False:
            named = ", ".join(known) or "none"
            return [f"{_named(_in(path, name))} is not known here. There is: {named}." for name in others]
        return [each for name in others for each in self.at(value[name], told, _in(path, name))]

    def pattern_properties(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        if not isinstance(value, dict):
            return []
        return [
            each
            for pattern, schema in told.items()
            for name in value
            if _found(pattern, name)
            for each in self.at(value[name], schema, _in(path, name))
        ]

    def property_names(self, value: Any, told: Schema, _: Any, path: str) -> Complaints:
        return [each for name in value for each in self.at(name, told, path)] if isinstance(value, dict) else []

    def items(self, value: Any, told: Schema, schema: Any, path: str) -> Complaints:
        if not isinstance(value, list):
            return []
        first = len(schema.get("prefixItems", ()))
        found: Complaints = []
        for number, each in enumerate(value[first:], first):
            found += self.at(each, told, f"{path}[{number}]")
            if len(found) >= _MOST_COMPLAINTS:
                break
        return found

    def first_items(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        if not isinstance(value, list):
            return []
        pairs = enumerate(zip(value, told, strict=False))
        return [found for number, (each, schema) in pairs for found in self.at(each, schema, f"{path}[{number}]")]

    def all_of(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        return [each for schema in told for each in self.at(value, schema, path)]

    def any_of(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        nearest: Complaints | None = None
        for schema in told:
            found = self.at(value, schema, path)
            if not found:
                return []
            if nearest is None or self._is_nearer(value, schema, found, nearest):
                nearest = found
        return nearest or []

    def _is_nearer(self, value: Any, schema: Schema, found: Complaints, nearest: Complaints) -> bool:
        """Whether the value was rather meant for this one: it is of its kind, and less is wrong with it."""
        stated = resolved(schema, self._root)
        kind = stated.get("type") if isinstance(stated, Mapping) else None
        return isinstance(kind, str) and is_of(value, kind) and len(found) <= len(nearest)

    def one_of(self, value: Any, told: Any, schema: Any, path: str) -> Complaints:
        fitting = sum(not self.at(value, each, path) for each in told)
        if fitting == 1:
            return []
        if fitting:
            return [f"{_named(path)} fits {fitting} of the kinds that it may have, and must fit one only."]
        return self.any_of(value, told, schema, path)

    def no(self, value: Any, told: Schema, _: Any, path: str) -> Complaints:
        return [] if self.at(value, told, path) else [f"{_named(path)} must not be {shown(value)}."]

    def length(self, value: Any, told: Any, schema: Any, path: str) -> Complaints:
        """The bounds of a text, a list or an object, which are looked at together where the first of them stands."""
        del told
        for kind, least_key, most_key, unit in _LENGTHS:
            if isinstance(value, kind):
                least, most = schema.get(least_key, 0), schema.get(most_key)
                if len(value) < least:
                    return [f"{_named(path)} has {len(value)} {unit}, at least {least} are wanted."]
                if most is not None and len(value) > most:
                    return [f"{_named(path)} has {len(value)} {unit}, at most {most} are allowed."]
        return []

    def unique(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        if not told or not isinstance(value, list):
            return []
        kept = {_key(each) for each in value}
        return [] if len(kept) == len(value) else [f"{_named(path)} has the same value twice."]

    def pattern(self, value: Any, told: str, _: Any, path: str) -> Complaints:
        if not isinstance(value, str) or _found(told, value):
            return []
        return [f"{_named(path)} must match the pattern {told}, not {shown(value)}."]

    def form(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        kind = _FORMATS.get(told) if isinstance(told, str) else None
        if kind is None or not isinstance(value, str):
            return []
        try:
            msgspec.convert(value, kind)
        except (msgspec.ValidationError, ValueError):
            return [f"{_named(path)} must have the format {told}, not {shown(value)}."]
        return []

    def encoding(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        if told != "base64" or not isinstance(value, str):
            return []
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return [f"{_named(path)} must be base64."]
        return []

    def least(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        bad = is_of(value, "number") and value < told
        return [f"{_named(path)} must be at least {told}, not {value}."] if bad else []

    def most(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        bad = is_of(value, "number") and value > told
        return [f"{_named(path)} must be at most {told}, not {value}."] if bad else []

    def above(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        bad = is_of(value, "number") and value <= told
        return [f"{_named(path)} must be more than {told}, not {value}."] if bad else []

    def below(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        bad = is_of(value, "number") and value >= told
        return [f"{_named(path)} must be less than {told}, not {value}."] if bad else []

    def multiple(self, value: Any, told: Any, _: Any, path: str) -> Complaints:
        if not is_of(value, "number") or _exact(value) % _exact(told) == 0:
            return []
        return [f"{_named(path)} must be a multiple of {told}, not {value}."]


_LENGTHS = (
    (str, "minLength", "maxLength", "characters"),
    (list, "minItems", "maxItems", "items"),
    (dict, "minProperties", "maxProperties", "keys"),
)
_CHECKS: Mapping[str, Callable[[_Look, Any, Any, Any, str], Complaints]] = {
    "$ref": _Look.reference,
    "type": _Look.kind,
    "enum": _Look.enum,
    "const": _Look.const,
    "required": _Look.required,
    "properties": _Look.properties,
    "additionalProperties": _Look.other_properties,
    "patternProperties": _Look.pattern_properties,
    "propertyNames": _Look.property_names,
    "items": _Look.items,
    "prefixItems": _Look.first_items,
    "allOf": _Look.all_of,
    "anyOf": _Look.any_of,
    "oneOf": _Look.one_of,
    "not": _Look.no,
    "minLength": _Look.length,
    "maxLength": _Look.length,
    "minItems": _Look.length,
    "maxItems": _Look.length,
    "minProperties": _Look.length,
    "maxProperties": _Look.length,
    "uniqueItems": _Look.unique,
    "pattern": _Look.pattern,
    "format": _Look.form,
    "contentEncoding": _Look.encoding,
    "minimum": _Look.least,
    "maximum": _Look.most,
    "exclusiveMinimum": _Look.above,
    "exclusiveMaximum": _Look.below,
    "multipleOf": _Look.multiple,
}
KEYWORDS = frozenset(_CHECKS)
"""The keywords that a value is held against."""


def is_of(value: Any, kind: str) -> bool:
    """Whether the value is of a type of JSON Schema. A number without a fraction is whole however it is written."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES.get(kind, ()))


def shown(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def as_whole(value: Any) -> Any:
    """The value with the numbers in it that have no fraction as whole ones: JSON knows no difference."""
    match value:
        case float():
            return int(value) if value.is_integer() else value
        case list():
            return [as_whole(each) for each in value]
        case dict():
            return {name: as_whole(each) for name, each in value.items()}
    return value


def _same(value: Any, other: Any) -> bool:
    """Equal as JSON: 1.0 is 1, and true is not."""
    return bool(value == other) if isinstance(value, str) else _key(value) == _key(other)


def _key(value: Any) -> bytes:
    return msgspec.json.encode(as_whole(value), order="sorted")


def _exact(number: float) -> Fraction:
    """The number as it is written, not as it is kept: 0.1 is a tenth."""
    return Fraction(number if isinstance(number, int) else repr(number))


def _in(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _named(path: str) -> str:
    return f"`{path}`" if path else "The value"


def _found(pattern: str, text: str) -> bool:
    return _compiled(pattern).search(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def parts_of(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schemas that stand in this one, each with the way to it."""
    for keyword in ("additionalProperties", "propertyNames", "items", "not"):
        if keyword in schema:
            yield keyword, schema[keyword]
    for keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
        listed = schema.get(keyword)
        yield from ((f"{keyword}[{at}]", each) for at, each in enumerate(listed if isinstance(listed, list) else ()))
    for keyword in ("properties", "patternProperties", "$defs", "definitions"):
        named = schema.get(keyword)
        yield from ((f"{keyword}.{name}", each) for name, each in (named.items() if isinstance(named, dict) else ()))

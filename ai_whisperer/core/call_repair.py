"""What a model meant by a tool call that it did not write as it should, where there is one reading only.

A name may have a prefix (`functions.NAME`), arguments may stand in a fence or be JSON within JSON, and a number or a
truth may be written as text. What is read instead fits what the model was told of the tool; anything else stays as it
was written, and the model is told what is wrong with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ai_whisperer.domain.conversation import ToolSpec
from ai_whisperer.late_pattern import late_pattern

_PREFIX = late_pattern(r"(?:functions?|tools?|default_api)[._:/](?=\w)")
_FENCED = late_pattern(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL)
_QUOTED_VALUE = late_pattern(r':\s*"\s*(?:-?\d[\d.e+-]*\s*"|[\[{]|(?:true|false)\s*")', re.IGNORECASE)
_MAX_CHARACTERS = 64 << 10
"""Longer arguments stay as they are: most of them are texts, and taking them apart takes its time."""
_INTEGER = late_pattern(r"-?\d{1,18}", re.ASCII)
_NUMBER = late_pattern(r"-?\d{1,18}(?:\.\d{1,18})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_OBJECT_STARTS = ("{", "")
_TRUTHS = {"true": True, "false": False}
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def without_prefix(name: str) -> str:
    """The name without the namespace that some models put before it."""
    return _PREFIX.sub("", name, count=1) if _PREFIX.match(name) else name


def is_plain(arguments: str) -> bool:
    """Whether there is nothing to repair in the arguments, as is soon told of nearly all."""
    if len(arguments) > _MAX_CHARACTERS:
        return True
    return arguments[:1] in _OBJECT_STARTS and _QUOTED_VALUE.search(arguments) is None


def repaired_arguments(arguments: str, spec: ToolSpec) -> str:
    """The arguments as they were meant; as they were written if that fits, or if it is not clear."""
    if is_plain(arguments):
        return arguments
    written = arguments.strip()
    if written is not arguments and is_plain(written):
        return arguments
    if written[0] == "{" and _takes_texts_only(spec):
        return arguments
    given = _object_in(written)
    if given is None:
        return arguments
    read = {name: meant(value, _schema_of(name, spec.parameters)) for name, value in given.items()}
    changed = written[0] != "{" or any(read[name] is not given[name] for name in given)
    return msgspec.json.encode(read).decode() if changed and fits(read, spec) else arguments


def fits(given: Mapping[str, Any], spec: ToolSpec) -> bool:
    """Whether the values are those that the model was told of: all that are required, no others, each of its kind."""
    properties = spec.parameters.get("properties", {})
    if not given.keys() <= properties.keys() or not set(spec.parameters.get("required", ())) <= given.keys():
        return False
    return all(_is_of(value, _schema_of(name, spec.parameters)) for name, value in given.items())


def _takes_texts_only(spec: ToolSpec) -> bool:
    schemas = spec.parameters.get("properties", {}).values()
    return all(isinstance(each, dict) and each.get("type") == "string" for each in schemas)


def _object_in(text: str) -> dict[str, Any] | None:
    """The object that the text is: as it stands, in a fence, or as JSON within a JSON text."""
    for _ in range(3):
        fenced = _FENCED.fullmatch(text)
        try:
            value = msgspec.json.decode(text if fenced is None else fenced[1])
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return None
        if not isinstance(value, str):
            return value if isinstance(value, dict) else None
        text = value.strip()
    return None


def _schema_of(name: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = parameters.get("properties", {}).get(name, {})
    if isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
        return parameters.get("$defs", {}).get(schema["$ref"].rpartition("/")[2], {})  # type: ignore[no-any-return]
    return schema if isinstance(schema, Mapping) else {}


def _kinds(schema: Mapping[str, Any]) -> set[str] | None:
    """The kinds that a value may have; None if the schema does not say it plainly."""
    stated = schema.get("type")
    if isinstance(stated, str):
        return {stated}
    if isinstance(stated, list):
        return set(stated)
    kinds: set[str] = set()
    for each in schema.get("anyOf", ()):
        if not isinstance(each, Mapping) or not isinstance(each.get("type"), str):
            return None
        kinds.add(each["type"])
    return kinds or None


def meant(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value that a text stands for where no text may be, if it can be one only; else the value itself."""
    kinds = _kinds(schema)
    if not isinstance(value, str) or kinds is None or "enum" in schema:
        return value
    text = value.strip()
    match sorted(kinds - {"null"}):
        case ["integer"] if _INTEGER.fullmatch(text):
            return int(text)
        case ["number"] if _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
            return number
        case ["boolean"]:
            return _TRUTHS.get(text.lower(), value)
        case ["array" | "object" as kind]:
            return _decoded(text, kind, value)
    return value


def _decoded(text: str, kind: str, value: str) -> Any:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return value
    return found if isinstance(found, _KINDS[kind]) else value


def _is_of(value: Any, schema: Mapping[str, Any]) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    kinds = _kinds(schema)
    if kinds is None:
        return True
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, _KINDS.get(kind, (object,))) for kind in kinds)

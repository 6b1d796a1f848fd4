"""Tool calls that a model wrote into its text, in the forms that local models use where their server leaves them there.

Only a text that is nothing but calls is read so, apart from the reasoning that it begins with: whatever stands in a
longer text may be a quotation of what somebody else wrote. Before calls between `<tool_call>` tags there may be talk;
whoever reads it has to know that it quotes nobody.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from ai_whisperer.core.reasoning_tags import after_reasoning
from ai_whisperer.late_pattern import late_pattern

_MAX_CHARACTERS = 64 << 10
"""A longer text is none of these forms: taking it apart takes its time."""
_MAX_CALLS = 20
_FUNCTION = late_pattern(r"([\w.:/-]+)>(.*)", re.DOTALL)
_LISTED = "[TOOL_CALLS]"
_FENCED = late_pattern(r"```(?:json|tool_call|tool_code)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_ARGUMENTS = ("arguments", "parameters")
_BESIDE = {"name", "type", "id", *_ARGUMENTS}


class WrittenCall(NamedTuple):
    """A call in a text; `arguments` is JSON text."""

    name: str
    arguments: str


class TextCalls(NamedTuple):
    """The calls of a text; `start` is where the first begins in it. `talk` is what stands before them."""

    calls: tuple[WrittenCall, ...]
    start: int
    talk: str = ""


def calls_in(text: str) -> TextCalls | None:
    """The calls that the text is; None if it is anything else, or can be read in two ways."""
    if len(text) > _MAX_CHARACTERS or ('"name"' not in text and "<function=" not in text):
        return None
    body = after_reasoning(text)
    start = len(text) - len(body.lstrip())
    body = body.strip()
    if "<tool_call>" in body:
        return _tagged(body, start)
    written = _functions(body) if "<function=" in body else _objects(body)
    return None if written is None else TextCalls(written, start)


def _tagged(body: str, start: int) -> TextCalls | None:
    talk, _, _ = body.partition("<tool_call>")
    if talk and ("`" in talk or not talk.endswith("\n")):
        return None  # in a line of other text, or in code
    parts = _between(body[len(talk) :], "<tool_call>", "</tool_call>")
    known = None if parts is None else _known([_called(_value(each)) for each in parts])
    return None if known is None else TextCalls(known, start + len(talk), talk.strip())


def _functions(body: str) -> tuple[WrittenCall, ...] | None:
    parts = _between(body, "<function=", "</function>")
    found = None if parts is None else [_FUNCTION.fullmatch(each) for each in parts]
    return None if found is None else _known([each and _call(each[1], _value(each[2])) for each in found])


def _between(text: str, opener: str, closer: str) -> list[str] | None:
    """What stands in each pair of tags; None if anything but blanks stands outside, or there are too many pairs."""
    *parts, rest = (each.lstrip() for each in text.split(closer, _MAX_CALLS))
    if rest or not all(each.startswith(opener) for each in parts):
        return None
    return [each.removeprefix(opener) for each in parts]


def _objects(body: str) -> tuple[WrittenCall, ...] | None:
    fenced = _FENCED.fullmatch(body)
    given = _value(body.removeprefix(_LISTED) if fenced is None else fenced[1])
    return _known([_called(each) for each in (given if isinstance(given, list) else [given])])


def _called(value: Any) -> WrittenCall | None:
    """The call that a JSON value is: a name and arguments, and nothing that says something else."""
    if (
        isinstance(value, dict)
        and isinstance(value.get("function"), dict)
        and value.keys() <= {"function", "type", "id"}
    ):
        value = value["function"]
    if not isinstance(value, dict) or not value.keys() <= _BESIDE or value.get("type", "function") != "function":
        return None
    given = [value[key] for key in _ARGUMENTS if key in value]
    return _call(value.get("name"), given[0]) if len(given) == 1 else None


def _call(name: Any, given: Any) -> WrittenCall | None:
    if isinstance(given, str):
        given = _value(given)
    if not isinstance(name, str) or not name or not isinstance(given, dict):
        return None
    return WrittenCall(name, msgspec.json.encode(given).decode())


def _known(calls: list[WrittenCall | None]) -> tuple[WrittenCall, ...] | None:
    known = tuple(each for each in calls if each is not None)
    return known if 0 < len(known) == len(calls) <= _MAX_CALLS else None


def _value(text: str) -> Any:
    """The JSON value that the text is; None if it is none."""
    try:
        return msgspec.json.decode(text.strip())
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None

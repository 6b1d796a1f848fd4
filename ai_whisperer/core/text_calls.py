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

_MAX_CHARACTERS = 64 << 10
"""A longer text is none of these forms: taking it apart takes its time."""
_MAX_CALLS = 20
_TAGGED = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_FUNCTION = re.compile(r"<function=([\w.:/-]+)>(.*?)</function>", re.DOTALL)
_LISTED = "[TOOL_CALLS]"
_FENCED = re.compile(r"```(?:json|tool_call|tool_code)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
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
    rest = body[len(talk) :]
    if _TAGGED.sub("", rest).strip():
        return None
    calls = [_object(found[1]) for found in _TAGGED.finditer(rest)]
    known = _known(calls)
    return None if known is None else TextCalls(known, start + len(talk), talk.strip())


def _functions(body: str) -> tuple[WrittenCall, ...] | None:
    if _FUNCTION.sub("", body).strip():
        return None
    return _known([_call(name, _value(given)) for name, given in _FUNCTION.findall(body)])


def _objects(body: str) -> tuple[WrittenCall, ...] | None:
    fenced = _FENCED.fullmatch(body)
    given = _value(body.removeprefix(_LISTED) if fenced is None else fenced[1])
    return _known([_called(each) for each in (given if isinstance(given, list) else [given])])


def _object(text: str) -> WrittenCall | None:
    return _called(_value(text))


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

"""Typed results: what a model is told of the schema that its answer has to fit, and which value its answer is.

An answer is read leniently where it can mean one thing only: JSON in a fence, with talk around it, with numbers in
quotation marks. It is read once, when it has come; what is wrong with it is journaled with it, so that a task that is
taken up again says the same to its model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ai_whisperer.core.call_repair import meant
from ai_whisperer.core.channels import parse
from ai_whisperer.core.json_schema import Schema, complaints_about, resolved
from ai_whisperer.core.marks import as_json
from ai_whisperer.core.signals import check_depth
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.record import Record
from ai_whisperer.domain.tasks import Origin, TaskKind, TaskRecord

MAX_OUTPUT_BYTES = 256 << 10
MAX_CORRECTIONS = 1
"""So often a model is told what is wrong with its answer."""
_FENCED = re.compile(r"```(?:json|JSON)?[ \t]*\n?(.*?)```", re.DOTALL)
_MOST_FENCES = 20

_TOLD = """\
Your final answer must be JSON that fits this JSON Schema, and nothing else: no words before or after it, no fence.
{schema}"""
_CUT = "Your answer was cut off because it became too long, so its JSON is not whole."
_NO_JSON = "There is no JSON in your answer."
_AGAIN = "Answer again with the whole JSON and nothing else."


_WORK = (TaskKind.PROMPT, TaskKind.DELEGATED, TaskKind.SCHEDULED, TaskKind.EVENT)
"""The tasks that the schema of an agent's definition holds for: in mail and chats it talks."""


class Output(Record, frozen=True, kw_only=True):
    """What was read of an answer: a value that fits, with its JSON, or what is wrong."""

    value: Any = None
    text: str = ""
    complaint: str = ""


def with_output_schema(task: TaskRecord, schema: dict[str, Any] | None) -> TaskRecord:
    """The task with the schema that holds for the work of its agent, if it is work and has none of its own."""
    if schema is None or task.kind not in _WORK or task.output_schema is not None:
        return task
    return replace(task, origin=replace(task.origin or Origin(), output_schema=schema))


def told_of(schema: Mapping[str, Any]) -> str:
    """What the model is told of the schema, after its prompt."""
    return _TOLD.format(schema=as_json(schema))


def objection_to(answer: Answer, schema: Mapping[str, Any]) -> str:
    """What the model is to be told of an answer without calls that does not fit; nothing if it does.

    An answer that asks to be continued is not the last one, and need not fit.
    """
    read = read_output(answer.text, schema)
    if not read.complaint:
        return ""
    if answer.finish == "length":
        return f"{_CUT} {_AGAIN} Make it shorter."
    if parse(answer.text).wants_continuation:
        return ""
    return f"{read.complaint} {_AGAIN}"


def read_output(text: str, schema: Mapping[str, Any]) -> Output:
    """The value that the text of an answer is."""
    if len(text) > MAX_OUTPUT_BYTES:
        return Output(
            complaint=f"The answer has {len(text):,} characters, at most {MAX_OUTPUT_BYTES:,} are allowed here."
        )
    # As a whole first: what has the keys of channels may be what was asked for.
    for whole in _whole(text):
        value, wrong = _fitted(whole, schema)
        if not wrong:
            return _output(value, text, is_whole=value is whole and text.lstrip()[:1] != '"')
    return _read_final(parse(text).response.final, schema)


def _output(value: Any, text: str, *, is_whole: bool) -> Output:
    """The value with the text that it was written as, if that is its JSON and nothing else."""
    return Output(value=value, text=text.strip() if is_whole else msgspec.json.encode(value).decode())


def _read_final(text: str, schema: Mapping[str, Any]) -> Output:
    complaint = _NO_JSON
    for candidates in (_whole(text), _fenced(text), _spanned(text)):
        read = [_fitted(value, schema) for value in candidates]
        fitting = [value for value, wrong in read if not wrong]
        if fitting and all(value == fitting[0] for value in fitting):
            return _output(fitting[0], text, is_whole=False)
        if fitting:
            return Output(complaint=f"There are {len(fitting)} different values in your answer that fit the schema.")
        if read:
            complaint = f"Your answer does not fit the schema. {' '.join(read[-1][1])}"
            break
    return Output(complaint=complaint)


def _whole(text: str) -> Iterator[Any]:
    found, value = _decoded(text)
    if found:
        yield value


def _fenced(text: str) -> Iterator[Any]:
    for number, fence in enumerate(_FENCED.finditer(text)):
        found, value = _decoded(fence[1])
        if found and number < _MOST_FENCES:
            yield value


def _spanned(text: str) -> Iterator[Any]:
    """What stands between the first and the last bracket, if that is one value."""
    for opening, closing in ("{}", "[]"):
        start, end = text.find(opening), text.rfind(closing)
        if 0 <= start < end:
            found, value = _decoded(text[start : end + 1])
            if found:
                yield value
                return


def _decoded(text: str) -> tuple[bool, Any]:
    """Whether the text is JSON that can be kept, and its value. JSON within a JSON text is taken out of it."""
    value: Any = text
    for _ in range(2):
        try:
            value = msgspec.json.decode(value.strip())
            check_depth(value)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return False, None
        if not (isinstance(value, str) and value.strip()[:1] in ("{", "[")):
            break
    return True, value


def _fitted(value: Any, schema: Mapping[str, Any]) -> tuple[Any, Sequence[str]]:
    """The value, with texts in it as the numbers that they must be, and what is wrong with it."""
    complaints = complaints_about(value, schema)
    if not complaints:
        return value, ()
    mended = _mended(value, schema, schema)
    if mended != value and not complaints_about(mended, schema):
        return mended, ()
    return value, complaints


def _mended(value: Any, schema: Schema, root: Mapping[str, Any]) -> Any:
    schema = resolved(schema, root)
    if not isinstance(schema, Mapping):
        return value
    match value:
        case str():
            return meant(value, schema)
        case dict():
            known, other = schema.get("properties", {}), schema.get("additionalProperties", {})
            return {name: _mended(each, known.get(name, other), root) for name, each in value.items()}
        case list():
            return [_mended(each, schema.get("items", {}), root) for each in value]
    return value

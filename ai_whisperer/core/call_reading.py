"""Which tool calls an answer holds, also where the model did not write them as it should.

An answer is read once, when it has come, and what was read is journaled with it: a task that is taken up again makes
the same calls, whatever tools its agent has by then. What the model wrote stays in the answer. From then on it is shown
what was read, with a note at the result, so that it learns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from ai_whisperer.core.call_repair import fits, is_plain, repaired_arguments, without_prefix
from ai_whisperer.core.quotations import may_be_quoted
from ai_whisperer.core.text_calls import WrittenCall, calls_in
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolSpec, Turn
from ai_whisperer.domain.tasks import Repaired

Told = Callable[[str], ToolSpec | None]
"""What the model is told of the tool of exactly that name; None if it has none."""

_NOTES = {
    Repaired.TEXT: "Note: you wrote this call as text. Call tools the way the interface provides.",
    Repaired.NAME: "Note: this tool is called {name}, without a prefix.",
    Repaired.ARGUMENTS: "Note: give arguments as one JSON object, numbers and true or false without quotes.",
}
_ID_CHARACTERS = 9
"""Some providers take call ids of exactly this length."""


def read_calls(answer: Answer, told: Told, *, step_id: str, turns: tuple[Turn, ...]) -> Answer:
    """The answer with the calls as they were meant in `read_as`; the answer itself if they are as they should be.

    `turns` are what the model was shown.
    """
    if answer.tool_calls:
        for call in answer.tool_calls:
            if told(call.name) is None or not is_plain(call.arguments):
                return _with_repaired(answer, told)
        return answer
    if answer.finish == "length":
        return answer
    found = calls_in(answer.text)
    if found is None or may_be_quoted(answer.text[found.start :].strip(), found, turns):
        return answer
    calls = tuple(_granted(call, told, f"{step_id}:{at}") for at, call in enumerate(found.calls))
    known = tuple(call for call in calls if call is not None)
    return replace(answer, read_as=known) if len(known) == len(calls) else answer


def as_read(answer: Answer) -> Answer:
    """The answer as if the model had written what was read of it.

    What its provider wants to see again stays where it goes with the calls, which have their ids then.
    """
    if not answer.read_as:
        return answer
    if answer.tool_calls:
        return replace(answer, tool_calls=answer.read_as, read_as=())
    found = calls_in(answer.text)
    text = "" if found is None else answer.text[: found.start].rstrip()
    return replace(answer, text=text, tool_calls=answer.read_as, read_as=(), provider=None)


def repairs_of(answer: Answer) -> Iterator[Repaired]:
    """What was repaired of the calls, each once for each call."""
    for call in answer.read_as:
        yield from _repairs_of(answer, call)


def note_on(answer: Answer, call: ToolCall) -> str:
    """What the model is told of a call that was read so."""
    return " ".join(_NOTES[kind].format(name=call.name) for kind in _repairs_of(answer, call))


def _repairs_of(answer: Answer, call: ToolCall) -> Iterator[Repaired]:
    if not answer.tool_calls:
        yield Repaired.TEXT
        return
    written = answer.tool_calls[answer.read_as.index(call)]
    if written.name != call.name:
        yield Repaired.NAME
    if written.arguments != call.arguments:
        yield Repaired.ARGUMENTS


def _with_repaired(answer: Answer, told: Told) -> Answer:
    read = tuple(_repaired(call, told) for call in answer.tool_calls)
    return answer if read == answer.tool_calls else replace(answer, read_as=read)


def _repaired(call: ToolCall, told: Told) -> ToolCall:
    name, spec = _named(call.name, told)
    if spec is None:
        return call
    arguments = repaired_arguments(call.arguments, spec)
    if name == call.name and arguments is call.arguments:
        return call
    return ToolCall(call_id=call.call_id, name=name, arguments=arguments)


def _granted(call: WrittenCall, told: Told, key: str) -> ToolCall | None:
    """The call if the model has that tool and the arguments fit it."""
    name, spec = _named(call.name, told)
    if spec is None:
        return None
    arguments = repaired_arguments(call.arguments, spec)
    if not fits(msgspec.json.decode(arguments), spec):
        return None
    return ToolCall(call_id=sha256(key.encode()).hexdigest()[:_ID_CHARACTERS], name=name, arguments=arguments)


def _named(name: str, told: Told) -> tuple[str, ToolSpec | None]:
    spec = told(name)
    if spec is None and (bare := without_prefix(name)) != name:
        return bare, told(bare)
    return name, spec

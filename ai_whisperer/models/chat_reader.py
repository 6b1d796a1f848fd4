"""Reads a streamed answer of the chat completions protocol, in all the ways in which servers speak it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from ai_whisperer.core.reasoning_tags import ReasoningScanner
from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import ToolCall, Usage
from ai_whisperer.errors import ModelServerError, ModelUnavailableError
from ai_whisperer.models import failures
from ai_whisperer.models.base import (
    CallDelta,
    CallRequested,
    Finished,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
)
from ai_whisperer.models.bounded_body import Meter
from ai_whisperer.models.calls import ids_of, is_cut
from ai_whisperer.models.kept import OWN, Kept
from ai_whisperer.models.reasoning_details import ReasoningDetails

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Where servers put what a model thinks."""
_FINISH = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_call",
    "function_call": "tool_call",
    "content_filter": "content_filter",
}
_LONGEST_NAME = 16 << 10
_BROKEN = {"error", "insufficient_system_resource"}
"""Reasons of a provider that could not go on."""

Cost = Callable[[str, int, int, int], float | None]
"""What a model with that name takes for tokens in, out, and those of the first that were cached."""


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _CallPiece(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: Any = None
    refusal: str | None = None
    tool_calls: list[_CallPiece] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: Any = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    model: Any = None
    error: Any = None


_CHUNK = msgspec.json.Decoder(_Chunk)
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Call:
    """A tool call as far as it was written."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []

    @property
    def came_whole(self) -> bool:
        """Whether one piece had all of its arguments."""
        if len(self.arguments) != 1:
            return False
        try:
            _OBJECT.decode(self.arguments[0])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
        return True


class ChatReader:
    """One answer. `cost` prices it; `step_id` makes ids for calls that have none."""

    def __init__(self, *, name: str, prefix: str, step_id: str, meter: Meter, cost: Cost) -> None:
        self.is_over = False
        self._name = name
        self._prefix = prefix
        self._step_id = step_id
        self._meter = meter
        self._cost = cost
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._tags: ReasoningScanner | None = ReasoningScanner()
        self._details = ReasoningDetails()
        self._finish: str | None = None
        self._model = ""
        self._is_refusal = False
        self._field = ""
        self._said_something = False
        self._used: Any = None

    def take(self, data: bytes) -> Iterable[StreamEvent]:
        """What the next event brings."""
        try:
            chunk = _CHUNK.decode(data)
        except (msgspec.DecodeError, UnicodeError):
            if data.strip() in (b"", b"[DONE]"):
                self.is_over = self.is_over or bool(data.strip())
                return ()
            # Halves of characters, and numbers that are none, are not JSON; many servers send them nevertheless.
            chunk = msgspec.convert(json.loads(data), _Chunk)
        if chunk.error is not None:
            said, codes = failures.report_of({"error": chunk.error})
            raise failures.of_report(failures.told(said), codes)
        if chunk.usage is not None:
            self._used = chunk.usage
        if not self._model and isinstance(chunk.model, str):
            self._model = chunk.model
        choices = chunk.choices
        if not choices:
            return self._without_choices(data) if choices is None and chunk.usage is None else ()
        choice = choices[0]
        if choice.finish_reason:
            self._finish = str(choice.finish_reason)[:100]
        delta = choice.delta
        return () if delta is None else self._events(delta)

    def _events(self, delta: _Delta) -> Iterable[StreamEvent]:
        events: list[StreamEvent] = []
        thought = delta.reasoning_content or delta.reasoning
        if thought:
            self._field = self._field or REASONING_FIELDS[not delta.reasoning_content]
            self._meter.content += len(thought)
            events.append(ReasoningDelta(text=thought))
        if delta.reasoning_details:
            self._details.take(delta.reasoning_details)
        content = delta.content
        if content:
            self._meter.content += len(content)
            if self._tags is None:
                self._said_something = True
                events.append(TextDelta(text=content))
            else:
                self._take_tagged(self._tags, self._tags.feed(content), events)
        if delta.refusal:
            self._meter.content += len(delta.refusal)
            self._is_refusal = True
            events.append(TextDelta(text=delta.refusal))
        if delta.tool_calls:
            events += [self._take_call(piece) for piece in delta.tool_calls]
        return events

    def _take_tagged(self, scanner: ReasoningScanner, told: tuple[str, str], events: list[StreamEvent]) -> None:
        """Take the reasoning, and the text after it without blanks before it, of a server that leaves both in one."""
        thought, text = told
        if thought:
            events.append(ReasoningDelta(text=thought))
        if scanner.opened:
            text = text.lstrip()
        if text:
            self._said_something = True
            events.append(TextDelta(text=text))
        if scanner.is_over and text:
            self._tags = None

    def _take_call(self, piece: _CallPiece) -> StreamEvent:
        function = piece.function or _Function()
        name, arguments = function.name or "", _text_of(function.arguments)
        call = self._begun(piece, name, arguments)
        is_new = call is None
        if call is None:
            call = _Call()
            self._calls.append(call)
        if piece.index is not None:
            self._by_index[piece.index] = call
        call.id = call.id or piece.id or ""
        if name != call.name:
            call.name += name
            if len(call.name) > _LONGEST_NAME:
                raise ValueError(f"the name of a tool has more than {_LONGEST_NAME:,} characters")
        if arguments:
            call.arguments.append(arguments)
        self._meter.content += len(arguments) + len(name)
        return CallDelta(arguments=arguments, name=(name or "?") if is_new else "")

    def _begun(self, piece: _CallPiece, name: str, arguments: str) -> _Call | None:
        """The call that the piece goes on with, None if it begins one. Servers may leave out all that tells them apart.

        Some give all calls the same index, some none, and some say the name with each piece.
        """
        if piece.index is not None:
            call = self._by_index.get(piece.index)
        elif piece.id:
            call = next((each for each in reversed(self._calls) if each.id == piece.id), None)
        else:
            call = self._calls[-1] if self._calls and not (name and self._calls[-1].name) else None
        if call is None or not name or not call.name:
            return call
        if piece.id:
            is_another = bool(call.id) and piece.id != call.id
        else:
            is_another = bool(call.arguments) and (name != call.name or (bool(arguments) and call.came_whole))
        return None if is_another else call

    def _without_choices(self, data: bytes) -> Iterable[StreamEvent]:
        body = json.loads(data)
        if isinstance(body, dict) and body.get("object") == "error":
            said, codes = failures.report_of(body)
            raise failures.of_report(failures.told(said), codes)
        return ()

    def ending(self) -> Iterator[StreamEvent]:
        finish = self._finish
        if finish is None:
            return
        if finish in _BROKEN:
            kind = ModelServerError if finish == "error" else ModelUnavailableError
            raise kind(f"The provider broke off its answer: {finish}.")
        if self._tags is not None:
            left: list[StreamEvent] = []
            self._take_tagged(self._tags, self._tags.finish(), left)
            yield from left
        if self._calls and is_cut("".join(self._calls[-1].arguments), finish=finish):
            self._calls.pop()
        if self._is_refusal and not self._said_something and not self._calls:
            finish = "content_filter"
        for call in self._whole_calls():
            yield CallRequested(call=call)
        yield Finished(
            usage=self._usage(),
            finish=_FINISH.get(finish) or ("tool_call" if self._calls else "stop"),
            model=self._model or self._name,
            provider=self._kept(),
        )

    def _whole_calls(self) -> Iterator[ToolCall]:
        ids = ids_of((call.id for call in self._calls), step_id=self._step_id, prefix="call")
        for call, call_id in zip(self._calls, ids, strict=True):
            yield ToolCall(call_id=call_id, name=call.name, arguments="".join(call.arguments) or "{}")

    def _usage(self) -> Usage:
        used = self._used if isinstance(self._used, dict) else {}
        details = used.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else used.get("prompt_cache_hit_tokens")
        given, made, kept = _count(used.get("prompt_tokens")), _count(used.get("completion_tokens")), _count(cached)
        cost = used.get("cost")
        if isinstance(cost, bool) or not isinstance(cost, int | float):
            cost = self._cost(self._model, given, made, kept)
        return Usage(input_tokens=given, output_tokens=made, cached_tokens=kept, cost_usd=cost)

    def _kept(self) -> str | None:
        """What the provider wants to see again: where its reasoning stood."""
        details = self._details.whole()
        if not self._field and not details:
            return None
        kept = Kept(client=OWN, prefix=self._prefix, field=self._field, details=details)
        try:
            return msgspec.json.encode(kept).decode()
        except (UnicodeError, ValueError):
            return mended(json.dumps(msgspec.to_builtins(kept)))


def _text_of(arguments: Any) -> str:
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments)


def _count(figure: Any) -> int:
    """A number of tokens; below zero if it is none, so that nobody believes it."""
    if figure is None:
        return 0
    return figure if isinstance(figure, int) and not isinstance(figure, bool) else -1

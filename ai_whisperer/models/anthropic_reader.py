"""Reads a streamed answer of Anthropic's messages protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import ToolCall, Usage
from ai_whisperer.models import failures, prices
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

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_call",
    "refusal": "content_filter",
}
_FIGURES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_READ = ("text", "thinking", "tool_use")
_MOST_BLOCKS = 10_000
_MOST_SIGNED = 1 << 20


class _Delta(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: Any = None


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None


class _Message(msgspec.Struct):
    model: Any = None
    usage: Any = None


class _Event(msgspec.Struct):
    type: str
    index: int = 0
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Message | None = None
    usage: Any = None
    error: Any = None


_EVENT = msgspec.json.Decoder(_Event)


class _Part:
    """A block of the answer as far as it has come."""

    __slots__ = ("block", "pieces", "signatures")

    def __init__(self, block: _Block) -> None:
        self.block = block
        self.pieces: list[str] = []
        self.signatures = [block.signature or ""]

    @property
    def is_call(self) -> bool:
        return self.block.type == "tool_use"

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class AnthropicReader:
    """One answer of a model that is asked as `name`. `step_id` makes ids for calls that have none of their own."""

    def __init__(self, *, name: str, prefix: str, step_id: str, meter: Meter) -> None:
        self.is_over = False
        self._name = name
        self._prefix = prefix
        self._step_id = step_id
        self._meter = meter
        self._parts: dict[int, _Part] = {}
        self._finish: str | None = None
        self._model = ""
        self._figures: dict[str, int] = {}
        self._signed = 0

    def take(self, data: bytes) -> Iterable[StreamEvent]:
        """What the next event brings."""
        try:
            event = _EVENT.decode(data)
        except (msgspec.DecodeError, UnicodeError):
            if not data.strip():
                return ()
            # Halves of characters are not JSON, and come nevertheless.
            event = msgspec.convert(json.loads(data), _Event)
        match event.type:
            case "content_block_delta" if event.delta is not None:
                return self._delta(event.index, event.delta)
            case "content_block_start" if event.content_block is not None:
                return self._begin(event.index, event.content_block)
            case "message_start" if event.message is not None:
                self._model = event.message.model if isinstance(event.message.model, str) else ""
                self._count(event.message.usage)
            case "message_delta":
                if event.delta is not None and event.delta.stop_reason:
                    self._finish = str(event.delta.stop_reason)[:100]
                self._count(event.usage)
            case "message_stop":
                self.is_over = True
            case "error":
                said, codes = failures.report_of({"error": event.error})
                raise failures.of_report(failures.told(said), codes)
        return ()

    def _begin(self, index: int, block: _Block) -> Iterable[StreamEvent]:
        if len(self._parts) >= _MOST_BLOCKS:
            raise ValueError(f"it has more than {_MOST_BLOCKS:,} blocks")
        part = self._parts[index] = _Part(block)
        if block.type == "tool_use":
            self._meter.content += len(block.name or "")
            return (CallDelta(name=block.name or "?", arguments=""),)
        first = block.text if block.type == "text" else block.thinking
        return self._piece(part, first) if first else ()

    def _delta(self, index: int, delta: _Delta) -> Iterable[StreamEvent]:
        part = self._parts.get(index)
        if part is None:
            raise ValueError(f"a piece of block {index} came before its beginning")
        if delta.signature is not None:
            self._signed += len(delta.signature)
            if self._signed > _MOST_SIGNED:
                raise ValueError(f"its signatures have more than {_MOST_SIGNED:,} characters")
            part.signatures.append(delta.signature)
            return ()
        piece = delta.text or delta.thinking or delta.partial_json
        return self._piece(part, piece) if piece else ()

    def _piece(self, part: _Part, piece: str) -> Iterable[StreamEvent]:
        """Take the next piece of a block; of kinds of blocks that are unknown here nothing is held."""
        if part.block.type not in _READ:
            return ()
        self._meter.content += len(piece)
        part.pieces.append(piece)
        match part.block.type:
            case "text":
                return (TextDelta(text=piece),)
            case "thinking":
                return (ReasoningDelta(text=piece),)
        return (CallDelta(arguments=piece),)

    def _count(self, usage: Any) -> None:
        """Take the figures that are there: later ones take the place of those before."""
        for name in _FIGURES if isinstance(usage, dict) else ():
            figure = usage.get(name)
            if figure is not None:
                is_count = isinstance(figure, int) and not isinstance(figure, bool)
                self._figures[name] = figure if is_count else -1

    def ending(self) -> Iterator[StreamEvent]:
        if self._finish is None:
            return
        finish = _FINISH.get(self._finish, "")
        last = next(reversed(self._parts), None)
        if last is not None and self._parts[last].is_call and is_cut(_arguments(self._parts[last]), finish=finish):
            del self._parts[last]
        calls = [part for part in self._parts.values() if part.is_call]
        ids = ids_of((part.block.id or "" for part in calls), step_id=self._step_id, prefix="toolu")
        for part, call_id in zip(calls, ids, strict=True):
            part.block.id = call_id
            arguments = _arguments(part) or "{}"
            yield CallRequested(call=ToolCall(call_id=call_id, name=part.block.name or "", arguments=arguments))
        yield Finished(
            usage=self._usage(),
            finish=finish or ("tool_call" if calls else "stop"),
            model=self._model or self._name,
            provider=self._kept(),
        )

    def _usage(self) -> Usage:
        fresh, made, read, written = (self._figures.get(name, 0) for name in _FIGURES)
        given = -1 if min(fresh, read, written) < 0 else fresh + read + written
        figures = {"input_tokens": given, "output_tokens": made, "cached_tokens": read}
        model = self._name.partition(":")[2]
        cost = None
        for name in dict.fromkeys((self._model or model, model)):
            cost = prices.cost_usd("anthropic", name, **figures, written_tokens=written)
            if cost is not None:
                break
        return Usage(input_tokens=given, output_tokens=made, cached_tokens=read, cost_usd=cost)

    def _kept(self) -> str | None:
        """The blocks in their order, if there is reasoning among them, which the provider wants to see again unchanged.

        What is in the answer anyway is not kept twice: calls, and a text that is the only one.
        """
        parts = list(self._parts.values())
        if not any(part.block.type in ("thinking", "redacted_thinking") for part in parts):
            return None
        only = sum(part.block.type == "text" for part in parts) == 1
        blocks = [_kept_block(part, is_only_text=only) for part in parts]
        kept = Kept(client=OWN, prefix=self._prefix, blocks=blocks)
        try:
            return msgspec.json.encode(kept).decode()
        except (UnicodeError, ValueError):
            return mended(json.dumps(msgspec.to_builtins(kept)))


def _kept_block(part: _Part, *, is_only_text: bool) -> dict[str, Any]:
    block = part.block
    match block.type:
        case "thinking":
            return {"type": "thinking", "thinking": part.text, "signature": "".join(part.signatures)}
        case "redacted_thinking":
            return {"type": "redacted_thinking", "data": block.data or ""}
        case "text":
            return {"type": "text"} if is_only_text else {"type": "text", "text": part.text}
        case "tool_use":
            return {"type": "tool_use", "id": block.id or ""}
    return {"type": block.type}


def _arguments(part: _Part) -> str:
    """The arguments of a call as they were written; empty if there were none."""
    if part.pieces:
        return part.text
    return json.dumps(part.block.input) if part.block.input else ""

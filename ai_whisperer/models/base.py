"""The protocol that a language model fulfils: stream one request, end with `Finished`.

A model never retries by itself and keeps no history: the runtime journals each attempt and sends the whole
conversation each time. A stream that ends without `Finished` counts as cut off.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol

from ai_whisperer.base_record import Record
from ai_whisperer.conversation import Answer, ToolCall, ToolSpec, Turn, Usage
from ai_whisperer.core.text import mended
from ai_whisperer.errors import ModelCutOffError, ModelEmptyError


class ModelRequest(Record, frozen=True, kw_only=True):
    """One request. `step_id` is the same for every attempt of the same step: the idempotency key.

    `max_output_tokens` is how long the answer may be, where a budget leaves room for less than the settings say.
    """

    step_id: str
    agent_id: str
    system: str
    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...] = ()
    settings: Mapping[str, Any] = {}
    attempt: int = 1
    max_output_tokens: int | None = None


class TextDelta(Record, frozen=True, kw_only=True):
    text: str


class ReasoningDelta(Record, frozen=True, kw_only=True):
    text: str


class CallRequested(Record, frozen=True, kw_only=True):
    call: ToolCall


class Finished(Record, frozen=True, kw_only=True):
    """The provider said that the answer is complete, and why it ended there (`stop`, `tool_call`, `length` …)."""

    usage: Usage = Usage()
    finish: str = "stop"
    model: str = ""
    provider: str | None = None


StreamEvent = TextDelta | ReasoningDelta | CallRequested | Finished


class Model(Protocol):
    """A language model. `stream` raises a `ModelError` when the request fails.

    One that knows its prices also has `price_usd(input_tokens, output_tokens)`, which returns dollars or None.
    """

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]: ...

    async def close(self) -> None: ...


ModelFactory = Callable[[str], Model]
"""Makes the model of a name as it stands in an agent definition; raises `ModelNameError`."""


async def collect(events: AsyncIterator[StreamEvent], on_event: Callable[[StreamEvent], None] | None = None) -> Answer:
    """Read a stream to its end and return the whole answer.

    Raises `ModelCutOffError` when the stream ends without `Finished`, `ModelEmptyError` when there is nothing in it.
    """
    text: list[str] = []
    reasoning: list[str] = []
    calls: list[ToolCall] = []
    finished: Finished | None = None
    async for event in events:
        if on_event is not None:
            on_event(event)
        match event:
            case TextDelta():
                text.append(event.text)
            case ReasoningDelta():
                reasoning.append(event.text)
            case CallRequested():
                calls.append(event.call)
            case Finished():
                finished = event
    if finished is None:
        raise ModelCutOffError
    answer = Answer(
        text=mended("".join(text)),
        reasoning=mended("".join(reasoning)),
        tool_calls=tuple(map(_mended_call, calls)),
        usage=finished.usage,
        finish=finished.finish,
        model=finished.model,
        provider=finished.provider,
    )
    if not answer.tool_calls and not answer.text.strip():
        raise ModelEmptyError
    return answer


def _mended_call(call: ToolCall) -> ToolCall:
    return ToolCall(call_id=mended(call.call_id), name=mended(call.name), arguments=mended(call.arguments))

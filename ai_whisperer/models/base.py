"""The protocol that a language model fulfils: stream one request, end with `Finished`.

A model never retries by itself and keeps no history: the runtime journals each attempt and sends the whole
conversation each time. A stream that ends without `Finished` counts as cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Protocol, final

from ai_whisperer.core.contexts import text_bytes
from ai_whisperer.core.text import PieceMender, mended
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolSpec, Turn, Usage
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.domain.record import Record
from ai_whisperer.errors import AnswerSizeError, ModelCutOffError, ModelEmptyError
from ai_whisperer.models.event_bounds import MAX_BARE_BYTES_IN_EVENT, MAX_EVENT_VALUES, EventTooLargeError, values_in


class ModelRequest(Record, frozen=True, kw_only=True):
    """One request. `step_id` is the same for every attempt of the same step: the idempotency key.

    A request for a summary has one of its own: under the id of its step something else may have been asked before.
    `attachments` has the contents of those images and files of the turns that the model is shown, by digest.
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
    attachments: Mapping[str, bytes] = {}


@final
class TextDelta(Record, frozen=True, kw_only=True):
    text: str


@final
class ReasoningDelta(Record, frozen=True, kw_only=True):
    text: str


@final
class CallDelta(Record, frozen=True, kw_only=True):
    """The next piece of a tool call that is being written; `name` is that of a call which begins with it.

    A model may leave these out. They show that the answer goes on, and are counted as part of it; the whole call comes
    as `CallRequested`.
    """

    arguments: str
    name: str = ""


@final
class Alive(Record, frozen=True, kw_only=True):
    """The provider is there and at work, though nothing of the answer has come: a sign of life.

    `is_taken` says that it has taken the request and is going to answer. A model may leave these out.
    """

    is_taken: bool = False


ALIVE = Alive()
TAKEN = Alive(is_taken=True)


@final
class CallRequested(Record, frozen=True, kw_only=True):
    call: ToolCall


@final
class Finished(Record, frozen=True, kw_only=True):
    """The provider said that the answer is complete, and why it ended there (`stop`, `tool_call`, `length` …)."""

    usage: Usage = Usage()
    finish: str = "stop"
    model: str = ""
    provider: str | None = None


StreamEvent = TextDelta | ReasoningDelta | CallDelta | CallRequested | Finished | Alive


class Model(Protocol):
    """A language model. `stream` raises a `ModelError` when the request fails.

    One that asks a provider has `account`, an `Account` or None: all requests through the same one wait for each other
    when the provider wants that.

    One that knows its prices also has `price_usd(input_tokens, output_tokens)`, which returns dollars or None. If it
    has to be made ready for that, it has a coroutine `prepare()`, which does not raise. One that knows how many tokens
    it can take with its answer has `context_window()`, which returns them or None.
    """

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]: ...

    async def close(self) -> None: ...


ModelFactory = Callable[[str], Model]
"""Makes the model of a name as it stands in an agent definition; raises `ModelNameError`."""


MAX_CALLS = 1_000
"""So many tool calls one answer may have; how many steps a task may have is another limit."""

PIECE_CHARACTERS = 16 << 10
"""A longer text is looked at in pieces of this length."""
_KEPT_FOR_PROVIDER = 4
"""What is kept for the provider may be so many times as large as the answer: it has the answer and signatures."""
_MAX_NAME = 500


async def collect(
    events: AsyncIterator[StreamEvent],
    on_event: Callable[[StreamEvent], None] | None = None,
    *,
    max_bytes: int = EffectiveLimits().max_answer_bytes,
) -> Answer:
    """Read a stream to its end and return the whole answer.

    `on_event` gets each event with its text mended, so that it can be stored and sent, and long texts in pieces: others
    have their turn between them. Raises `ModelCutOffError` when the stream ends without `Finished`, `ModelEmptyError`
    when there is nothing in it, `AnswerSizeError` as soon as the answer is larger than `max_bytes`.
    """
    assembler = AnswerAssembler(max_bytes, on_event)
    take = assembler.take
    try:
        async for event in events:
            if (type(event) is TextDelta or type(event) is ReasoningDelta) and len(event.text) > PIECE_CHARACTERS:
                for piece in _pieces(event):
                    take(piece)
                    await asyncio.sleep(0)
            else:
                take(event)
    except BaseException:
        # A stream that is not read to its end closes its connection here and now, if it is a generator.
        if isinstance(events, AsyncGenerator):
            await events.aclose()
        raise
    answer = assembler.answer()
    if len(answer.text) > PIECE_CHARACTERS:
        await asyncio.sleep(0)  # whoever gets it will look at all of it
    return answer


def _pieces(event: TextDelta | ReasoningDelta) -> Iterator[StreamEvent]:
    for at in range(0, len(event.text), PIECE_CHARACTERS):
        yield type(event)(text=event.text[at : at + PIECE_CHARACTERS])


def _ignore(event: StreamEvent) -> None:
    del event


class AnswerAssembler:
    """Puts an answer together from the events of a stream, and never holds more than `max_bytes` of it.

    `on_event` gets what each event brings, as it can be stored.
    """

    __slots__ = (
        "_begun_calls",
        "_bytes",
        "_call_bytes",
        "_calls",
        "_finished",
        "_max_bytes",
        "_pass_on",
        "_reasoning",
        "_reasoning_mender",
        "_text",
        "_text_mender",
    )

    def __init__(self, max_bytes: int, on_event: Callable[[StreamEvent], None] | None = None) -> None:
        self._max_bytes = max_bytes
        self._pass_on = on_event or _ignore
        self._bytes = 0
        self._call_bytes = 0
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[ToolCall] = []
        self._begun_calls = 0
        self._finished: Finished | None = None
        self._text_mender = PieceMender()
        self._reasoning_mender = PieceMender()

    def take(self, event: StreamEvent) -> None:
        """Take the next event. Raises `AnswerSizeError`."""
        if type(event) is TextDelta:
            text = self._mended(event.text, self._text_mender)
            self._text.append(text)
            self._pass_on(event if text is event.text else TextDelta(text=text))
            return
        if type(event) is ReasoningDelta:
            text = self._mended(event.text, self._reasoning_mender)
            self._reasoning.append(text)
            self._pass_on(event if text is event.text else ReasoningDelta(text=text))
            return
        if type(event) is CallRequested:
            self._take_call(event.call)
        elif type(event) is CallDelta:
            self._begun_calls += bool(event.name)
            self._call_bytes += text_bytes(event.arguments) + text_bytes(event.name)
            self._check()
        elif type(event) is Finished:
            self._finish(event)
        self._pass_on(event)

    def answer(self) -> Answer:
        """The whole answer, when all events were taken."""
        finished = self._finished
        if finished is None:
            raise ModelCutOffError
        answer = Answer(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            tool_calls=tuple(self._calls),
            usage=finished.usage,
            finish=mended(finished.finish[:_MAX_NAME]),
            model=mended(finished.model[:_MAX_NAME]),
            provider=None if finished.provider is None else mended(finished.provider),
        )
        if not answer.tool_calls and not answer.text.strip():
            raise ModelEmptyError
        return answer

    def _mended(self, piece: str, mender: PieceMender) -> str:
        """The next piece of a text as it can be stored, counted."""
        if piece.isascii() and not mender.held:
            self._bytes += len(piece)
        else:
            piece = mender.feed(piece)
            self._bytes += text_bytes(piece)
        if self._bytes + self._call_bytes > self._max_bytes:
            self._check()
        return piece

    def _take_call(self, call: ToolCall) -> None:
        if not self._calls:
            self._call_bytes = self._begun_calls = 0  # what came in pieces comes as a whole now
        self._begun_calls += 1
        arguments, name, call_id = call.arguments, call.name, call.call_id
        is_ascii = arguments.isascii() and name.isascii() and call_id.isascii()
        if is_ascii:
            self._call_bytes += len(arguments) + len(name) + len(call_id)
        else:
            self._call_bytes += text_bytes(arguments) + text_bytes(name) + text_bytes(call_id)
        self._check()
        if len(arguments) > MAX_EVENT_VALUES:
            _check_arguments(call)
        if not is_ascii:
            call = ToolCall(call_id=mended(call_id), name=mended(name), arguments=mended(arguments))
        self._calls.append(call)

    def _finish(self, event: Finished) -> None:
        """Take the end, and pass on before it what is left of the texts: half a pair."""
        self._finished = event
        if event.provider:
            self._check(event.provider)
        if self._text_mender.held:
            text = self._text_mender.finish()
            self._text.append(text)
            self._pass_on(TextDelta(text=text))
        if self._reasoning_mender.held:
            reasoning = self._reasoning_mender.finish()
            self._reasoning.append(reasoning)
            self._pass_on(ReasoningDelta(text=reasoning))

    def _check(self, provider: str | None = None) -> None:
        most = self._max_bytes
        if self._bytes + self._call_bytes > most or (provider and len(provider) > _KEPT_FOR_PROVIDER * most):
            raise AnswerSizeError(
                f"The answer of the model has more than {most:,} bytes (max_answer_bytes) with its reasoning and tool "
                "calls, so it was cut off. Ask for less at a time, set max_tokens in the settings, or raise the limit."
            )
        if self._begun_calls > MAX_CALLS:
            raise AnswerSizeError(
                f"The answer of the model asks for more than {MAX_CALLS:,} tool calls at once, so it was cut off. "
                "Ask for less at a time."
            )


def _check_arguments(call: ToolCall) -> None:
    """Raise unless the arguments can be taken apart in a moment, which cannot be interrupted."""
    try:
        values_in(call.arguments.encode(errors="replace"))
    except EventTooLargeError:
        raise AnswerSizeError(
            f"The arguments of a tool call have more than {MAX_EVENT_VALUES:,} values, or more than "
            f"{MAX_BARE_BYTES_IN_EVENT:,} bytes beside their texts, so the answer was cut off. Ask for less at a time."
        ) from None

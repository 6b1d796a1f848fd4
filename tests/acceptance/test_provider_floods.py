"""Providers that send without end, too much in one piece, or what is no answer at all, over real HTTP."""

import asyncio
import gc
import gzip
import itertools
import json
import re
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from ai_whisperer.errors import (
    AnswerSizeError,
    ModelCutOffError,
    ModelEmptyError,
    ModelError,
    ModelRefusedError,
    ModelServerError,
)
from ai_whisperer.models import bounded_body, bounded_http
from ai_whisperer.models.base import MAX_CALLS, collect
from ai_whisperer.models.event_bounds import MAX_EVENT_BYTES, MAX_EVENT_VALUES
from ai_whisperer.testing.model_server import ModelServer, Received, Reply
from tests.acceptance.held_up import LONGEST, longest_callback
from tests.acceptance.provider_stage import ProviderModel, answer_to, ask, is_own, with_server

pytestmark = pytest.mark.usefixtures("provider_environment", "provider_client")

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
REFUSAL = b"HTTP/1.1 400 Bad\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
IN_SOCKETS = 16 << 20
"""So much may be on its way between the server and a client that has stopped reading."""
LONGEST_ONCE = 3 * LONGEST
"""A flood is measured once, while the machine may have other things to do; without bounds it takes seconds."""
MEMORY_BYTES = 12 << 20
"""So much memory a flood takes at most, the server's buffers with it."""

Pieces = Callable[[], Iterable[bytes]]


def longest() -> float:
    """How long the event loop may be held up; by the library's client, whose work is not ours, three times as long."""
    return LONGEST_ONCE if is_own() else 3 * LONGEST_ONCE


def event(delta: dict[str, Any], **choice: Any) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": None} | choice]
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def call_piece(index: int, arguments: str = "x" * 100, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": {"arguments": arguments}} | more]}


def call_begins(index: int) -> dict[str, Any]:
    function = {"name": "add", "arguments": ""}
    return {"tool_calls": [{"index": index, "id": f"c{index}", "type": "function", "function": function}]}


HELLO = event({"content": "hello"})
END = event({}, finish_reason="stop") + b"data: [DONE]\n\n"


def endless(*head: bytes, piece: bytes | Callable[[int], bytes], start: bytes = ANSWER + b"\r\n") -> Pieces:
    """The head, then the piece again and again, some at a time."""

    def pieces() -> Iterator[bytes]:
        yield b"".join((start, *head))
        for number in itertools.count():
            yield piece * max(1, 16_384 // len(piece)) if isinstance(piece, bytes) else piece(number)

    return pieces


def flood(pieces: Pieces) -> tuple[ModelError, Received, float]:
    """The error of a request that gets these bytes, what was sent, and the longest callback in readings."""
    found: list[tuple[ModelError, Received, float]] = []

    async def body(model: ProviderModel, server: ModelServer) -> None:
        await _warm_up(model)
        with longest_callback() as longest, pytest.raises(ModelError) as caught:
            await collect(model.stream(ask(step_id="flood")))
        received = server.received[-1]
        assert received.headers["idempotency-key"] == "flood"
        found.append((caught.value, received, longest.readings))

    with_server(lambda _body, number: Reply(text="warm") if number == 1 else Reply(raw=pieces), body)
    return found[0]


async def _warm_up(model: ProviderModel) -> None:
    """The first request makes the client, which is no matter of the answer."""
    await collect(model.stream(ask()))


BARE = r"sent [\d,]+ bytes with [\d,]+ bytes of content"
EVENT = rf"an event has more than {MAX_EVENT_BYTES:,} bytes"
SIZE = r"more than 1,048,576 bytes \(max_answer_bytes\)"

HEAD = "The head of the response has more than 16,384 bytes"
FLOODS: dict[str, tuple[Pieces, type[ModelError], str]] = {
    "text": (endless(piece=event({"content": "x" * 1000})), AnswerSizeError, SIZE),
    "wide text": (endless(piece=event({"content": "\U0001f600" * 300})), AnswerSizeError, SIZE),
    "reasoning": (endless(piece=event({"reasoning_content": "x" * 1000})), AnswerSizeError, SIZE),
    "arguments": (endless(event(call_begins(0)), piece=event(call_piece(0, "x" * 1000))), AnswerSizeError, SIZE),
    "calls": (endless(piece=lambda n: event(call_begins(n))), AnswerSizeError, rf"more than {MAX_CALLS:,} tool calls"),
    "calls without a name": (endless(piece=lambda n: event(call_piece(n))), ModelServerError, BARE),
    "comments": (endless(piece=b": still here\n\n"), ModelServerError, BARE),
    "comments after the text": (endless(HELLO, piece=b":\n\n"), ModelServerError, BARE),
    "empty lines": (endless(piece=b"\n"), ModelServerError, BARE),
    "empty events": (endless(piece=b"data:\n\n"), ModelServerError, "cannot be"),
    "events without content": (endless(HELLO, piece=event({})), ModelServerError, BARE),
    "one line": (endless(piece=b"data: " + b"x" * 1000), ModelServerError, EVENT),
    "one line of a comment": (endless(piece=b":" * 1000), ModelServerError, EVENT),
    "one event of many lines": (endless(piece=b"data: x\n"), ModelServerError, EVENT),
    "one event in windows lines": (endless(piece=b"data: x\r\n"), ModelServerError, EVENT),
    "a line without a form": (endless(piece=b"x" * 1000), ModelServerError, EVENT),
    "after the end mark": (endless(END, piece=b":\n\n"), ModelEmptyError, ""),
    "headers": (endless(piece=b"x-more: header\r\n", start=ANSWER), ModelServerError, HEAD),
    "one header": (endless(piece=b"x" * 1000, start=ANSWER + b"x-more: "), ModelServerError, HEAD),
    "an error": (endless(piece=b"x" * 1000, start=REFUSAL), ModelRefusedError, "status 400"),
    "an error in JSON": (
        endless(b'{"error": {"message": "', piece=b"no " * 300, start=REFUSAL), ModelRefusedError, "no no no"
    ),
    "another kind of content": (
        endless(piece=b"<p>", start=ANSWER.replace(b"text/event-stream", b"text/html") + b"\r\n"),
        ModelServerError,
        EVENT,
    ),
}  # fmt: skip


OWN_ENDS: dict[str, tuple[type[ModelError], str]] = {
    "calls without a name": (AnswerSizeError, rf"more than {MAX_CALLS:,} tool calls"),
    "another kind of content": (ModelServerError, "it is text/html, no stream of events"),
}
"""Where our own client knows better what is wrong."""


@pytest.mark.parametrize("kind", FLOODS)
def test_what_has_no_end_is_ended_with_the_limit_in_words(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces, error_class, words = FLOODS[kind]
    if is_own():
        error_class, words = OWN_ENDS.get(kind, (error_class, words))
    if words == BARE:
        monkeypatch.setattr(bounded_body, "MAX_BARE_BYTES", 256 << 10)  # the smallest pieces take long
    error, received, readings = flood(pieces)
    assert type(error) is error_class
    assert re.search(words, error.message)
    assert len(error.message) < 1_000
    assert received.sent_bytes < IN_SOCKETS
    assert readings < longest()


@pytest.mark.parametrize("kind", ["text", "arguments", "calls", "comments", "one line", "an error"])
def test_what_has_no_end_takes_little_memory(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces, _, words = FLOODS[kind]
    if words == BARE:
        monkeypatch.setattr(bounded_body, "MAX_BARE_BYTES", 256 << 10)  # the smallest pieces take long
    flood(FLOODS["headers"][0])  # so that what is only imported once is there
    gc.collect()
    tracemalloc.start()
    try:
        flood(pieces)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < MEMORY_BYTES


def once(*pieces: bytes, head: bytes = ANSWER) -> Pieces:
    return lambda: (head + b"\r\n", *pieces)


def big_event(fill: bytes, *, before: bytes, after: bytes) -> bytes:
    body = fill * ((MAX_EVENT_BYTES - 100) // len(fill))
    return b"data: " + before + body.rstrip(b",") + after + b"\n\n"


HEAVY = {
    "choices": (big_event(b"{},", before=b'{"choices":[', after=b"]}"), f"more than {MAX_EVENT_VALUES:,} values"),
    "choices in one small event": (
        b"data: " + b'{"choices":[' + b",".join([b"{}"] * 1_000) + b"]}\n\n",
        "more than 64 answers or tool calls",
    ),
    "tool calls": (
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[' + b",".join([b'{"index":1}'] * 1_000) + b"]}}]}\n\n",
        "more than 64 answers or tool calls",
    ),
    "numbers": (big_event(b"0,", before=b'{"choices":[],"x":[', after=b"]}"), f"more than {MAX_EVENT_VALUES:,} values"),
    "depth": (big_event(b"[", before=b'{"x":', after=b""), f"more than {MAX_EVENT_VALUES:,} values"),
    "open strings": (big_event(b'\\"', before=b'{"x":"', after=b""), "cannot be"),
    "digits": (big_event(b"9", before=b'{"created":', after=b"}"), "cannot be"),
}


@pytest.mark.parametrize("kind", HEAVY)
def test_an_event_that_takes_long_to_read_is_not_read(kind: str) -> None:
    sent, words = HEAVY[kind]
    error, _, readings = flood(once(HELLO, sent, END))
    assert type(error) is ModelServerError
    assert words in error.message
    assert readings < longest()


def test_an_answer_may_come_as_one_large_event() -> None:
    text = "It is so: \u00e4\U0001f600\n" * 20_000
    answer = answer_to(Reply(raw=once(event({"content": text}), END)))
    assert answer.text == text


def test_a_body_that_is_there_at_once_gives_others_their_turn_between_its_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounded_body, "_TURN_SECONDS", -1.0)  # after each piece, however fast the machine is
    turns: list[int] = []

    async def arrived() -> AsyncIterator[bytes]:
        yield HELLO * 1_000

    async def run() -> None:
        loop = asyncio.get_running_loop()
        pieces = 0
        async for _ in bounded_http.BoundedBody(arrived()):
            pieces += 1
            loop.call_soon(turns.append, pieces)
        assert pieces > 50
        assert turns[:50] == list(range(1, 51))

    asyncio.run(run())


@pytest.mark.parametrize("status", [b"400", b"429", b"500", b"301", b"302"])
@pytest.mark.parametrize("length", [50_000_000, None])
def test_of_the_body_of_an_error_the_beginning_is_read(status: bytes, length: int | None) -> None:
    start = REFUSAL.replace(b"400", status)
    if length is not None:
        start = start.replace(b"connection", b"content-length: %d\r\nconnection" % length)
    if status.startswith(b"3"):
        start = start.replace(b"connection", b"location: /elsewhere\r\nconnection")
    error, received, readings = flood(endless(piece=b"sorry " * 100, start=start))
    assert len(error.message) < 1_000
    assert received.sent_bytes < IN_SOCKETS
    assert readings < longest()


BOMB = gzip.compress(b": \n\n" + b"\n" * (64 << 20))


@pytest.mark.parametrize("encoding", [b"gzip", b"x-gzip", b"GZIP "])
def test_what_is_compressed_counts_as_what_it_is(encoding: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_body, "MAX_BARE_BYTES", 256 << 10)
    head = ANSWER + b"content-encoding: " + encoding + b"\r\n"
    error, _, readings = flood(once(BOMB, head=head))
    assert re.search(BARE, error.message)
    assert readings < longest()


def test_the_body_of_an_error_that_is_compressed_is_cut_too() -> None:
    head = REFUSAL.rstrip(b"\r\n") + b"\r\ncontent-encoding: gzip\r\n"
    error, _, readings = flood(once(gzip.compress(b"sorry " * 10_000_000), head=head))
    assert "sorry sorry" in error.message
    assert readings < longest()


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress])
def test_an_answer_may_be_compressed(compress: Callable[[bytes], bytes]) -> None:
    data = compress(HELLO * 3_000 + END)
    encoding = b"gzip" if compress is gzip.compress else b"deflate"
    pieces = [data[at : at + 100] for at in range(0, len(data), 100)]
    answer = answer_to(Reply(raw=once(*pieces, head=ANSWER + b"content-encoding: " + encoding + b"\r\n")))
    assert answer.text == "hello" * 3_000


@pytest.mark.parametrize(
    ("encoding", "words"),
    [(b"br", "encoded as 'br', which was not asked for"), (b"gzip", "not gzip data"), (b"gzip, gzip", "not asked for")],
)
def test_a_compression_that_cannot_be_undone_is_an_error(encoding: bytes, words: str) -> None:
    error, *_ = flood(once(HELLO, END, head=ANSWER + b"content-encoding: " + encoding + b"\r\n"))
    assert type(error) is ModelServerError
    assert words in error.message


ODD_FRAMES = [
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xf0\x9f\x98",
    b"data",
    b"data\n\n",
    b"data: \n\n",
    b"data: [DONE",
    b"data: \xed\xa0\xbd\n\n",
    b"data: {}\r\rdata: {}\r\r",
    b"event: \xf0\x9f\x98\n\n",
    b"event: error\ndata: {}\n\n",
    b"retry: 99999999999999999999999\n\n",
    b"retry: -1\nid: \x00\n\n",
    b"id: " + b"9" * 5_000 + b"\n\n",
    b"data: " + b"9" * 5_000 + b"\n\n",
    b"data: NaN\n\n",
    b'data: {"choices": NaN}\n\n',
    b'data: {"choices": [{"index": NaN, "delta": {"content": NaN}}]}\n\n',
    b'data: {"choices": [{"index": -1, "delta": {"content": 7}}]}\n\n',
    b'data: {"choices": [{"delta": {"tool_calls": [{"index": -99, "function": {"name": 7}}]}}]}\n\n',
    b'data: {"choices": [{"delta": {"tool_calls": [{"index": 1e999, "function": {"arguments": {}}}]}}]}\n\n',
    b'data: {"choices": [{"delta": {"tool_calls": {}}}]}\n\n',
    b'data: {"choices": [{"delta": {"role": 1, "content": "\\ud83d"}}]}\n\n',
    b'data: {"model": "\\ud83d", "choices": []}\n\n',
    b'data: {"id": {"a": 1}, "created": "x", "model": [], "choices": [{"delta": null}]}\n\n',
    b'data: {"error": "\\ud83d"}\n\n',
    b'data: {"error": {"message": ["\\ud83d"], "code": {}}}\n\n',
    b'data: {"choices": [], "choices": [{}]}\n\n',
    b"data: " + b"[" * 2_000 + b"\n\n",
    b"data: " + b'{"a":' * 2_000 + b"\n\n",
    b"\xef\xbb\xbf" + HELLO,
    HELLO.replace(b"\n", b"\r"),
    HELLO.replace(b"\n", b"\r\n"),
]


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("frame", ODD_FRAMES)
def test_an_odd_frame_ends_in_an_answer_or_in_an_error_of_a_model(frame: bytes, place: str) -> None:
    frames = (frame, HELLO, END) if place == "before" else (HELLO, frame, END)

    async def body(model: ProviderModel, _: ModelServer) -> None:
        with suppress(ModelServerError, ModelCutOffError, ModelEmptyError):
            answer = await collect(model.stream(ask()))
            assert "hello" in answer.text or place == "before"
            assert json.dumps([answer.text, answer.model, answer.provider], ensure_ascii=False).encode()

    with_server(Reply(raw=once(*frames)), body)

"""Answers of a provider that are made to take long: each as large, as deep or as odd as the bounds just let in."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

from ai_whisperer.models.event_bounds import MAX_EVENT_BYTES, MAX_EVENT_LINES, MAX_EVENT_VALUES

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
ANSWER = HEAD + b"\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
GZIP = HEAD + b"content-encoding: gzip\r\n\r\n"
JSON = ANSWER.replace(b"text/event-stream", b"application/json")
REFUSAL = JSON.replace(b"200 OK", b"400 Bad")

_SENT_AT_ONCE = 60_000
_FEW = 1_000
_MUCH = (1 << 20) - 10_000
"""Nearly as long as an answer may be."""
_ROOM = MAX_EVENT_BYTES - 2_000
_VALUES = MAX_EVENT_VALUES - 100


def event(delta: dict[str, Any], more: str = "", **choice: Any) -> bytes:
    """An event of chat completions, with more fields as JSON text."""
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunk |= {"choices": [{"index": 0, "delta": delta, "finish_reason": None} | choice]}
    text = json.dumps(chunk)
    return b"data: " + (f"{text[:-1]},{more}}}" if more else text).encode() + b"\n\n"


HELLO = event({"content": "hello"})
_DONE = b"data: [DONE]\n\n"
END = event({}, finish_reason="stop") + _DONE
CALLS_END = event({}, finish_reason="tool_calls") + _DONE


def _written(content: bytes) -> bytes:
    """An event whose text is written in this way."""
    head, _, tail = event({"content": "@"}).partition(b'"@"')
    return head + b'"' + content + b'"' + tail


def _in_events(text: str, delta: Callable[[str], dict[str, Any]], size: int = _FEW) -> bytes:
    return b"".join(event(delta(text[at : at + size])) for at in range(0, len(text), size))


def _text(text: str, size: int = _FEW) -> bytes:
    return ANSWER + _in_events(text, lambda piece: {"content": piece}, size) + END


def _call(number: int, arguments: str = "", name: str = "note") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": number, "id": f"c{number}", "type": "function", "function": function}


def _arguments(text: str) -> bytes:
    pieces = _in_events(text, lambda piece: {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}, 4_000)
    return ANSWER + event({"tool_calls": [_call(0)]}) + pieces + CALLS_END


def _chunked(body: bytes, size: int, trailers: bytes = b"") -> bytes:
    pieces = (body[at : at + size] for at in range(0, len(body), size))
    return CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n" + trailers + b"\r\n"


def _filled(unit: str, before: str = "", after: str = "", size: int = _MUCH) -> str:
    return before + unit * (size // len(unit)) + after


_TOKEN = {"token": "a", "logprob": -1, "bytes": [1, 2], "top_logprobs": []}
_NAMES = ",".join(f'"k{number}":{number}' for number in range(_VALUES))
_NUMBERS = ",".join(["0"] * _VALUES)

TEXTS: dict[str, bytes] = {
    "markers": _text(_filled("[FINAL]\n")),
    "markers that close": _text(_filled("[analysis]x[/analysis]")),
    "markers to go on": _text(_filled("[CONTINUE]\n")),
    "brackets": _text(_filled("[")),
    "brackets in a channel": _text(_filled("[/fina", "[FINAL]")),
    "brackets on lines": _text(_filled("\n[")),
    "lines": _text(_filled("\n", "x")),
    "lines of blanks": _text(_filled("\n    x")),
    "lines in a fence": _text(_filled("\n``", "[FINAL]\n```\n")),
    "fences": _text(_filled("```\n")),
    "channels as JSON": _text(_filled("x", '{"final": "', '"}')),
    "channels as JSON with numbers": _text(_filled("0,", '{"final": [', "0]}")),
    "channels as JSON with objects": _text(_filled('{"a":1},', '{"final": [', "0]}")),
    "channels as JSON with names": _text('{"final":1,' + ",".join(f'"{number}":0' for number in range(90_000)) + "}"),
    "channels as deep JSON": _text(_filled("[", '{"final": ')),
    "channels as JSON that does not end": _text(_filled("\n[", '{"final": "')),
}
"""Texts that take long to read for us: it makes no difference which client brings them."""

ANSWERS: dict[str, bytes] = {
    "one event of text": ANSWER + HELLO + event({"content": "x" * _ROOM}) + END,
    "one event of reasoning": ANSWER + HELLO + event({"reasoning_content": "x" * _ROOM}) + END,
    "one event of escapes": ANSWER + HELLO + _written(b"\\u00e4" * (_ROOM // 6)) + END,
    "one event of quotes": ANSWER + HELLO + _written(b'\\"' * (_ROOM // 2)) + END,
    "one event of commas": ANSWER + HELLO + _written(b",[{" * (_ROOM // 3)) + END,
    "one event of wide characters": ANSWER + HELLO + _written("\U0001f600".encode() * (_ROOM // 4)) + END,
    "one event of arguments": ANSWER + event({"tool_calls": [_call(0, _filled("x", '{"text":"', '"}'))]}) + CALLS_END,
    "one event of halves of characters": ANSWER + HELLO + _written(b"\\ud83d" * (_ROOM // 6)) + END,
    "one event beyond the bound": ANSWER + HELLO + event({"content": "x" * 3 * MAX_EVENT_BYTES}) + END,
    "halves of characters": _text("\ud83d" * (_MUCH // 6)),
    "values that nobody knows": ANSWER + HELLO + event({}, f'"x":[{_NUMBERS}]') + END,
    "values of a usage": ANSWER + HELLO + event({}, f'"usage":{{"x":[{_NUMBERS}]}}') + END,
    "names of a usage": ANSWER + event({}, '"usage":{' + _NAMES + "}") + END,
    "values of a delta": ANSWER + HELLO + event({"x": [{"a": 1}] * (_VALUES // 2)}) + END,
    "names of a delta": ANSWER + HELLO + event({f"k{number}": 1 for number in range(_VALUES)}) + END,
    "values of probabilities": ANSWER + event({"content": "x"}, logprobs={"content": [_TOKEN] * (_VALUES // 7)}) + END,
    "values that are deep": ANSWER + HELLO + event({}, '"x":' + '{"a":[' * 400 + "]}" * 400) + END,
    "long numbers": ANSWER + HELLO + event({}, '"x":[' + ("1." + "9" * 30 + ",") * 7_000 + "0]") + END,
    "very long numbers": ANSWER + HELLO + event({}, '"x":[' + ("9" * 4_200 + ",") * 60 + "0]") + END,
    "one long number": ANSWER + HELLO + event({}, '"x":1.' + "9" * 250_000) + END,
    "an event of many lines": ANSWER + HELLO + b"data: {\ndata:}\n" * (MAX_EVENT_LINES // 2 - 1) + b"\n" + END,
    "an event of too many lines": ANSWER + HELLO + b"x\n" * 400_000 + b"\n" + END,
    "many events": ANSWER + HELLO * 3_000 + END,
    "many events of nothing": ANSWER + HELLO + b":\n\n" * 300_000 + END,
    "arguments of text": _arguments(_filled("x", '{"text": "', '"}')),
    "arguments of escapes": _arguments(_filled("\\u00e4", '{"text": "', '"}', size=_MUCH - 50_000)),
    "arguments with many numbers": _arguments('{"items": [' + _NUMBERS + "]}"),
    "arguments with many objects": _arguments('{"items": [' + '{"a":1},' * (_VALUES // 2) + "{}]}"),
    "arguments with many names": _arguments("{" + _NAMES + "}"),
    "arguments with too many objects": _arguments(_filled('{"a":1},', '{"items": [', "{}]}")),
    "arguments that are deep": _arguments(_filled("[", '{"items": ')),
    "many calls": ANSWER + b"".join(event({"tool_calls": [_call(n, "{}")]}) for n in range(900)) + CALLS_END,
    "calls of long names": ANSWER + event({"tool_calls": [_call(n, "{}", "x" * 9_999) for n in range(20)]}) + CALLS_END,
    "an answer that is no stream": JSON + b'{"choices":[{"message":{"content":"' + b"x" * _ROOM + b'"}}]}',
    "a huge answer that is no stream": JSON + b'{"choices":[{"message":{"content":"' + b"x" * (20 << 20) + b'"}}]}',
    "an answer in lines that is no stream": JSON + b'{"choices":[\n' + b"{},\n" * (1 << 20),
    "a long error": REFUSAL + b'{"error": {"message": "' + b"no " * (17 << 20),
    "an error with many values": REFUSAL + b'{"error": [' + b"0," * 32_000 + b"0]}",
    "an error with many objects": REFUSAL + b'{"error": {"message": [' + b'{"a":1},' * 8_000 + b"0]}}",
    "a deep error": REFUSAL + b'{"error": ' + b"[" * 60_000,
    "an error like a secret": REFUSAL + b"sk-" * 50_000,
    "an error of blanks": REFUSAL + b" " * 65_000 + b"x",
    "an error in the stream": ANSWER + b'data: {"error": {"message": "' + b"no " * (_ROOM // 3) + b'"}}\n\n',
    "a long model name": ANSWER + HELLO + event({}, f'"model":"{"m" * _ROOM}"', finish_reason="stop") + _DONE,
    "a long id": ANSWER + HELLO + event({"content": "a"}, f'"id":"{"m" * _ROOM}"') + END,
    "many headers": HEAD + b"a:\r\n" * 3_900 + b"\r\n" + HELLO + END,
    "too many headers": HEAD + b"a:\r\n" * 20_000 + b"\r\n" + HELLO + END,
    "many trailers": _chunked(HELLO + END, 100, b"a:\r\n" * 3_900),
    "too many trailers": _chunked(HELLO + END, 100, b"a:\r\n" * 20_000),
    "many heads": b"HTTP/1.1 100 \r\n\r\n" * 20_000 + ANSWER + HELLO + END,
    "chunks of one byte": _chunked(HELLO * 200 + END, 1),
    "compressed events": GZIP + gzip.compress(HELLO * 3_000 + END),
    "one compressed event": GZIP + gzip.compress(event({"content": "x" * _ROOM}) + END),
    "much that is compressed": GZIP + gzip.compress(b":\n\n" * (10 << 20)),
}
"""Answers that take long to take apart, for the client and for us."""


def sent(answer: bytes) -> list[bytes]:
    """The answer in the pieces in which it is written to the socket."""
    return [answer[at : at + _SENT_AT_ONCE] for at in range(0, len(answer), _SENT_AT_ONCE)]

"""A provider that does what it should not. `python -m bench.w11_server` prints the port that it listens on.

The name of the model says what it does: `flood` writes for ever, `stall` writes a word and then nothing, `odd` answers
with what is no stream, another each time, `calls` asks for 100,000 tool calls in one answer, `callers` for 900, which
are let in.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from typing import Any

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
_PIECE_BYTES = 60_000


def _event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    chunk: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return (
        f"data: {json.dumps(chunk | {'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}]})}\n\n".encode()
    )


def _calls(count: int) -> bytes:
    function = {"name": "note", "arguments": "{}"}
    calls = ({"index": number, "id": f"c{number}", "type": "function", "function": function} for number in range(count))
    return b"".join(_event({"tool_calls": [call]}) for call in calls) + _event({}, "tool_calls") + b"data: [DONE]\n\n"


_WORD = _event({"content": "word "})
_ODD = cycle(
    (
        _HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n" + _WORD,
        _HEAD + b"\r\ndata: {\xff\xfe\n\n" + b"data: " + b'{"a":[' * 50_000 + b"\n\n",
        _HEAD + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b":\n\n" * (10 << 20)),
        _HEAD + b"\r\n" + b"x\n" * 400_000 + b"\n",
        b'HTTP/1.1 400 Bad\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{"error": [' + b"0," * 10**6,
        b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * 20_000 + b"\r\n",
        b"\x00\x01\x02" * 1_000,
    )
)
_ANSWERS = {"calls": _HEAD + b"\r\n" + _calls(100_000), "callers": _HEAD + b"\r\n" + _calls(900)}


def _pieces(model: str) -> Iterator[bytes]:
    if model == "flood":
        yield _HEAD + b"\r\n"
        while True:
            yield _WORD * (_PIECE_BYTES // len(_WORD))
    answer = _HEAD + b"\r\n" + _WORD if model == "stall" else next(_ODD) if model == "odd" else _ANSWERS[model]
    for at in range(0, len(answer), _PIECE_BYTES):
        yield answer[at : at + _PIECE_BYTES]


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        model = json.loads(await reader.readexactly(length))["model"]
        for piece in _pieces(model):
            writer.write(piece)
            await writer.drain()
        if model == "stall":
            await reader.read()  # until the client has gone
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

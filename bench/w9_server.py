"""A provider that costs its clients nothing but what they do themselves: fixed bytes, in one piece or one by one.

`python -m bench.w9_server` prints the port that it listens on. The name of the model says what comes: `at-once-110` are
110 events in one piece, `one-by-one-110` as many with a short pause between.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from functools import cache

_PAUSE_SECONDS = 0.0005
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@cache
def pieces(model: str) -> tuple[bytes, ...]:
    way, _, count = model.rpartition("-")
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m"}
    deltas = [{"content": f"word {number} "} for number in range(int(count) - 2)]
    chunks = [head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks.append(head | {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
    events = [f"data: {each}\n\n".encode() for each in (*map(json.dumps, chunks), "[DONE]")]
    framed = [b"%x\r\n%b\r\n" % (len(event), event) for event in events]
    framed = [_HEAD, *framed[:-1], framed[-1] + b"0\r\n\r\n"]
    return tuple(framed) if way == "one-by-one" else (b"".join(framed),)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
            body = json.loads(await reader.readexactly(length))
            for piece in pieces(body["model"]):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(_PAUSE_SECONDS)
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

"""A model provider on loopback for tests and witnesses: streamed chat completions, and Anthropic's messages.

Inside a test: `async with ModelServer(respond) as server: ... server.base_url`. As a process of its own:
`python -m ai_whisperer.testing.model_server --port 0 --log FILE`; it prints `ready http://127.0.0.1:PORT/v1`.

What a request gets is decided by a function `respond(body, number) -> Reply`, so every fault of a provider can
be asked for. The log has one line of JSON when a request arrives (`arrived`) and one when its response was sent
to the end (`answered`), each flushed at once: it tells what really happened even if the client was killed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self, TextIO

from ai_whisperer.testing.anthropic_events import error_body, flattened, framed, message_events
from ai_whisperer.testing.model_reply import Call as Call
from ai_whisperer.testing.model_reply import Reply as Reply

_PIECE_CHARACTERS = 12
_KEPT_REQUESTS = 1000
_CHAT, _MESSAGES = "/chat/completions", "/messages"
_TOOL_REQUEST = re.compile(r"use tool (\S+) (\d+) times")


Respond = Callable[[dict[str, Any], int], Reply]


@dataclass
class Received:
    """A request as it arrived, and what became of its response."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    answered: bool = False
    sent_bytes: int = 0
    client_left: asyncio.Event = field(default_factory=asyncio.Event)


def obliging(body: dict[str, Any], number: int) -> Reply:  # noqa: ARG001
    """Do what the last user message says, `use tool NAME K times`: one call per answer, then `done`."""
    messages = list(flattened(body.get("messages", [])))
    last = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    prompt = _text_of(messages[last]) if last >= 0 else ""
    if wanted := _TOOL_REQUEST.search(prompt):
        results = sum(message.get("role") == "tool" for message in messages[last + 1 :])
        if results < int(wanted[2]):
            return Reply(tool_calls=(Call(wanted[1], json.dumps({"n": results + 1})),))
    return Reply(text=f"done: {prompt[:80]}")


def follow_script(path: Path) -> Respond:
    """Answer by the rules of a file, `[{"contains": TEXT, "reply": {...}}, ...]`.

    The first rule that fits the last message counts; where none fits, the server is obliging.
    """
    rules = [(rule.get("contains", ""), _reply_from(rule["reply"])) for rule in json.loads(path.read_text("utf-8"))]

    def respond(body: dict[str, Any], number: int) -> Reply:
        message = _text_of(body["messages"][-1]) if body.get("messages") else ""
        return next((reply for contains, reply in rules if contains in message), None) or obliging(body, number)

    return respond


def stream_events(reply: Reply, *, model: str, number: int) -> list[str]:
    """The data of every event of a whole response, up to and including the end mark."""
    head = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": model,
    }
    finish = reply.finish or ("tool_calls" if reply.tool_calls else "stop")
    deltas = [{"role": "assistant", "content": ""}, *_deltas(reply, number)]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    if not reply.omit_finish:
        choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    usage = {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }
    chunks = [head | {"choices": [choice]} for choice in choices] + [head | {"choices": [], "usage": usage}]
    events = [*(json.dumps(chunk) for chunk in chunks), "[DONE]"]
    if reply.malformed_after_events is not None:
        events.insert(reply.malformed_after_events, reply.malformed_event)
    return events


class ModelServer:
    """The server, listening while it is entered.

    `received` holds the latest requests in order of arrival; `stalled` is set once a response has come to a stall.
    `models` is what it answers when it is asked which models it has. With `most_at_once` it answers no more requests at
    the same time and refuses the others with 429 at once, and with `retry_after` as the header of that name.
    """

    def __init__(
        self,
        respond: Respond = obliging,
        *,
        port: int = 0,
        log: Path | None = None,
        latency_seconds: float = 0.0,
        models: Sequence[str] = ("test-model",),
        most_at_once: int = 0,
        retry_after: str = "",
    ) -> None:
        self.models = models
        self.refused = 0
        self._most_at_once = most_at_once
        self._retry_after = retry_after
        self._answering = 0
        self.received: deque[Received] = deque(maxlen=_KEPT_REQUESTS)
        self.stalled = asyncio.Event()
        self._respond = respond
        self._port = port
        self._log_path = log
        self._log: TextIO | None = None
        self._latency_seconds = latency_seconds
        self._arrivals = 0
        self._listener: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        return f"{self.root_url}/v1"

    @property
    def root_url(self) -> str:
        """The address for those who add the version of the interface themselves, as clients of Anthropic do."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        if self._log_path is not None:
            self._log = self._log_path.open("a", encoding="utf-8", buffering=1)
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._listener is not None:
            self._listener.close()
        for connection in self._connections:
            connection.cancel()
        ends = await asyncio.gather(*self._connections, return_exceptions=True)
        if self._log is not None:
            self._log.close()
        for end in ends:
            if isinstance(end, Exception):
                raise end  # `respond` failed, which must not pass for a fault that was asked for

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that goes away, even in the middle, is within its rights.
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                while await self._answer(await self._receive(reader), reader, writer):
                    pass
            finally:
                writer.close()
                await writer.wait_closed()
        if (task := asyncio.current_task()) is not None:
            self._connections.discard(task)

    async def _receive(self, reader: asyncio.StreamReader) -> Received:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self._arrivals += 1
        received = Received(
            number=self._arrivals,
            path=first.split(" ")[1],
            headers=headers,
            body=json.loads(body or b"{}"),
        )
        self.received.append(received)
        self._note("arrived", received)
        return received

    async def _answer(self, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Send the response; False when the connection has to end with it."""
        if received.path.endswith("/models"):
            _send_json(
                200, {"object": "list", "data": [{"id": each, "object": "model"} for each in self.models]}, writer
            )
            await writer.drain()
            return True
        if self._most_at_once and self._answering >= self._most_at_once:
            self.refused += 1
            headers = {"retry-after": self._retry_after} if self._retry_after else {}
            return await self._reply(
                Reply(status=429, error="Too many at once.", headers=headers), received, reader, writer
            )
        self._answering += 1
        try:
            return await self._reply(self._respond(received.body, received.number), received, reader, writer)
        finally:
            self._answering -= 1

    async def _reply(
        self, reply: Reply, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if not received.path.endswith((_CHAT, _MESSAGES)) or not received.body.get("stream"):
            reply = Reply(status=404, error="Only streamed chat completions and messages are served here.")
        if reply.status == HTTPStatus.OK or reply.latency_seconds:
            await asyncio.sleep(max(reply.latency_seconds, self._latency_seconds))
        if reply.raw is not None:
            await _send_raw(reply.raw(), received, writer)
            return False
        if reply.status != HTTPStatus.OK:
            error = {"message": reply.error, "type": "error", "param": None, "code": reply.error_code}
            is_chat = received.path.endswith(_CHAT)
            body = {"error": error} if is_chat else error_body(reply.status, reply.error, reply.error_code)
            _send_json(reply.status, body, writer, reply.headers)
        elif not await self._stream(reply, received, reader, writer):
            return False
        await writer.drain()
        received.answered = True
        self._note("answered", received, status=reply.status)
        return True

    async def _stream(
        self, reply: Reply, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        writer.write(_head(reply.status, headers | {**reply.headers}))
        is_chat = received.path.endswith(_CHAT)
        make = stream_events if is_chat else message_events
        events = make(reply, model=str(received.body.get("model", "")), number=received.number)
        for sent, event in enumerate([*events, None]):
            if reply.cut_after_events == sent:
                return False
            if reply.stall_after_events == sent:
                await writer.drain()
                self.stalled.set()
                await reader.read(1)
                received.client_left.set()
                return False
            if event is not None:
                data = (f"data: {event}\n\n" if is_chat else framed(event)).encode()
                writer.write(b"%x\r\n%b\r\n" % (len(data), data))
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        return True

    def _note(self, what: str, received: Received, **more: object) -> None:
        if self._log is not None:
            key = received.headers.get("idempotency-key")
            line = {"event": what, "number": received.number, "key": key, "model": received.body.get("model")}
            line["at"] = round(time.time(), 3)
            self._log.write(json.dumps(line | more) + "\n")


def _deltas(reply: Reply, number: int) -> Iterator[dict[str, Any]]:
    yield from ({"reasoning_content": piece} for piece in _pieces(reply.reasoning))
    yield from ({"content": piece} for piece in _pieces(reply.text))
    yield from ({"refusal": piece} for piece in _pieces(reply.refusal))
    for index, call in enumerate(reply.tool_calls):
        opening = {"name": call.name, "arguments": ""}
        yield {
            "tool_calls": [{"index": index, "id": f"call_{number}_{index}", "type": "function", "function": opening}]
        }
        for piece in _pieces(call.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE_CHARACTERS] for at in range(0, len(text), _PIECE_CHARACTERS))


def _text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _reply_from(fields: dict[str, Any]) -> Reply:
    calls = tuple(Call(call["name"], json.dumps(call.get("arguments", {}))) for call in fields.pop("tool_calls", ()))
    return replace(Reply(**fields), tool_calls=calls)


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} ", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _send_raw(pieces: Iterable[bytes], received: Received, writer: asyncio.StreamWriter) -> None:
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)  # a client in the same loop has its turn after each piece
            received.sent_bytes += len(piece)
    except ConnectionError:
        received.client_left.set()
        raise


def _send_json(
    status: int, content: dict[str, Any], writer: asyncio.StreamWriter, more: Mapping[str, str] | None = None
) -> None:
    body = json.dumps(content).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body))}
    writer.write(_head(status, {**headers, **(more or {})}) + body)


async def _run(arguments: argparse.Namespace) -> None:
    respond = follow_script(arguments.script) if arguments.script else obliging
    options = {"port": arguments.port, "log": arguments.log, "latency_seconds": arguments.latency}
    options |= {"most_at_once": arguments.most_at_once, "retry_after": arguments.retry_after}
    async with ModelServer(respond, **options) as server:
        sys.stdout.write(f"ready {server.base_url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="A model provider on loopback, for tests and witnesses.")
    parser.add_argument("--port", type=int, default=0, help="0 takes any free port")
    parser.add_argument("--log", type=Path, help="append a line per arrived and per answered request to this file")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds to wait before each response")
    parser.add_argument("--most-at-once", type=int, default=0, help="requests at a time; others get 429")
    parser.add_argument("--retry-after", default="", help="the header of a 429")
    parser.add_argument("--script", type=Path, help='rules: [{"contains": TEXT, "reply": {...}}, ...]')
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()

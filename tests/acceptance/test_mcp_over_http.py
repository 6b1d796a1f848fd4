"""A server over HTTP that means harm: what it sends is taken as far as that holds nobody up."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import mcp.client.streamable_http as library
import pytest

from ai_whisperer.errors import McpError
from ai_whisperer.mcp_config import McpServerConfig
from ai_whisperer.tools.mcp.connection import Connection

_LONG = "é" * 100_000


class _Handler(BaseHTTPRequestHandler):
    """Greets properly, and answers all else as the name of the method says."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.send_error(405)

    do_DELETE = do_GET  # noqa: N815

    def do_POST(self) -> None:
        _Server.accepted.append(self.headers["accept-encoding"])
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message:
            self._send(b"", status=202)
        elif message["method"] == "initialize":
            version = message["params"]["protocolVersion"]
            server = {"name": "odd", "version": "1"}
            self._result(message, protocolVersion=version, capabilities={"tools": {}}, serverInfo=server)
        else:
            getattr(self, f"_{message['method']}")(message)

    def _short(self, message: Any) -> None:
        self._result(message, text="short")

    def _long(self, message: Any) -> None:
        self._result(message, text=_LONG)

    def _long_event(self, message: Any) -> None:
        unheard = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}\n\n:\n:\n'
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"text": _LONG}}, indent=1).encode()
        lines = b"".join(b"data: " + line + b"\r\n" for line in answer.split(b"\n"))
        self._send(unheard * 5_000 + b"id: 5\r\n" + lines + b"\r\n", type="text/event-stream")

    def _packed(self, _: Any) -> None:
        self._send(gzip.compress(b'{"text":"' + b"a" * (1 << 20) + b'"}'), content_encoding="gzip")

    def _many(self, message: Any) -> None:
        self._result(message, many=[[[]]] * 100_000)

    def _refusing(self, message: Any) -> None:
        error = {"code": -1, "message": "no " * 50_000}
        self._send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())

    def _result(self, message: Any, **result: Any) -> None:
        self._send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    def _send(self, body: bytes, *, status: int = 200, type: str = "application/json", **headers: str) -> None:  # noqa: A002
        self.send_response(status)
        for name, value in {"content-type": type, "content-length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    accepted: ClassVar[list[str]] = []

    def handle_error(self, *_: Any) -> None:
        """The client is gone."""


class _Nobody:
    def tools_changed(self) -> None:
        """Nobody listens."""

    def lost(self, connection: Connection) -> None:
        """Nobody listens."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with _Server(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
        server.shutdown()


def asked(url: str, *methods: str) -> list[Any]:
    """What each request is answered, or told, over one connection."""

    async def run() -> list[Any]:
        connection = Connection("odd", McpServerConfig(url=url, timeout_seconds=10), _Nobody())
        await connection.ready()
        answers: list[Any] = []
        for method in methods:
            try:
                answers.append(await connection.request(method, {}))
            except McpError as error:
                answers.append(error.message)
        await connection.close()
        return answers

    return asyncio.run(run())


def test_long_answers_arrive_whole(url: str) -> None:
    assert asked(url, "long", "short", "long_event") == [{"text": _LONG}, {"text": "short"}, {"text": _LONG}]


def test_a_long_answer_is_not_read_by_the_library(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    adapter = getattr(library, "jsonrpc_message_adapter")  # noqa: B009 - it is not meant for others

    class Counting:
        def validate_json(self, data: Any, **options: Any) -> Any:
            read.append(len(data))
            return adapter.validate_json(data, **options)

    monkeypatch.setattr(library, "jsonrpc_message_adapter", Counting())
    asked(url, "long", "long_event", "many", "refusing")
    assert len(read) == 5  # with the greeting, and without the thousands that nobody listens to
    assert max(read) < 5_000


def test_a_packed_answer_is_refused_before_it_is_unpacked(url: str) -> None:
    _Server.accepted.clear()
    [told] = asked(url, "packed")
    assert "The answer is packed as 'gzip', which was not asked for" in told
    assert set(_Server.accepted) == {"identity"}


def test_an_answer_of_too_many_parts_is_refused_and_the_server_goes_on(url: str) -> None:
    many, refusing, short = asked(url, "many", "refusing", "short")
    assert "has more than 150,000 lists and objects" in many
    assert refusing.startswith("The MCP server 'odd' refused: no no no")
    assert short == {"text": "short"}

"""`fetch_url` and what it makes of what a server sends, also of one that misbehaves."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer, ToolCall
from ai_whisperer.errors import ToolError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.tools.fetching.content import content_type, pieces_of, readable
from ai_whisperer.tools.fetching.exchange import Decoder
from ai_whisperer.tools.fetching.fetch_tool import fetch_url
from tests.unit.fetch_server import FetchServer, answer, bomb
from tests.unit.fetch_stage import MEBIBYTE, context_of, fetched, refusal


@pytest.fixture(scope="module")
def server() -> Iterator[FetchServer]:
    with FetchServer().running() as running:
        yield running


@pytest.fixture(autouse=True)
def forget(server: FetchServer) -> None:
    server.forget()


def test_a_page_comes_as_text_with_where_it_is_from(server: FetchServer) -> None:
    server.paths["/page"] = answer(
        b"<h1>Hi</h1><p>See <a href=/more>more</a>.", content_type="text/html; charset=utf-8"
    )
    assert fetched(server, "/page").content == (
        f"URL: {server.url('/page')}\nStatus: 200 OK\nType: text/html\n\n# Hi\n\nSee [more]({server.url('/more')})."
    )


def test_the_request_is_plain(server: FetchServer) -> None:
    server.paths["/ä b"] = answer()
    fetched(server, "/%C3%A4?q=ü#part")
    head, *fields = server.requests[0].strip().split("\r\n")
    assert head == "GET /%C3%A4?q=%C3%BC HTTP/1.1"
    assert [field.partition(":")[0].lower() for field in fields] == [
        "host", "user-agent", "accept", "accept-encoding", "connection",
    ]  # fmt: skip
    assert f"host: {server.host}" in map(str.lower, fields)


def test_json_and_text_come_as_they_are(server: FetchServer) -> None:
    for kind in ("application/json", "application/problem+json", "text/plain", "text/markdown", "application/xml"):
        server.paths["/data"] = answer(b'{"a": "<b>"}', content_type=kind)
        assert fetched(server, "/data").content.endswith(f'Type: {kind}\n\n{{"a": "<b>"}}')


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ("é€".encode(), "text/plain", "é€"),
        ("é€".encode("cp1252"), "text/plain", "é€"),
        ("é".encode("latin-1"), "text/plain; charset=iso-8859-1", "é"),
        ("日本".encode("shift_jis"), 'text/plain; charset="Shift_JIS"', "日本"),
        ("é".encode("utf-16"), "text/plain", "é"),
        (b"\xef\xbb\xbf\xc3\xa9", "text/plain; charset=latin-1", "é"),
        ("<meta charset=koi8-r>Привет".encode("koi8-r"), "text/html", "Привет"),
        (b"\xff\xc3", "text/plain; charset=utf-8", "\ufffd\ufffd"),
        (b"\xc3\xa9", "text/plain; charset=no-such-thing", "é"),
        (b"68656c6c6f", "text/plain; charset=hex", "68656c6c6f"),
        (rb"\x41", "text/plain; charset=unicode_escape", r"\x41"),
        (b"a\0b", "text/plain; charset=utf-8", "a\ufffdb"),
        (b"no type", "", "no type"),
    ],
)
def test_text_is_decoded_whatever_it_claims_to_be(server: FetchServer, body: bytes, kind: str, text: str) -> None:
    server.paths["/text"] = answer(body, content_type=kind)
    assert fetched(server, "/text").content.endswith(f"\n\n{text}")


@pytest.mark.parametrize("kind", ["image/png", "application/octet-stream", ""])
def test_what_is_not_text_is_only_described(server: FetchServer, kind: str) -> None:
    server.paths["/image"] = answer(b"\x89PNG\0\xff" * 100, content_type=kind)
    told = fetched(server, "/image").content
    assert "Size: 600 bytes\nThe content is not text and is not shown." in told
    assert "PNG" not in told


def test_a_long_text_is_cut_and_can_be_read_on(server: FetchServer) -> None:
    server.paths["/long"] = answer(b"0123456789" * 10, content_type="text/plain")
    first = fetched(server, "/long", max_characters=30).content
    assert "Shown: characters 0 to 30 of 100; call again with start=30 to read on\n\n" in first
    last = fetched(server, "/long", start=95).content
    assert last.endswith("Shown: characters 95 to 100 of 100\n\n56789")


def test_an_error_brings_the_beginning_of_what_the_server_says(server: FetchServer) -> None:
    server.paths["/broken"] = answer(b"oops " * 1000, status="503 Service Unavailable", content_type="text/plain")
    result = fetched(server, "/broken")
    assert result.is_error
    assert "Status: 503 Service Unavailable" in result.content
    assert 2000 < len(result.content) < 2300
    assert fetched(server, "/missing").content.endswith("no such page")


@pytest.mark.parametrize(("coding", "body"), [
    ("gzip", gzip.compress(b"hello", mtime=0)), ("deflate", zlib.compress(b"hello")),
    ("deflate", zlib.compress(b"hello")[2:-4]),
    ("x-gzip", gzip.compress(b"hello", mtime=0)), ("identity", b"hello"),
])  # fmt: skip
def test_a_compressed_body_is_unpacked(server: FetchServer, coding: str, body: bytes) -> None:
    server.paths["/packed"] = answer(body, content_type="text/plain", content_encoding=coding)
    assert fetched(server, "/packed").content.endswith("\n\nhello")


def test_a_bomb_is_unpacked_only_up_to_the_limit(server: FetchServer) -> None:
    server.paths["/bomb"] = answer(bomb(64 * MEBIBYTE), content_type="text/plain", content_encoding="gzip")
    told = fetched(server, "/bomb", max_characters=10).content
    assert "Incomplete: only its first 4,194,304 bytes were read." in told


def test_an_endless_body_is_read_up_to_the_limit_and_progress_is_told(server: FetchServer) -> None:
    server.paths["/endless"] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"
    server.endless["/endless"] = b"x" * 65_536
    progress: list[str] = []
    assert "Incomplete: only its first 4,194,304 bytes" in fetched(server, "/endless", progress=progress).content
    assert progress[0].endswith("bytes so far\n")
    assert 2 <= len(progress) <= 17


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (answer(b"short", content_type="text/plain", length=100), "Incomplete: it ended too early"),
        (answer(b"short", content_type="text/plain", length=2), "\n\nsh"),
        (answer(b"not gzip", content_type="text/plain", content_encoding="gzip"), "the compressed data is damaged"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "ended too early"),
    ],
)
def test_a_body_that_is_not_whole_is_shown_as_far_as_it_goes(server: FetchServer, response: bytes, told: str) -> None:
    server.paths["/odd"] = response
    assert told in fetched(server, "/odd").content


@pytest.mark.parametrize(
    "response",
    [b"", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000, b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
     b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n"],
)  # fmt: skip
def test_what_is_not_http_is_told_as_such(server: FetchServer, response: bytes) -> None:
    server.paths["/odd"] = response
    assert "did not answer with HTTP" in refusal(server, "/odd")


def test_an_encoding_that_was_not_asked_for_is_told(server: FetchServer) -> None:
    server.paths["/br"] = answer(b"?", content_type="text/plain", content_encoding="br")
    assert "the encoding 'br'" in refusal(server, "/br")


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nsome"])
def test_a_server_that_dawdles_is_given_up(server: FetchServer, sent: bytes) -> None:
    server.paths["/slow"] = sent
    server.stalling.add("/slow")
    assert "took longer than 0.2 seconds" in refusal(server, "/slow", timeout_seconds=0.2)


def test_the_limit_of_the_agent_bounds_the_time(server: FetchServer) -> None:
    server.paths["/slow"] = b""
    server.stalling.add("/slow")
    context = context_of(server.host, max_tool_seconds=0.2)
    with pytest.raises(ToolError, match=r"longer than 0\.2 seconds"):
        asyncio.run(fetch_url.function(context, url=server.url("/slow")))


def test_a_port_where_nobody_listens_is_told() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(ToolError, match=r"127\.0\.0\.1 could not be reached .*refused the connection"):
        asyncio.run(fetch_url.function(context_of(f"127.0.0.1:{port}"), url=f"http://127.0.0.1:{port}/"))


def test_a_server_without_tls_is_told(server: FetchServer) -> None:
    with pytest.raises(ToolError, match="no secure connection could be made"):
        asyncio.run(fetch_url.function(context_of(server.host), url=f"https://{server.host}/"))


def test_a_little_data_never_becomes_much_memory_at_once() -> None:
    pieces = [len(piece) for piece in Decoder("gzip").pieces(bomb(8 * MEBIBYTE))]
    assert sum(pieces) == 8 * MEBIBYTE
    assert max(pieces) <= 65_536


def test_only_the_head_can_be_asked_for(server: FetchServer) -> None:
    server.paths["/page"] = answer(content_type="text/html", length=123)
    assert fetched(server, "/page", method="HEAD").content.endswith("Status: 200 OK\nType: text/html\n\n")


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", " Connection", "Proxy-Authorization"])
def test_headers_of_the_connection_cannot_be_set(server: FetchServer, name: str) -> None:
    assert "Leave it out" in refusal(server, "/", headers={name: "x"})


@pytest.mark.parametrize("headers", [{"x": "a\r\ny: b"}, {"x y": "a"}, {"": "a"}, {"x": "\ud800"}, {"é": "a"}])
def test_headers_that_cannot_be_sent_are_refused(server: FetchServer, headers: dict[str, str]) -> None:
    assert "cannot be sent" in refusal(server, "/", headers=headers)
    assert server.requests == []


@pytest.mark.parametrize("arguments", [{"start": -1}, {"max_characters": 0}, {"timeout_seconds": float("nan")}])
def test_numbers_that_make_no_sense_are_refused(server: FetchServer, arguments: dict[str, Any]) -> None:
    assert "Call again" in refusal(server, "/", **arguments)


def test_only_calls_that_read_may_be_repeated() -> None:
    assert fetch_url.may_repeat('{"url": "http://a/"}')
    assert not fetch_url.may_repeat('{"url": "http://a/", "method": "POST"}')


def test_an_agent_fetches_and_what_it_got_is_journaled_as_untrusted(server: FetchServer) -> None:
    server.paths["/page"] = answer(b"hello", content_type="text/plain")

    def say(request: ModelRequest) -> Answer | str:
        wanted = ToolCall(call_id="c", name="fetch_url", arguments=json.dumps({"url": server.url("/page")}))
        return Answer(tool_calls=(wanted,)) if len(request.turns) == 1 else "read"

    async def run() -> None:
        async with AsyncAgentSessionManager(model_factory=lambda _: FunctionModel(say)) as manager:
            await manager.create_agent("reader", {"tools": ["fetch_url"], "network": [server.host]})
            task = await manager.send_task("reader", "go")
            await manager.wait_task(task)
            result = (await manager.list_steps(task.id))[1].result
            assert result is not None
            assert result.content.endswith("hello")
            assert (result.untrusted, result.is_error) == (True, False)

    asyncio.run(run())


class Turns:
    """How often others could have had their turn."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        sleep = asyncio.sleep

        async def counted(seconds: float) -> None:
            self.count += 1
            await sleep(seconds)

        patch.setattr(asyncio, "sleep", counted)


def test_a_body_in_tiny_pieces_lets_others_have_their_turn(
    server: FetchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
    server.paths["/tiny"] = head + b"1\r\na\r\n" * 5_000 + b"0\r\n\r\n"
    turns = Turns(monkeypatch)
    assert fetched(server, "/tiny").content.endswith("\n\n" + "a" * 5_000)
    assert turns.count >= 5_000 // 100


def test_a_body_in_far_too_many_pieces_is_given_up(server: FetchServer) -> None:
    server.paths["/dust"] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
    server.endless["/dust"] = b"1\r\na\r\n" * 1_000
    assert "Incomplete: it ended too early: it came in too many pieces" in fetched(server, "/dust").content


def test_an_answer_that_is_for_ever_on_its_way_is_given_up(server: FetchServer) -> None:
    server.paths["/soon"] = b"HTTP/1.1 100 Continue\r\n\r\n" * 20 + answer(b"here", content_type="text/plain")
    server.paths["/never"] = b""
    server.endless["/never"] = b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100
    assert fetched(server, "/soon").content.endswith("here")
    assert "more than 20 interim answers" in refusal(server, "/never")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig", "shift_jis", "gb18030", "iso2022_jp", "cp1252"])
def test_a_body_is_decoded_in_pieces_and_means_the_same(encoding: str) -> None:
    letters = "aé€\r\n\r\0" if encoding == "cp1252" else "a日本\r\n\r\0"
    text = letters * 20_001 + "\r"
    body = text.encode(encoding)
    pieces = list(pieces_of(body, encoding))
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 32 << 10
    kind = content_type(f"text/plain; charset={encoding}")
    assert readable(body, kind, url="") == text.replace("\r\n", "\n").replace("\0", "\ufffd")


def test_bytes_that_do_not_fit_are_replaced_in_pieces_too() -> None:
    kind = content_type("text/plain; charset=cp1252")
    assert readable(b"\x81" * 100_000, kind, url="") == "\ufffd" * 100_000

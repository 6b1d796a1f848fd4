"""`fetch_url` against a server that misbehaves, names that change their addresses, and everything else there is."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import socket
import ssl
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.conversation import Answer, ToolCall, ToolResult
from ai_whisperer.core.address_kinds import IPAddress
from ai_whisperer.core.network import grants_of
from ai_whisperer.definition import Access, EffectiveLimits
from ai_whisperer.errors import ToolError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.tools.fetching.exchange import Streams, _trusted
from ai_whisperer.tools.fetching.fetch_tool import fetch_url, result_of
from ai_whisperer.tools.fetching.fetcher import Fetcher, request_for
from ai_whisperer.tools.fetching.target import Target, redirected, target_of
from ai_whisperer.tools.function import CancelSignal, ToolContext
from ai_whisperer.tools.workplace import OWN, Folder, Workplace
from tests.unit.fetch_server import FetchServer, answer, bomb

PUBLIC = "93.184.215.14"
MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def server() -> Iterator[FetchServer]:
    with FetchServer().running() as running:
        yield running


@pytest.fixture(autouse=True)
def forget(server: FetchServer) -> None:
    server.paths.clear()
    server.endless.clear()
    server.requests.clear()


def context_of(*network: str, progress: list[str] | None = None, **limits: Any) -> ToolContext:
    own = Folder(path=Path("/nowhere"), access=Access.WRITE)
    return ToolContext(
        session_id="s",
        agent_id="a",
        task_id="t",
        step_id="t.1",
        cancelled=CancelSignal(),
        workplace=Workplace(folders={OWN: own}, network=network, limits=EffectiveLimits(**limits)),
        progress=(progress if progress is not None else []).append,
    )


def fetched(server: FetchServer, path: str, *, progress: list[str] | None = None, **arguments: Any) -> ToolResult:
    """What the tool returns for a path of the server, which is granted."""
    context = context_of(server.host, progress=progress)
    result = asyncio.run(fetch_url.function(context, url=server.url(path), **arguments))
    assert isinstance(result, ToolResult)
    return result


def refusal(server: FetchServer, path: str, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        fetched(server, path, **arguments)
    return caught.value.message


class Names:
    """Names and the addresses that they have, one answer after the other; every connection ends at the server."""

    def __init__(self, server: FetchServer, **answers: list[list[str]]) -> None:
        self._server = server
        self._answers = {name.replace("_", "."): lists for name, lists in answers.items()}
        self.asked: list[str] = []
        self.connected: list[str] = []

    async def resolve(self, host: str, _port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self._answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        answers = self._answers[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connect(self, address: IPAddress, _target: Target) -> Streams:
        self.connected.append(str(address))
        return await asyncio.open_connection("127.0.0.1", self._server.port)

    def fetch(self, url: str, *network: str, method: str = "GET", **fields: Any) -> ToolResult:
        fields = {"headers": None, "body": None, "max_bytes": MEBIBYTE} | fields
        coroutine = Fetcher(resolve=self.resolve, connect=self.connect).fetch(
            request_for(url, method, **fields), grants_of(network), timeout_seconds=10, progress=lambda _: None
        )
        return result_of(asyncio.run(coroutine), start=0, max_characters=1000)

    def refusal(self, url: str, *network: str, **fields: Any) -> str:
        with pytest.raises(ToolError) as caught:
            self.fetch(url, *network, **fields)
        return caught.value.message


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


def test_without_a_grant_nothing_is_fetched(server: FetchServer) -> None:
    for network, told in (((), "granted no host at all"), (("example.com",), "You are granted: example.com")):
        with pytest.raises(ToolError, match=told):
            asyncio.run(fetch_url.function(context_of(*network), url=server.url("/")))
    assert server.requests == []


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://0177.1/", "http://[::1]/", "http://[::]/",
     "http://[::ffff:127.0.0.1]/", "http://169.254.169.254/latest", "http://[fe80::1]/", "http://10.0.0.1/",
     "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://\uff11\uff12\uff17.0.0.1/", "http://224.0.0.1/"],
)  # fmt: skip
def test_the_grant_of_all_public_hosts_leads_to_no_other_address(server: FetchServer, url: str) -> None:
    names = Names(server)
    assert "which must not be fetched from" in names.refusal(url, "*")
    assert (names.asked, names.connected) == ([], [])


@pytest.mark.parametrize(
    "url",
    ["ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "//example.com/", "example.com", "", "http://",
     "http:///x", "http://user@example.com/", "http://user:pw@example.com/", "http://a@b@c/", "http://exa mple.com/",
     "http://example.com\\@evil.example/", "http://example.com:99999/", "http://example.com:x/", "http://[::1/",
     "http://example.com/\r\nx: y", "http://exam\tple.com/", "http://a.1/", "javascript:alert(1)",
     "http://[fe80::1%25eth0]/", "http://" + "a" * 10_000],
)  # fmt: skip
def test_what_is_no_plain_url_is_refused(server: FetchServer, url: str) -> None:
    names = Names(server, example_com=[[PUBLIC]], evil_example=[[PUBLIC]])
    names.refusal(url, "*")
    assert (names.asked, names.connected) == ([], [])


def test_a_name_is_asked_for_once_and_the_connection_goes_to_what_was_answered(server: FetchServer) -> None:
    server.paths["/"] = answer(b"ok", content_type="text/plain")
    names = Names(server, rebind_example=[[PUBLIC], ["127.0.0.1"]])
    assert names.fetch("http://rebind.example/", "*").content.endswith("ok")
    assert (names.asked, names.connected) == (["rebind.example"], [PUBLIC])
    assert "leads to 127.0.0.1, a loopback address" in names.refusal("http://rebind.example/", "*")
    assert names.connected == [PUBLIC]


@pytest.mark.parametrize("addresses", [[PUBLIC, "10.0.0.1"], ["169.254.169.254"], ["::1", PUBLIC], ["fe80::1%lo"]])
def test_one_address_that_is_not_public_is_enough_to_refuse_a_name(server: FetchServer, addresses: list[str]) -> None:
    names = Names(server, mixed_example=[addresses])
    assert "must not be fetched from" in names.refusal("https://mixed.example/", "*", "*.example")
    assert names.connected == []


def test_a_name_that_is_granted_in_full_may_be_near_but_not_link_local(server: FetchServer) -> None:
    server.paths["/"] = answer(b"ok", content_type="text/plain")
    names = Names(server, intranet_example=[["10.0.0.1"], ["169.254.169.254"]])
    assert names.fetch("http://intranet.example/", "intranet.example").content.endswith("ok")
    assert "a link-local address" in names.refusal("http://intranet.example/", "intranet.example")


def test_a_name_that_is_not_there_is_told(server: FetchServer) -> None:
    assert "was not found: Name or service not known" in Names(server).refusal("http://nowhere.example/", "*")
    assert "it has no address" in Names(server, empty_example=[[]]).refusal("http://empty.example/", "*")


def test_the_next_address_is_tried_when_one_does_not_answer(server: FetchServer) -> None:
    class Half(Names):
        async def connect(self, address: IPAddress, target: Target) -> Streams:
            if isinstance(address, IPv4Address):
                return await super().connect(address, target)
            raise OSError(101, "Network is unreachable")

    server.paths["/"] = answer(b"ok", content_type="text/plain")
    names = Half(server, both_example=[["2606:4700::1111", PUBLIC]])
    assert names.fetch("http://both.example/", "*").content.endswith("ok")


def test_redirects_are_followed_and_counted(server: FetchServer) -> None:
    server.paths["/a"] = answer(status="302 Found", location="b?x=1")
    server.paths["/b"] = answer(status="301 Moved", location="/c")
    server.paths["/c"] = answer(b"there", content_type="text/plain")
    assert fetched(server, "/a").content.startswith(f"URL: {server.url('/c')} (after 2 redirects)\nStatus: 200 OK")


def test_a_redirect_that_goes_round_ends(server: FetchServer) -> None:
    server.paths["/round"] = answer(status="302 Found", location="/round")
    assert "more than 5 redirects" in refusal(server, "/round")
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    "location",
    ["http://127.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[::1]/", "https://2130706433/",
     "http://rebind.example/", "//localhost/", "file:///etc/passwd", "ftp://example.com/", "http://example.com:22/",
     "http://user:pw@example.com/", "http://example.com\\@evil.example/", "http://[", "gopher://x"],
)  # fmt: skip
def test_a_redirect_to_a_forbidden_place_is_not_followed(server: FetchServer, location: str) -> None:
    server.paths["/go"] = answer(status="302 Found", location=location)
    names = Names(server, example_com=[[PUBLIC]], rebind_example=[["10.0.0.1"]], localhost=[["127.0.0.1"]])
    names.refusal("http://example.com/go", "*")
    assert names.connected == [PUBLIC]


def test_every_hop_needs_a_grant_of_its_own(server: FetchServer) -> None:
    server.paths["/go"] = answer(status="302 Found", location="http://other.example/")
    names = Names(server, example_com=[[PUBLIC]], other_example=[[PUBLIC]])
    assert "may not talk to other.example at port 80" in names.refusal("http://example.com/go", "example.com")
    assert names.asked == ["example.com"]


def test_a_name_is_checked_anew_on_every_hop(server: FetchServer) -> None:
    server.paths["/go"] = answer(status="302 Found", location="/next")
    names = Names(server, rebind_example=[[PUBLIC], ["127.0.0.1"]])
    assert "leads to 127.0.0.1" in names.refusal("http://rebind.example/go", "*")
    assert len(server.requests) == 1


def test_headers_are_kept_for_their_server_and_go_to_no_other(server: FetchServer) -> None:
    server.paths["/go"] = answer(status="302 Found", location="/on")
    server.paths["/on"] = answer(status="302 Found", location="http://other.example/end", set_cookie="a=b")
    server.paths["/end"] = answer(b"ok", content_type="text/plain")
    names = Names(server, example_com=[[PUBLIC]], other_example=[[PUBLIC]])
    names.fetch("http://example.com/go", "*", headers={"Authorization": "Bearer x", "Accept": "text/plain"})
    here, there, elsewhere = server.requests
    assert "authorization: Bearer x" in here.replace("Authorization", "authorization")
    assert "authorization: Bearer x" in there.replace("Authorization", "authorization")
    assert "bearer" not in elsewhere.lower()
    assert "cookie" not in elsewhere.lower()


def test_a_post_is_sent_and_becomes_a_get_when_it_is_redirected(server: FetchServer) -> None:
    server.paths["/post"] = answer(status="303 See Other", location="/end")
    server.paths["/end"] = answer(b"ok", content_type="text/plain")
    fetched(server, "/post", method="POST", body='{"a": 1}', headers={"content-type": "application/json"})
    assert server.requests[0].startswith("POST /post")
    assert server.requests[0].endswith('{"a": 1}')
    assert server.requests[1].startswith("GET /end")


def test_what_was_posted_is_not_sent_on_to_another_server(server: FetchServer) -> None:
    server.paths["/post"] = answer(status="307 Temporary Redirect", location="http://other.example/")
    names = Names(server, example_com=[[PUBLIC]], other_example=[[PUBLIC]])
    assert "another server" in names.refusal("http://example.com/post", "*", method="POST", body="secret")
    assert len(server.requests) == 1


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


def test_proxies_in_the_environment_are_not_used(server: FetchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.paths["/"] = answer(b"direct", content_type="text/plain")
    assert fetched(server, "/").content.endswith("direct")


@pytest.mark.parametrize("arguments", [{"start": -1}, {"max_characters": 0}, {"timeout_seconds": float("nan")}])
def test_numbers_that_make_no_sense_are_refused(server: FetchServer, arguments: dict[str, Any]) -> None:
    assert "Call again" in refusal(server, "/", **arguments)


def test_only_calls_that_read_may_be_repeated() -> None:
    assert fetch_url.may_repeat('{"url": "http://a/"}')
    assert not fetch_url.may_repeat('{"url": "http://a/", "method": "POST"}')


def test_a_target_is_written_as_urls_are() -> None:
    assert target_of("HTTP://EXAMPLE.com:80").url == "http://example.com/"
    assert target_of("https://[::1]:8443/a?b").url == "https://[::1]:8443/a?b"
    assert redirected(target_of("http://example.com/a/b"), "../c").url == "http://example.com/c"


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
            result = manager.list_steps(task.id)[1].result
            assert result is not None
            assert result.content.endswith("hello")
            assert (result.untrusted, result.is_error) == (True, False)

    asyncio.run(run())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for `tls.example`, in one file."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl on this machine to make a certificate with")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=tls.example", "-addext", "subjectAltName=DNS:tls.example"]
    files = ["-keyout", str(path), "-out", str(path.with_name("certificate.pem"))]
    subprocess.run(["openssl", "req", "-x509", *kind, *names, *files], check=True, capture_output=True)
    path.write_text(path.read_text() + path.with_name("certificate.pem").read_text())
    return path


def over_tls(certificate: Path, host: str) -> tuple[ToolResult | str, list[str]]:
    """What is fetched from a server with that certificate under a name, and the heads of the requests."""
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(answer(b"secure", content_type="text/plain"))
        await writer.drain()
        writer.close()

    async def loopback(_host: str, _port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async def run() -> ToolResult | str:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as listening:
            port = listening.sockets[0].getsockname()[1]
            request = request_for(f"https://{host}:{port}/", "GET", headers=None, body=None, max_bytes=100)
            grants = grants_of([f"{host}:{port}"])
            try:
                got = await Fetcher(resolve=loopback).fetch(
                    request, grants, timeout_seconds=10, progress=lambda _: None
                )
            except ToolError as error:
                return error.message
            return result_of(got, start=0, max_characters=100)

    return asyncio.run(run()), heads


def test_tls_is_for_the_name_and_not_for_the_address(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_name("certificate.pem")))
    _trusted.cache_clear()
    result, heads = over_tls(certificate, "tls.example")
    assert isinstance(result, ToolResult)
    assert result.content.endswith("secure")
    assert "host: tls.example:" in heads[0].lower()
    told, heads = over_tls(certificate, "other.example")
    assert "its certificate is not valid: Hostname mismatch" in str(told)
    assert heads == []
    _trusted.cache_clear()


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    told, heads = over_tls(certificate, "tls.example")
    assert "its certificate is not valid" in str(told)
    assert heads == []

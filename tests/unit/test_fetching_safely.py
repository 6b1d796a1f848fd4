"""Fetching leads only to where it was granted: names that change, redirects, odd URLs, TLS."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from ai_whisperer.core.address_kinds import IPAddress
from ai_whisperer.core.network import grants_of
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.fetching.exchange import Streams, _trusted
from ai_whisperer.tools.fetching.fetch_tool import fetch_url, result_of
from ai_whisperer.tools.fetching.fetcher import Fetcher, request_for
from ai_whisperer.tools.fetching.resolving import system_resolver
from ai_whisperer.tools.fetching.target import Target, redirected, target_of
from tests.unit.fetch_server import FetchServer, answer
from tests.unit.fetch_stage import PUBLIC, Names, context_of, fetched, refusal


@pytest.fixture(scope="module")
def server() -> Iterator[FetchServer]:
    with FetchServer().running() as running:
        yield running


@pytest.fixture(autouse=True)
def forget(server: FetchServer) -> None:
    server.forget()


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


def test_proxies_in_the_environment_are_not_used(server: FetchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.paths["/"] = answer(b"direct", content_type="text/plain")
    assert fetched(server, "/").content.endswith("direct")


def test_a_target_is_written_as_urls_are() -> None:
    assert target_of("HTTP://EXAMPLE.com:80").url == "http://example.com/"
    assert target_of("https://[::1]:8443/a?b").url == "https://[::1]:8443/a?b"
    assert redirected(target_of("http://example.com/a/b"), "../c").url == "http://example.com/c"


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
                    request, grants, timeout_seconds=60, progress=lambda _: None
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


def test_names_are_looked_up_in_threads_that_nobody_else_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def look_up(*_: object, **__: object) -> list[tuple[object, ...]]:
        threads.append(threading.current_thread().name)
        return [(0, 0, 0, "", (PUBLIC, 80))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert asyncio.run(system_resolver("example.com", 80)) == [PUBLIC]
    assert [name.startswith("whisperer-names") for name in threads] == [True]

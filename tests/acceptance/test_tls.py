"""Where a server may listen: on this machine, or elsewhere with TLS and a token that somebody chose."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.cli.main import main
from ai_whisperer.errors import PortError, SettingsError
from ai_whisperer.server.address import find_address
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings
from tests.acceptance.raw_socket import ClosedError, RawSocket, RefusedError, exchange, fetch
from tests.acceptance.server_in_thread import ALICE, ServerInThread

ELSEWHERE = ("0.0.0.0", "::", "192.168.1.5", "10.0.0.1", "fe80::1", "localhost", "example.org", "0", "127.1")  # noqa: S104


@pytest.mark.parametrize("host", ELSEWHERE)
@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, "TLS"),
        ({"token": ALICE}, "TLS"),
        ({"tls_certificate": "c.pem", "tls_key": "k.pem"}, "a token that you choose"),
    ],
    ids=["nothing", "a token alone", "TLS alone"],
)
def test_a_server_that_others_could_reach_does_not_start_without_token_and_tls(
    tmp_path: Path, host: str, given: dict[str, str], missing: str
) -> None:
    paths = {name: tmp_path / value if name != "token" else value for name, value in given.items()}
    settings = Settings(data=tmp_path / "data", host=host, port=0, **paths)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=f"needs {missing}"):
        start(settings)
    assert not (tmp_path / "data").exists(), "nothing was made"


@pytest.mark.parametrize(
    "given", [{"token": "short"}, {"token": ALICE, "tokens": {"bob": "fifteen-letters"}}], ids=["own", "another's"]
)
def test_a_server_that_others_could_reach_does_not_start_with_a_token_that_is_easily_guessed(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    files: dict[str, Any] = {"tls_certificate": tmp_path / "c.pem", "tls_key": tmp_path / "k.pem"}
    settings = Settings(data=tmp_path / "data", host="192.168.1.5", port=0, **files, **given)
    with pytest.raises(SettingsError, match=f"the token of '{'bob' if 'tokens' in given else 'local'}' is easily"):
        start(settings)
    assert not (tmp_path / "data").exists(), "nothing was made"


def start(settings: Settings) -> None:
    async def main() -> None:
        async with running(settings):
            raise AssertionError("it should not have started")

    asyncio.run(main())


def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name in ("c.pem", "k.pem"):
        (tmp_path / name).write_text("no certificate", encoding="ascii")
    given = Settings(data=tmp_path / "data", port=0, tls_certificate=tmp_path / "c.pem", tls_key=tmp_path / "k.pem")
    with pytest.raises(SettingsError, match="The TLS certificate or its key cannot be used"):
        start(given)


def test_a_token_stands_for_one_principal(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"one of \[tokens\] as well"):
        start(Settings(data=tmp_path, port=0, token=ALICE, tokens={"alice": ALICE}))


def test_a_folder_of_templates_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="nowhere"):
        start(Settings(data=tmp_path, port=0, templates=(tmp_path / "nowhere",)))


def test_a_port_that_is_taken_is_said_so(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortError, match=f"Port {port} on 127.0.0.1 cannot be used .* choose another with --port"):
            start(Settings(data=tmp_path / "data", port=port))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl on this machine to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "certificate.pem", folder / "key.pem"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=whisperer", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(made)]
    subprocess.run(["openssl", "req", "-x509", *kind, *names, *files], check=True, capture_output=True)
    return made, key


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]) -> Iterator[ServerInThread]:
    settings = Settings(
        data=tmp_path_factory.mktemp("data"),
        port=0,
        token=ALICE,
        tls_certificate=certificate[0],
        tls_key=certificate[1],
    )
    with ServerInThread(settings) as server:
        yield server


@pytest.fixture
def trust(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate[0]))


def test_with_a_certificate_everything_goes_over_tls(server: ServerInThread, trust: ssl.SSLContext) -> None:
    assert server.url == f"https://127.0.0.1:{server.port}"
    opened = fetch(server.port, f"/?token={ALICE}", tls=trust)
    assert opened.status == 200
    assert "; secure" in opened.headers["set-cookie"].lower()
    with server.connect(tls=trust, headers={"Origin": server.url}) as client:
        session = client.call("session.create")["sessionId"]
        client.call("events.subscribe", sessionId=session, after=0)
        client.call("async.createAgent", sessionId=session, agentId="worker")
        assert client.next_note()["method"] == "agent.created"


def test_a_broken_frame_is_told_over_tls_too(server: ServerInThread, trust: ssl.SSLContext) -> None:
    with server.connect(tls=trust) as client:
        client.send(b"\xff\xff")
        assert client.until_closed().code == 1002


def test_pages_of_the_same_address_without_tls_are_strangers(server: ServerInThread, trust: ssl.SSLContext) -> None:
    with pytest.raises(RefusedError) as refused:
        server.connect(tls=trust, headers={"Origin": server.url.replace("https", "http")})
    assert refused.value.response.status == 403


def test_who_speaks_no_tls_gets_nothing(server: ServerInThread) -> None:
    plain = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {ALICE}\r\n\r\n"
    assert b"HTTP/1.1" not in exchange(server.port, plain.encode())
    with pytest.raises(ClosedError):
        RawSocket(server.port, token=ALICE)


def test_who_does_not_know_the_certificate_turns_away(server: ServerInThread) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        fetch(server.port, "/healthz", tls=ssl.create_default_context())


def test_a_server_on_all_addresses_answers_only_to_the_names_that_it_was_given(
    tmp_path: Path, certificate: tuple[Path, Path], trust: ssl.SSLContext
) -> None:
    settings = Settings(
        data=tmp_path,
        host="0.0.0.0",  # noqa: S104
        port=0,
        token=ALICE,
        tls_certificate=certificate[0],
        tls_key=certificate[1],
        allowed_hosts=("agents.example",),
    )
    with ServerInThread(settings) as server:
        assert server.url == "https://agents.example", "it is told the name that it answers to"
        assert fetch(server.port, "/healthz", tls=trust, headers={"Host": "agents.example"}).status == 200
        for host in (f"127.0.0.1:{server.port}", f"0.0.0.0:{server.port}", "localhost", "example"):
            assert fetch(server.port, "/healthz", tls=trust, headers={"Host": host}).status == 421
        own = {"Host": "agents.example", "Origin": "https://agents.example"}
        with server.connect(tls=trust, headers=own) as client:
            assert client.call("server.info")["principal"] == "local"
        with pytest.raises(RefusedError):
            server.connect(tls=trust, headers={**own, "Origin": "http://agents.example"})


def test_a_server_on_all_addresses_that_was_given_no_name_is_told_an_address_that_it_answers_to(
    tmp_path: Path, certificate: tuple[Path, Path], trust: ssl.SSLContext
) -> None:
    settings = Settings(
        data=tmp_path,
        host="0.0.0.0",  # noqa: S104
        port=0,
        token=ALICE,
        tls_certificate=certificate[0],
        tls_key=certificate[1],
    )
    with ServerInThread(settings) as server:
        assert server.url == f"https://127.0.0.1:{server.port}"
        kept = find_address(tmp_path)
        assert kept is not None
        assert kept.url == server.url
        with server.connect(tls=trust, headers={"Origin": server.url}) as client:
            assert client.call("server.info")["principal"] == "local"
        refused = fetch(server.port, "/healthz", tls=trust, headers={"Host": f"0.0.0.0:{server.port}"})
        assert refused.status == 421
        assert f"Use {server.url}/" in refused.body.decode()


@pytest.mark.skipif(not socket.has_ipv6, reason="there is no IPv6 on this machine")
def test_the_other_loopback_address_is_this_machine_too(tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6 on this machine")
    with ServerInThread(Settings(data=tmp_path, host="::1", port=0)) as server:
        assert server.url.startswith("http://[::1]:")
        with socket.create_connection(("::1", server.port), timeout=20) as plain:
            plain.sendall(f"GET /healthz HTTP/1.1\r\nHost: [::1]:{server.port}\r\nConnection: close\r\n\r\n".encode())
            assert plain.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_the_commands_reach_a_server_whose_certificate_signs_itself(
    certificate: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, key = certificate
    settings = Settings(data=tmp_path, port=0, tls_certificate=made, tls_key=key)

    def look(url: str, token: str) -> list[int]:
        found = ["--data", str(tmp_path)]
        named = ["--url", url, "--token", token, "--data", str(tmp_path / "other")]
        port = ["--port", url.rpartition(":")[2], "--tls-certificate", str(made), "--tls-key", str(key)]
        return [
            main(["agents", *found]),
            main(["agents", *named]),
            main(["doctor", *found, *port, "--model", "scripted"]),
        ]

    async def scenario() -> list[int]:
        async with running(settings) as server:
            return await asyncio.to_thread(look, server.address.url, server.address.token)

    assert asyncio.run(scenario()) == [0, 1, 0]
    shown = capsys.readouterr()
    assert "certificate verify failed" in shown.err
    assert "the server of this data folder answers at 127.0.0.1" in shown.out

"""Whoever guesses tokens is told to wait, on every route; whoever has the right one goes on."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer.client import Client
from ai_whisperer.errors import ConnectionLostError
from ai_whisperer.settings import Settings
from tests.acceptance.raw_socket import RawSocket, RefusedError, fetch, http_head
from tests.acceptance.server_in_thread import ALICE, LogWitness, ServerInThread, witnessed

TRIES = 5
ELSEWHERE = "127.0.0.2"
"""An address from which no right token has come."""


@pytest.fixture
def witness() -> Iterator[LogWitness]:
    with witnessed(logging.DEBUG) as witness:
        yield witness


@pytest.fixture
def server(tmp_path: Path, witness: LogWitness) -> Iterator[ServerInThread]:
    settings = Settings(data=tmp_path, port=0, tokens={"alice": ALICE}, max_wrong_tokens=TRIES)
    with ServerInThread(settings) as server:
        yield server


def guess(port: int, number: int, *, path: str = "/metrics") -> tuple[int, str | None]:
    response = fetch(port, path, token=f"guessed-{number}")
    return response.status, response.headers.get("retry-after")


def status_elsewhere(port: int, token: str) -> int:
    """The answer to a request from another address."""
    head = http_head(
        "GET",
        "/metrics",
        {"Host": f"127.0.0.1:{port}", "Connection": "close", "Authorization": f"Bearer {token}"},
    )
    with socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(ELSEWHERE, 0)) as plain:
        plain.sendall(head)
        return int(plain.recv(100).split()[1])


def test_a_guess_too_many_is_answered_with_the_time_to_wait(server: ServerInThread) -> None:
    assert [guess(server.port, number) for number in range(TRIES)] == [(401, None)] * TRIES
    status, wait = guess(server.port, TRIES)
    assert status == 429
    assert 1 <= int(wait or 0) <= 60 / TRIES


@pytest.mark.parametrize("path", ["/", "/s/x", "/nothing", "/ws", "/?token=guessed", "/assets/x.js"])
def test_no_route_is_left_out(server: ServerInThread, path: str) -> None:
    for number in range(TRIES):
        guess(server.port, number)
    assert guess(server.port, TRIES, path=path)[0] == 429
    assert fetch(server.port, "/healthz").status == 200
    assert fetch(server.port, "/").status == 401, "no token is no guess"


def test_a_websocket_is_refused_in_the_same_way(server: ServerInThread) -> None:
    for number in range(TRIES + 1):
        with pytest.raises(RefusedError) as refused:
            RawSocket(server.port, headers={"Authorization": f"Bearer guessed-{number}"})
    assert refused.value.response.status == 429
    assert int(refused.value.response.headers["retry-after"]) >= 1
    assert "Try again in" in refused.value.response.text


def test_a_client_is_told_to_wait_and_not_to_start_a_server(server: ServerInThread) -> None:
    async def connected() -> None:
        async with Client(f"ws://127.0.0.1:{server.port}/ws", ALICE):
            pass

    for number in range(TRIES):
        guess(server.port, number)
    with pytest.raises(ConnectionLostError, match=r"accepts no connections now: .*Try again in") as told:
        asyncio.run(connected())
    assert "whisperer serve" not in str(told.value)


def test_the_page_and_programs_go_on_while_another_on_this_machine_guesses(server: ServerInThread) -> None:
    with server.connect(ALICE) as alice:
        for number in range(300):
            guess(server.port, number)
        assert guess(server.port, 300)[0] == 429
        assert alice.call("server.info")["principal"] == "alice"
        assert fetch(server.port, "/", headers={"Cookie": f"whisperer-{server.port}={ALICE}"}).status == 200
        with server.connect(ALICE) as another:
            assert another.call("server.info")["principal"] == "alice"


def test_where_no_right_token_came_from_none_is_looked_at_while_too_many_were_wrong(server: ServerInThread) -> None:
    assert fetch(server.port, "/metrics", token=ALICE).status == 200
    for number in range(TRIES):
        assert status_elsewhere(server.port, f"guessed-{number}") == 401
    assert status_elsewhere(server.port, "guessed") == 429
    assert status_elsewhere(server.port, ALICE) == 429, "or the right one could be found at any speed"
    assert fetch(server.port, "/metrics", token=ALICE).status == 200


def test_it_is_counted_and_logged_without_what_was_guessed(server: ServerInThread, witness: LogWitness) -> None:
    fetch(server.port, "/metrics", token=ALICE)
    for number in range(TRIES + 3):
        guess(server.port, number)
    told = [line for line in witness.lines if "too many wrong tokens" in line]
    assert len(told) == 1
    assert "127.0.0.1" in told[0]
    assert f"whisperer_wrong_tokens_total {TRIES + 3}.0" in fetch(server.port, "/metrics", token=ALICE).text
    assert not any("guessed-" in line for line in witness.lines)

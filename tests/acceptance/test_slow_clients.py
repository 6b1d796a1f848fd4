"""Clients that read slowly or not at all: they are bounded, closed with their cursor, and harm nobody."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import struct
from asyncio.transports import BaseTransport
from collections.abc import Iterator
from typing import Any

import pytest

from ai_whisperer.domain.snapshot import InboxMail, Snapshot
from ai_whisperer.models.base import Model
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.runtime.api import reading as reader
from ai_whisperer.runtime.api.snapshots import snapshot_of
from ai_whisperer.runtime.life.open_session import OpenSession
from ai_whisperer.server.calls import ANSWERS, Caller
from ai_whisperer.server.socket import ClientSocket
from ai_whisperer.settings import Settings
from ai_whisperer.store.sqlite import SqliteStore
from tests.acceptance.raw_socket import CLOSE, PING, frame, request_of
from tests.acceptance.server_in_thread import LogWitness, ServerInThread, witnessed
from tests.acceptance.session_talk import last_seq, numbers, read_up_to, say, sockets, work

PATIENCE_SECONDS = 0.4


def model_of(_: str) -> Model:
    return FunctionModel(say)


def narrow(made: Any) -> Any:
    """Lets the system keep little of what is on its way, so that a client that does not read is noticed soon."""

    def connection_made(self: ClientSocket, transport: BaseTransport) -> None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        made(self, transport)

    return connection_made


@pytest.fixture(scope="module")
def witness() -> Iterator[LogWitness]:
    with witnessed(logging.INFO) as witness:
        yield witness


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, witness: LogWitness) -> Iterator[ServerInThread]:
    settings = Settings(data=tmp_path_factory.mktemp("data"), port=0, slow_client_seconds=PATIENCE_SECONDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientSocket, "connection_made", narrow(ClientSocket.connection_made))
        patch.setattr(ClientSocket._part, "__defaults__", (60.0,))  # on a busy machine a test may come late to read
        with ServerInThread(settings, model_factory=model_of) as server:
            yield server


@pytest.fixture(autouse=True)
def no_complaints(witness: LogWitness) -> Iterator[None]:
    yield
    assert witness.complaints == []


@pytest.fixture
def session(server: ServerInThread) -> str:
    """A new session with one agent."""
    with server.connect() as client:
        session_id = str(client.call("session.create")["sessionId"])
        client.call("async.createAgent", sessionId=session_id, agentId="worker")
    return session_id


def only_socket(server: ServerInThread) -> ClientSocket:
    """The WebSocket that the server has when it has noticed that those of others were closed."""
    server.until(lambda: len(sockets()) == 1)
    (held,) = sockets()
    return held


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server waits for ever for clients that do not read."""
    drained = ClientSocket.drained

    async def wait(socket: ClientSocket, *, patience_seconds: float) -> None:
        await drained(socket, patience_seconds=1000 * patience_seconds)

    monkeypatch.setattr(ClientSocket, "drained", wait)


def test_a_client_that_never_reads_is_closed_with_its_cursor_and_harms_nobody(
    server: ServerInThread, session: str
) -> None:
    with server.connect(receive_buffer=4096) as sleeper, server.connect() as reader, server.connect() as giver:
        for client in (sleeper, reader):
            client.call("events.subscribe", sessionId=session, after=0)
        read = []
        for _ in range(30):
            work(giver, session, "20000 bytes")
            last = last_seq(giver, session)
            read += read_up_to(reader, last)
        assert numbers(read) == list(range(1, last + 1))
        server.until(lambda: sum(each.is_open for each in sockets()) == 2)
        closed = sleeper.until_closed()
        assert closed.code == 4008
        resume = re.fullmatch(rf"Too slow\. Resume {session} after (\d+)", closed.reason)
        assert resume is not None
        assert numbers(sleeper.notes) == list(range(1, int(resume[1]) + 1))
        assert int(resume[1]) < last
    with server.connect() as again:
        again.call("events.subscribe", sessionId=session, after=int(resume[1]))
        assert numbers(read_up_to(again, last)) == list(range(int(resume[1]) + 1, last + 1))


def test_a_client_that_does_not_even_read_its_farewell_is_cut_off(
    server: ServerInThread, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClientSocket._part, "__defaults__", (0.1,))
    with server.connect(receive_buffer=4096) as sleeper, server.connect() as giver:
        sleeper.call("events.subscribe", sessionId=session, after=0)
        for _ in range(5):
            work(giver, session, "50000 bytes")
        server.until(lambda: len(sockets()) == 1)
        assert sleeper.until_closed().code is None


def test_a_client_that_leaves_without_reading_is_gone_as_well(
    server: ServerInThread, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClientSocket._part, "__defaults__", (0.1,))
    with server.connect(receive_buffer=4096) as sleeper, server.connect() as giver:
        sleeper.call("events.subscribe", sessionId=session, after=0)
        work(giver, session, "200000 bytes")
        sleeper.send(frame(struct.pack("!H", 1000), CLOSE))
        server.until(lambda: len(sockets()) == 1)


def test_a_client_that_reads_slowly_but_steadily_is_kept(server: ServerInThread, session: str) -> None:
    with server.connect(receive_buffer=4096) as client, server.connect() as giver:
        work(giver, session, "200000 bytes")
        client.send(
            frame(request_of("events.list", {"sessionId": session}, "big")) + frame(request_of("server.info", {}))
        )
        received = 0
        while received < 200_000:
            some = client.socket.recv(20_000)
            assert some, "it was closed"
            received += len(some)
            server.do(lambda: asyncio.sleep(PATIENCE_SECONDS / 10))
        assert sum(each.is_open for each in sockets()) == 2


def test_who_asks_for_much_and_does_not_read_has_one_answer_waiting(
    server: ServerInThread, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = 0
    original = ANSWERS["events.list"]

    async def counted(caller: Caller, params: Any) -> Any:
        nonlocal answered
        result = await original(caller, params)
        answered += 1
        return result

    monkeypatch.setitem(ANSWERS, "events.list", counted)
    with server.connect() as giver:
        work(giver, session, "400000 bytes")
    with server.connect(receive_buffer=4096) as greedy:
        held = only_socket(server)
        greedy.send(frame(request_of("events.list", {"sessionId": session})) * 100)
        server.until(lambda: not held.is_open)
        assert held.transport.get_write_buffer_size() < 500_000
        assert greedy.until_closed().code == 4008
    assert answered == 1


def test_who_asks_for_many_snapshots_of_a_busy_session_and_does_not_read_has_one_waiting(
    server: ServerInThread, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0
    flushed = SqliteStore.flushed

    async def later(store: SqliteStore) -> None:
        await asyncio.sleep(0.01)
        await flushed(store)

    def counted(session: OpenSession, inbox: list[InboxMail]) -> Snapshot:
        nonlocal taken
        taken += 1
        return snapshot_of(session, inbox)

    with server.connect() as giver:
        config = {"description": "x" * 400_000}
        giver.call("async.createAgent", sessionId=session, agentId="big", config=config)
    monkeypatch.setattr(SqliteStore, "flushed", later)
    monkeypatch.setattr(reader, "snapshot_of", counted)
    with server.connect(receive_buffer=4096) as greedy:
        held = only_socket(server)
        greedy.send(frame(request_of("session.snapshot", {"sessionId": session})) * 100)
        server.until(lambda: not held.is_open)
        assert held.transport.get_write_buffer_size() < 500_000
        assert greedy.until_closed().code == 4008
    assert taken == 1


@pytest.mark.usefixtures("patient")
def test_who_asks_again_and_again_whether_the_server_is_there_must_read_the_answers(server: ServerInThread) -> None:
    with server.connect(receive_buffer=4096) as client:
        held = only_socket(server)
        for _ in range(100):
            client.send(frame(b"x" * 125, PING) * 500)
        server.until(lambda: not held.is_drained)
        assert held.transport.get_write_buffer_size() < 300_000, "more than the answers to what is read at once"
        assert client.call("server.info")


def test_a_client_that_does_not_answer_pings_is_dropped(server: ServerInThread) -> None:
    with server.connect() as client:
        held = only_socket(server)
        server.loop.call_soon_threadsafe(held.send_keepalive_ping)
        assert client.read_frame()[0] == PING
        server.loop.call_soon_threadsafe(held.keepalive_timeout)
        assert client.until_closed().code == 1011


@pytest.mark.usefixtures("patient")
def test_a_client_that_has_yet_to_read_what_came_before_the_ping_is_not(server: ServerInThread, session: str) -> None:
    with server.connect(receive_buffer=4096) as client, server.connect() as giver:
        work(giver, session, "400000 bytes")
        client.send(frame(request_of("events.list", {"sessionId": session}, "big")))
        server.until(lambda: any(not each.is_drained for each in sockets()))
        held = next(each for each in sockets() if not each.is_drained)
        server.loop.call_soon_threadsafe(held.send_keepalive_ping)
        before = held.transport.get_write_buffer_size()
        client.socket.recv(100_000)
        server.until(lambda: held.transport.get_write_buffer_size() < before)
        server.loop.call_soon_threadsafe(held.keepalive_timeout)
        server.do(lambda: asyncio.sleep(0))
        assert held.is_open
        assert held.ping_timer is not None


def test_a_cursor_in_the_last_word_is_whole_or_not_there(server: ServerInThread) -> None:
    """A close frame has room for 123 bytes. A number that was cut would repeat what was seen, or worse."""
    names = ["é" * 100, "short", "😀" * 20]
    with server.connect(receive_buffer=4096) as sleeper, server.connect() as giver:
        for name in names:
            giver.call("session.create", sessionId=name)
            giver.call("async.createAgent", sessionId=name, agentId="worker")
            sleeper.call("events.subscribe", sessionId=name, after=2)
        for _ in range(3):
            work(giver, "short", "100000 bytes")
        server.until(lambda: sum(each.is_open for each in sockets()) == 1)
        closed = sleeper.until_closed()
    assert closed.code == 4008
    resume = re.fullmatch(rf"Too slow\. Resume short after (\d+), {names[2]} after 2", closed.reason)
    assert resume is not None
    assert numbers([note for note in sleeper.notes if "method" in note])[-1:] in ([], [int(resume[1])])

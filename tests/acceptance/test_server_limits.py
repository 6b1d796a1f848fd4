"""What one client may ask for at once, and what a server bears from clients that are broken or take for ever."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.models.base import Model
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.protocol.sessions import ServerInfo
from ai_whisperer.server import http
from ai_whisperer.server.calls import ANSWERS, Caller
from ai_whisperer.settings import Settings
from tests.acceptance.raw_socket import (
    RawSocket,
    RefusedError,
    connected,
    exchange,
    fetch,
    frame,
    request_of,
)
from tests.acceptance.server_in_thread import LogWitness, ServerInThread, witnessed
from tests.acceptance.session_talk import sockets

TOO_MANY = -32029
CONNECTIONS = 6


def never_done(_: str) -> Model:
    return FunctionModel(lambda _: "done", latency_seconds=1e6)


@pytest.fixture(scope="module")
def witness() -> Iterator[LogWitness]:
    with witnessed(logging.INFO) as witness:
        yield witness


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, witness: LogWitness) -> Iterator[ServerInThread]:
    settings = Settings(
        data=tmp_path_factory.mktemp("data"),
        port=0,
        max_connections=CONNECTIONS,
        max_batch=5,
        max_pending_requests=3,
        max_subscriptions=2,
        max_requests_per_second=200,
        max_frame_bytes=20_000,
        shutdown_grace_seconds=0,
    )
    with ServerInThread(settings, model_factory=never_done) as server:
        with server.connect() as client:
            client.call("async.createAgent", sessionId="default", agentId="worker")
            client.call("async.sendTask", sessionId="default", agentId="worker", prompt="work", taskId="endless")
        yield server


@pytest.fixture(autouse=True)
def nobody_else_notices(server: ServerInThread, witness: LogWitness) -> Iterator[None]:
    with server.connect() as bystander:
        bystander.call("server.info")
        yield
        bystander.call("server.info")
    assert witness.complaints == []


def pipelined(client: RawSocket, count: int, method: str, **params: Any) -> list[Any]:
    """The answers to so many requests that were sent without waiting, by their number."""
    client.send(b"".join(frame(request_of(method, params, number)) for number in range(count)))
    answers = [client.receive() for _ in range(count)]
    return sorted(answers, key=lambda answer: int(answer["id"]))


def test_more_requests_than_the_rate_allows_are_refused_with_when_to_try_again(server: ServerInThread) -> None:
    with server.connect() as client:
        answers = pipelined(client, 2000, "server.info")
        refused = [answer["error"] for answer in answers if "error" in answer]
        assert "result" in answers[0]
        assert len(refused) > 100
        assert {error["code"] for error in refused} == {TOO_MANY}
        assert refused[0]["data"] == {"code": "too_many_requests", "retryAfterSeconds": 1}


def test_a_notification_beyond_the_rate_is_not_answered_either(server: ServerInThread) -> None:
    with server.connect() as client:
        quiet = frame(b'{"jsonrpc":"2.0","method":"server.info"}')
        client.send(quiet * 2000 + frame(b'[{"jsonrpc":"2.0","method":"server.info"}]') * 200)
        client.send(frame(request_of("server.info", {}, "last")))
        assert client.receive()["id"] == "last"


def test_a_batch_beyond_the_limit_is_refused_as_a_whole(server: ServerInThread) -> None:
    with server.connect() as client:
        client.send_json([{"jsonrpc": "2.0", "id": number, "method": "server.info"} for number in range(6)])
        assert client.receive()["error"]["message"] == "The batch has 6 requests. At most 5 are taken."


class Gatekeeper:
    """Takes the place of an answer and holds it back until it is told to go on."""

    def __init__(self) -> None:
        self.under_way = self.most = self.finished = 0
        self.go_on = asyncio.Event()

    async def __call__(self, _: Caller, __: Any) -> ServerInfo:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await self.go_on.wait()
        self.under_way -= 1
        self.finished += 1
        return ServerInfo(version="", principal="", sandbox="auto", model="", max_frame_bytes=0, started_at=0.0)


@pytest.mark.parametrize(("padding", "most"), [(0, 3), (15_000, 2)], ids=["by number", "by size"])
def test_requests_under_way_are_limited_and_the_others_wait_their_turn(
    server: ServerInThread, monkeypatch: pytest.MonkeyPatch, padding: int, most: int
) -> None:
    gatekeeper = Gatekeeper()
    with server.connect() as client:
        monkeypatch.setitem(ANSWERS, "server.info", gatekeeper)
        for number in range(10):
            client.send(frame(request_of("server.info", {}, number) + b" " * padding))
        server.until(lambda: gatekeeper.under_way == most)
        server.loop.call_soon_threadsafe(gatekeeper.go_on.set)
        assert {client.receive()["id"] for _ in range(10)} == set(range(10))
    assert gatekeeper.most == most
    monkeypatch.undo()


def test_what_is_under_way_when_its_client_leaves_is_finished(
    server: ServerInThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    gatekeeper = Gatekeeper()
    with server.connect() as client:
        monkeypatch.setitem(ANSWERS, "server.info", gatekeeper)
        client.send(frame(request_of("server.info", {})) * 2)
        server.until(lambda: gatekeeper.under_way == 2)
    server.until(lambda: len(sockets()) == 1)
    server.loop.call_soon_threadsafe(gatekeeper.go_on.set)
    server.until(lambda: gatekeeper.finished == 2)
    monkeypatch.undo()


def test_those_who_wait_for_a_task_hold_nothing_up_and_have_a_limit_of_their_own(server: ServerInThread) -> None:
    with server.connect() as client:
        for number in range(49):
            waiting = {"sessionId": "default", "taskId": "endless", "timeoutSeconds": 3600}
            client.send(frame(request_of("task.wait", waiting, number)))
        refused = client.receive()
        assert refused["error"]["code"] == TOO_MANY
        assert "waits for 48 tasks" in refused["error"]["message"]
        assert client.call("server.info")


def answers_under_way() -> int:
    return sum("._answer" in repr(task.get_coro()) for task in asyncio.all_tasks())


def test_waits_end_with_the_client_that_waits_and_the_rest_of_its_batch_is_finished(server: ServerInThread) -> None:
    with server.connect() as client:
        batch = [
            ("task.wait", {"sessionId": "default", "taskId": "endless", "timeoutSeconds": 3600}),
            ("session.create", {"sessionId": "of-a-batch"}),
        ]
        client.send_json([{"jsonrpc": "2.0", "id": m, "method": m, "params": p} for m, p in batch])
        server.until(lambda: answers_under_way() == 1)
    server.until(lambda: answers_under_way() == 0)
    with server.connect() as other:
        assert other.call("session.get", sessionId="of-a-batch")


def test_subscriptions_of_a_connection_are_limited(server: ServerInThread) -> None:
    with server.connect() as client:
        for name in ("one", "two", "three"):
            client.answer("session.create", sessionId=name)
        client.call("events.subscribe", sessionId="one")
        client.call("events.subscribe", sessionId="two")
        assert client.call("events.subscribe", sessionId="one", after=0), "another of the same session takes its place"
        error = client.error("events.subscribe", sessionId="three")
        assert error["code"] == TOO_MANY
        assert "Unsubscribe" in error["message"]
        client.call("events.unsubscribe", sessionId="one")
        client.call("events.subscribe", sessionId="three")


def test_one_client_too_many_is_told_so_before_it_is_let_in(server: ServerInThread) -> None:
    server.until(lambda: len(sockets()) == 1)
    clients = [server.connect() for _ in range(CONNECTIONS - 1)]
    with pytest.raises(RefusedError, match="6 clients, which is the limit") as refused:
        server.connect()
    assert refused.value.response.status == 503
    for client in clients:
        client.socket.close()
    while True:  # until the server has seen that they left
        try:
            server.connect().socket.close()
        except RefusedError:
            continue
        break


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\x01\x02\xff" * 50,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nbroken header\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS, where there is none
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_http_is_a_bad_request(server: ServerInThread, raw: bytes) -> None:
    with connected(server.port) as plain:
        plain.sendall(raw)
        if raw[:1] == b"\x16":
            return  # that may still become a request
        assert plain.recv(1 << 16).startswith((b"HTTP/1.1 400", b"HTTP/1.1 421"))


def test_a_broken_body_after_a_good_head_does_no_harm(server: ServerInThread) -> None:
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
    for rest in ("Transfer-Encoding: chunked\r\n\r\nzz\r\n", "Content-Length: 5\r\n\r\n1234567890 GARBAGE\r\n\r\n"):
        answer = exchange(server.port, (head + rest).encode())
        assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 405"))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "NONSENSE"])
@pytest.mark.parametrize("path", ["/", "/ws", "/healthz", "/metrics"])
def test_pages_are_only_for_reading(server: ServerInThread, method: str, path: str) -> None:
    response = fetch(server.port, path, method=method, token=server.token)
    assert response.status in (404, 405)
    assert "access-control-allow-origin" not in response.headers


def test_an_unknown_page_names_those_that_there_are(server: ServerInThread) -> None:
    response = fetch(server.port, "/nothing/../here?x=1", token=server.token)
    assert response.status == 404
    assert "There are /, /ws, /healthz and /metrics." in response.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-WebSocket-Key": None}, 400),
        ({"Sec-WebSocket-Key": "short"}, 400),
        ({"Sec-WebSocket-Version": "12"}, 400),
        ({"Sec-WebSocket-Version": None}, 400),
        ({"Upgrade": "something-else"}, 404),
        ({f"X-{number}": "x" for number in range(200)}, 431),
        ({"X-Long": "x" * 20_000}, 431),
    ],
)
def test_a_broken_handshake_is_refused_and_not_left_hanging(
    server: ServerInThread, headers: dict[str, str | None], status: int
) -> None:
    with pytest.raises(RefusedError) as refused:
        server.connect(headers=headers)
    assert refused.value.response.status == status


def test_an_address_that_is_too_long_is_refused(server: ServerInThread) -> None:
    with pytest.raises(RefusedError) as refused:
        server.connect(path="/ws?x=" + "x" * 20_000)
    assert refused.value.response.status == 414


def test_half_requests_hold_nobody_up_and_do_not_stay_for_ever(
    server: ServerInThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    halves = [b"", b"G", head.encode(), f"{head}X: ".encode()]

    def begun() -> list[socket.socket]:
        plain = [connected(server.port) for _ in range(40)]
        for number, each in enumerate(plain):
            with suppress(ConnectionError):  # its time may be up already
                each.sendall(halves[number % 4])
        return plain

    waiting = begun()
    assert fetch(server.port, "/healthz").status == 200
    for plain in waiting:
        plain.close()
    monkeypatch.setattr(http, "_SECONDS", 0.3)
    for plain in begun():
        while True:
            try:
                if not plain.recv(1 << 16):
                    break
            except ConnectionError:
                break
        plain.close()


def test_a_request_in_small_pieces_is_answered(server: ServerInThread) -> None:
    with connected(server.port) as plain:
        for byte in f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode():
            plain.sendall(bytes([byte]))
        assert plain.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_several_requests_on_one_connection_are_answered(server: ServerInThread) -> None:
    request = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    last = request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert exchange(server.port, request * 3 + last).count(b"HTTP/1.1 200") == 4


def test_the_server_ends_while_clients_wait_and_do_not_read(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, port=0, shutdown_grace_seconds=0)
    with ServerInThread(settings, model_factory=never_done) as server:
        reader, sleeper, half = server.connect(), server.connect(receive_buffer=4096), connected(server.port)
        half.sendall(b"GET / HT")
        reader.call("async.createAgent", sessionId="default", agentId="worker")
        reader.call("async.sendTask", sessionId="default", agentId="worker", prompt="work", taskId="endless")
        reader.send(frame(request_of("task.wait", {"sessionId": "default", "taskId": "endless"}, "wait")))
        reader.call("events.subscribe", sessionId="default", after=0)
        sleeper.send(frame(request_of("rpc.discover", {})) * 200)
    assert reader.until_closed().code == 1012
    (waited,) = (answer for answer in reader.notes if answer.get("id") == "wait")
    assert waited["error"]["data"]["code"] == "closed"
    for client in (reader.socket, sleeper.socket, half):
        client.close()

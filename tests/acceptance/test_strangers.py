"""Strangers stay out: every route and every method, refused before anything happens, however they come."""

from __future__ import annotations

import gc
import json
import logging
import re
import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest
from starlette.routing import Route, WebSocketRoute

from ai_whisperer.protocol.agents import IN_NEW_SESSIONS
from ai_whisperer.protocol.catalog import METHODS
from ai_whisperer.protocol.method import Method
from ai_whisperer.server.app import Application
from ai_whisperer.server.calls import ANSWERS
from ai_whisperer.server.page import document
from ai_whisperer.settings import Settings
from tests.acceptance.raw_socket import (
    RawSocket,
    RefusedError,
    Response,
    connected,
    exchange,
    fetch,
    frame,
    http_head,
    request_of,
)
from tests.acceptance.requests_of_all import all_params, in_session, required_params
from tests.acceptance.server_in_thread import ALICE, BOB, LogWitness, ServerInThread, witnessed

WRONG = "token-of-nobody-0123456789"
ODD = 'odd;"\\,&%+#=?/:@[]token'
HERS = "session-of-alice"

Headers = Mapping[str, str | None]


@pytest.fixture(scope="module")
def script() -> str:
    """The address of its main script, which changes with its content."""
    found = re.search(rb'src="(/assets/[^"]+[.]js)"', document())
    assert found is not None, "The page is not built: run `make page`."
    return found[1].decode()


ROUTES = {
    "/",
    "/sessions",
    "/s/{rest:path}",
    "/icon.svg",
    "/assets/{name}",
    "/healthz",
    "/metrics",
    "/ws",
    "/{path:path}",
}
PAGES = (
    "/",
    "/sessions",
    "/s/x/agents/y",
    "/icon.svg",
    "/metrics",
    "/ws",
    "/healthz",
    "/nothing",
    "/../../etc/passwd",
)
OUTSIDE_SESSIONS = {
    "session.create",
    "session.import",
    "session.list",
    "template.list",
    "template.get",
    "tool.list",
    "server.info",
    "rpc.discover",
    "cluster.status",  # the nodes, and how many sessions each has
    "cluster.drain",  # the local principal alone
}
"""The methods that act in no session. Whoever adds one says here why a stranger to a session may call it."""


def strangers(port: int) -> dict[str, tuple[Headers, int]]:
    """All ways of being a stranger: the headers, and the status with which they are refused."""
    right = f"Bearer {ALICE}"
    host = f"127.0.0.1:{port}"
    return {
        "no token": ({}, 401),
        "an empty token": ({"Authorization": "Bearer "}, 401),
        "a wrong token": ({"Authorization": f"Bearer {WRONG}"}, 401),
        "a part of a token": ({"Authorization": f"Bearer {ALICE[:-1]}"}, 401),
        "more than a token": ({"Authorization": f"Bearer {ALICE}x"}, 401),
        "a token that is no ASCII": ({"Authorization": "Bearer \xe9\xff"}, 401),
        "another scheme": ({"Authorization": f"Basic {ALICE}"}, 401),
        "a wrong cookie": ({"Cookie": f"whisperer-{port}={WRONG}"}, 401),
        "a cookie of another port": ({"Cookie": f"whisperer-1={ALICE}"}, 401),
        "an evil origin": ({"Authorization": right, "Origin": "https://evil.example"}, 403),
        "no origin that can be told": ({"Authorization": right, "Origin": "null"}, 403),
        "an empty origin": ({"Authorization": right, "Origin": ""}, 403),
        "the origin of another port": ({"Authorization": right, "Origin": "http://127.0.0.1:1"}, 403),
        "the origin of another scheme": ({"Authorization": right, "Origin": f"https://{host}"}, 403),
        "an origin by name": ({"Authorization": right, "Origin": f"http://localhost:{port}"}, 403),
        "an origin that only begins right": ({"Authorization": right, "Origin": f"http://{host}.evil.example"}, 403),
        "a rebound host": ({"Authorization": right, "Host": "evil.example"}, 421),
        "a rebound host with the port": ({"Authorization": right, "Host": f"evil.example:{port}"}, 421),
        "a rebound host and its page": (
            {"Authorization": right, "Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"},
            421,
        ),
        "localhost": ({"Authorization": right, "Host": f"localhost:{port}"}, 421),
        "a host without the port": ({"Authorization": right, "Host": "127.0.0.1"}, 421),
        "a host that only begins right": ({"Authorization": right, "Host": f"{host}.evil.example"}, 421),
        "an empty host": ({"Authorization": right, "Host": ""}, 421),
        "no host": ({"Authorization": right, "Host": None}, 400),
    }


WAYS = tuple(strangers(0))


@pytest.fixture(scope="module")
def witness() -> Iterator[LogWitness]:
    with witnessed(logging.DEBUG) as witness:
        yield witness


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, witness: LogWitness) -> Iterator[ServerInThread]:
    tokens = {"alice": ALICE, "bob": BOB, "odd": ODD}
    settings = Settings(data=tmp_path_factory.mktemp("data"), port=0, tokens=tokens, max_wrong_tokens=1_000_000)
    with ServerInThread(settings) as server:
        with server.connect(ALICE) as client:
            furnish(client)
        yield server


def furnish(client: RawSocket) -> None:
    """Give Alice a session with something of everything in it, and nothing under way."""
    client.call("session.create", sessionId=HERS, title="Hers")
    for method, params in (
        ("async.createAgent", {"agentId": "worker", "autoStart": True}),
        ("async.sendTask", {"agentId": "worker", "prompt": "hello", "taskId": "task-1"}),
        ("task.wait", {"taskId": "task-1"}),
        ("async.pauseAgent", {"agentId": "worker"}),
        ("mail.send", {"to": "worker", "subject": "s", "body": "b", "mailId": "mail-1"}),
        ("room.create", {"members": ["worker"], "roomId": "room-1"}),
        ("schedule.create", {"agentId": "worker", "intervalSeconds": 1e6, "prompt": "p", "scheduleId": "schedule-1"}),
    ):
        client.call(method, sessionId=HERS, **params)


@pytest.fixture
def nothing_changes(server: ServerInThread) -> Iterator[None]:
    """Every table is as it was, the numbered log too, and nobody has opened a session in vain."""
    before = server.contents()
    assert before["notification"], "there is something that could change"
    yield
    assert server.contents() == before


@pytest.fixture(autouse=True)
def no_token_is_told(witness: LogWitness) -> Iterator[None]:
    yield
    told = "\n".join(witness.lines)
    for token in (ALICE, BOB, ODD, WRONG, quote(ODD, safe="")):
        assert token not in told
    assert witness.complaints == []


def test_the_matrix_has_every_route_and_every_method(server: ServerInThread) -> None:
    applications = (each for each in gc.get_objects() if type(each) is Application)
    (routes,) = (each._routes.routes for each in applications if each._gate.cookie == f"whisperer-{server.port}")
    assert {route.path for route in routes if isinstance(route, Route | WebSocketRoute)} == ROUTES
    assert len(routes) == len(ROUTES)
    assert {name for name, method in METHODS.items() if not in_session(method)} == OUTSIDE_SESSIONS
    assert ANSWERS.keys() == METHODS.keys()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("nothing_changes")
def test_no_page_is_shown_to_a_stranger(server: ServerInThread, script: str, way: str) -> None:
    headers, status = strangers(server.port)[way]
    for page in (*PAGES, script):
        response = fetch(server.port, page, headers=headers)
        if page == "/healthz" and status == 401:
            assert response.status == 200, "health is for everybody who uses the right address"
        else:
            assert_refused(response, status)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_nothing_can_be_done_to_a_page_by_a_stranger(server: ServerInThread, way: str, method: str) -> None:
    headers, status = strangers(server.port)[way]
    for page in ("/", "/ws", "/metrics"):
        response = fetch(server.port, page, method=method, headers=headers)
        assert response.status == status
        assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("nothing_changes")
def test_no_method_can_be_called_by_a_stranger(server: ServerInThread, way: str) -> None:
    """The request is sent right behind the handshake: a server that looked at it too early would carry it out."""
    headers, status = strangers(server.port)[way]
    for method in METHODS.values():
        shake = {
            "Host": f"127.0.0.1:{server.port}",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            "Sec-WebSocket-Version": "13",
            **headers,
        }
        hasty = http_head("GET", "/ws", shake) + frame(request_of(method.name, required_params(method, HERS)))
        assert exchange(server.port, hasty).startswith(f"HTTP/1.1 {status} ".encode()), method
        with pytest.raises(RefusedError) as refused:
            server_refuses(server, headers)
        assert_refused(refused.value.response, status)


def server_refuses(server: ServerInThread, headers: Headers) -> None:
    RawSocket(server.port, headers=headers)


def assert_refused(response: Response, status: int) -> None:
    assert response.status == status
    assert response.text.rstrip().endswith((".", "received."))
    assert "set-cookie" not in response.headers
    for token in (ALICE, BOB, WRONG):
        assert token not in response.text


@pytest.mark.parametrize(
    "path", ["/ws?token=", f"/ws?token={WRONG}", f"/ws?token={ALICE}x", "/ws?token=%ff%00", "/ws?token"]
)
@pytest.mark.usefixtures("nothing_changes")
def test_a_wrong_token_in_the_address_opens_nothing(server: ServerInThread, path: str) -> None:
    with pytest.raises(RefusedError) as refused:
        RawSocket(server.port, path=path)
    assert_refused(refused.value.response, 401)
    assert fetch(server.port, path.replace("/ws", "/")).status == 401


def test_the_old_http_without_a_host_is_refused(server: ServerInThread) -> None:
    raw = f"GET /metrics HTTP/1.0\r\nAuthorization: Bearer {ALICE}\r\n\r\n".encode()
    assert exchange(server.port, raw).startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("method", [each for each in METHODS.values() if in_session(each)], ids=lambda each: each.name)
@pytest.mark.usefixtures("nothing_changes")
def test_a_session_of_somebody_else_does_not_exist(server: ServerInThread, method: Method[Any, Any]) -> None:
    with server.connect(BOB) as bob:
        for make in (required_params, all_params):
            hers = bob.error(method.name, **make(method, HERS))
            looking = method if method not in IN_NEW_SESSIONS else METHODS["async.stopAgent"]  # others make the session
            nowhere = bob.error(looking.name, **make(looking, "no-such-session!"))
            assert (hers["code"], hers["data"]["code"]) == (-32004, "unknown_session")
            assert hers["message"] == nowhere["message"].replace("no-such-session!", HERS)
        assert bob.notes == []


@pytest.mark.usefixtures("nothing_changes")
def test_what_acts_in_no_session_tells_nothing_of_those_of_others(server: ServerInThread) -> None:
    with server.connect(BOB) as bob:
        assert bob.call("session.list")["sessions"] == []
        assert bob.error("session.create", sessionId=HERS)["data"]["code"] == "duplicate_id"
        assert bob.error("session.import", file="/etc/passwd")["data"]["code"] == "forbidden"
        assert bob.call("server.info")["principal"] == "bob"
        for name in ("template.list", "rpc.discover"):
            assert HERS not in json.dumps(bob.call(name))


def test_a_batch_is_judged_call_by_call(server: ServerInThread) -> None:
    with server.connect(BOB) as bob:
        bob.send_json(
            [
                {"jsonrpc": "2.0", "id": 1, "method": "server.info"},
                {"jsonrpc": "2.0", "id": 2, "method": "async.getAgentStates", "params": {"sessionId": HERS}},
                {"jsonrpc": "2.0", "id": 3, "method": "events.subscribe", "params": {"sessionId": HERS, "after": 0}},
            ]
        )
        info, states, subscribed = bob.receive()
        assert info["result"]["principal"] == "bob"
        assert {states["error"]["code"], subscribed["error"]["code"]} == {-32004}


def test_notifications_of_a_session_come_only_to_its_owner(server: ServerInThread) -> None:
    with server.connect(ALICE) as alice, server.connect(BOB) as bob:
        his = bob.call("session.create")["sessionId"]
        bob.call("events.subscribe", sessionId=his, after=0)
        alice.call("events.subscribe", sessionId=HERS)
        alice.call("async.broadcastEvent", sessionId=HERS, event="for alice alone")
        assert alice.next_note()["params"]["event"] == "for alice alone"
        bob.call("async.broadcastEvent", sessionId=his, event="for bob")
        assert bob.next_note()["params"]["event"] == "for bob"
        bob.call("session.delete", sessionId=his)


def test_a_session_of_the_same_name_knows_nothing_of_the_one_before(server: ServerInThread) -> None:
    with server.connect(ALICE) as alice, server.connect(BOB) as bob:
        for client, word in ((alice, "hers-alone"), (bob, "his")):
            client.call("session.create", sessionId="shared-name")
            client.call("async.createAgent", sessionId="shared-name", agentId="worker")
            task = client.call("async.sendTask", sessionId="shared-name", agentId="worker", prompt=word)
            client.call("task.wait", sessionId="shared-name", taskId=task["taskId"])
            seen = [
                client.call(name, **required_params(METHODS[name], "shared-name"))
                for name in ("events.list", "task.list", "mail.list", "session.get", "agent.get", "usage.get")
            ]
            seen.append(client.call("log.read", sessionId="shared-name", agentId="worker"))
            assert word in json.dumps(seen)
            assert (word == "his") == ("hers-alone" not in json.dumps(seen))
            client.call("session.delete", sessionId="shared-name")


def test_the_cookie_of_the_page_opens_the_page_and_its_own_websocket(server: ServerInThread, script: str) -> None:
    own = f"http://127.0.0.1:{server.port}"
    for token in (ALICE, ODD):
        opened = fetch(server.port, f"/?token={quote(token, safe='')}")
        assert opened.status == 200
        cookie, *attributes = opened.headers["set-cookie"].split("; ")
        assert cookie.startswith(f"whisperer-{server.port}=")
        assert {each.lower() for each in attributes} == {"httponly", "path=/", "samesite=strict"}
        assert fetch(server.port, "/", headers={"Cookie": cookie}).status == 200
        assert fetch(server.port, script, headers={"Cookie": cookie}).status == 200
        with RawSocket(server.port, headers={"Cookie": cookie, "Origin": own}) as page:
            assert page.call("server.info")["principal"] == {ALICE: "alice", ODD: "odd"}[token]
        for headers, status in (
            ({"Cookie": cookie}, 401),
            ({"Cookie": cookie, "Origin": "https://evil.example"}, 403),
            ({"Cookie": cookie, "Origin": own, "Host": f"localhost:{server.port}"}, 421),
        ):
            with pytest.raises(RefusedError) as refused:
                server_refuses(server, headers)
            assert refused.value.response.status == status


def test_a_cookie_is_made_only_of_the_token_that_opened_the_page(server: ServerInThread) -> None:
    assert "set-cookie" not in fetch(server.port, f"/?token={WRONG}", token=ALICE).headers
    assert fetch(server.port, f"/?token={WRONG}", headers={"Cookie": f"whisperer-{server.port}={ALICE}"}).status == 401


def test_pages_are_sealed_against_others(server: ServerInThread, script: str) -> None:
    for page in ("/", script, "/metrics", "/healthz", "/nothing"):
        headers = fetch(server.port, page, token=ALICE).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == ("private, max-age=31536000, immutable" if page == script else "no-store")


def test_a_header_about_proxies_changes_nothing(server: ServerInThread) -> None:
    forwarded = {"X-Forwarded-Host": "127.0.0.1", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "https"}
    assert fetch(server.port, "/metrics", headers={**forwarded, "Host": "evil.example"}, token=ALICE).status == 421


def test_only_this_machine_can_connect(server: ServerInThread) -> None:
    with socket.socket() as plain:
        plain.connect(("127.0.0.1", server.port))
        assert plain.getpeername()[0] == "127.0.0.1"
    addresses = {str(each[4][0]) for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in addresses - {"127.0.0.1"}:
        if not address.startswith("127."):
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((address, server.port), timeout=5)


def test_a_stranger_who_is_cut_off_in_the_middle_leaves_no_complaint(server: ServerInThread) -> None:
    shake = http_head("GET", "/ws", {"Host": "evil.example", "Upgrade": "websocket", "Connection": "Upgrade"})
    for raw in (shake, shake[:30]):
        with connected(server.port) as plain:
            plain.sendall(raw)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_who_may_come_in_can_do_all_of_it(server: ServerInThread) -> None:
    """The same requests with the right token: what was refused above was refused for the stranger's sake."""
    last = ["session.delete"]
    with server.connect(ALICE) as alice:
        for name in [each for each in METHODS if each not in last] + last:
            for make in (required_params, all_params):
                answer = alice.answer(name, **make(METHODS[name], HERS))
                if "error" in answer:
                    assert answer["error"]["data"]["code"] not in ("invalid_params", "internal", "unauthorized")
                    gone = name in last and make is all_params
                    assert (answer["error"]["data"]["code"] == "unknown_session") == gone, (name, answer)

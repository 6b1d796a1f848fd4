"""What a client makes of servers that do not answer as they should: an error in words, never a traceback or a hang."""

from __future__ import annotations

import asyncio
import http
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from ai_whisperer import Client
from ai_whisperer.client import dialing
from ai_whisperer.errors import ConnectionLostError, WhispererError

Answer = Callable[[Any], list[str | bytes]]

INFO = {"version": "9", "principal": "p", "model": "m", "maxFrameBytes": 100_000, "startedAt": 1.0}


class Stranger:
    """A WebSocket server that answers each request with the frames that it is told."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.is_away = False
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Stranger]:
        async with asyncio.timeout(60), serve(self._talk, "127.0.0.1", 0, process_request=self._greet) as server:
            self.url = f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/"
            yield self

    def _greet(self, socket: ServerConnection, _: Request) -> Response | None:
        return socket.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, "away") if self.is_away else None

    async def _talk(self, socket: ServerConnection) -> None:
        try:
            async for message in socket:
                for frame in self.answer(json.loads(message)):
                    await socket.send(frame, text=True)
                if self.is_away:
                    return
        except ConnectionClosed:
            pass


def with_result(request: Any, result: object) -> list[str | bytes]:
    return [json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})]


def knowing(others: Answer) -> Answer:
    """Shows itself to be a server, and answers the other requests so."""
    return lambda request: with_result(request, INFO) if request["method"] == "server.info" else others(request)


def silent(_: Any) -> list[str | bytes]:
    return []


def garbled(_: Any) -> list[str | bytes]:
    return ["hello"]


def broken(_: Any) -> list[str | bytes]:
    return [b'{"id": 1, "result": "\xff"}']


def other(request: Any) -> list[str | bytes]:
    return with_result(request, {"more": 1})


def notifying(request: Any) -> list[str | bytes]:
    """Takes the subscription, and tells of something in a way of its own."""
    note = json.dumps({"jsonrpc": "2.0", "method": "agent.created", "params": {"seq": "first"}})
    return [*with_result(request, {"sessionId": "default", "after": 0, "lastSeq": 0}), note]


async def first_event(client: Client) -> object:
    return await anext(client.events())


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that keeps silent is given up soon."""
    monkeypatch.setattr(dialing, "_ANSWER_SECONDS", 0.05)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_keeps_silent_is_given_up() -> None:
    async def main() -> None:
        async with Stranger(silent).serving() as server:
            with pytest.raises(ConnectionLostError, match="does not answer in time"):
                await Client(server.url, "token").open()

    asyncio.run(main())


@pytest.mark.usefixtures("impatient")
def test_a_stream_of_a_server_that_keeps_silent_is_given_up() -> None:
    async def main() -> None:
        server = Stranger(knowing(silent))
        async with server.serving(), Client(server.url, "token", reconnect_seconds=0.1) as client:
            with pytest.raises(ConnectionLostError, match="does not answer in time"):
                await first_event(client)

    asyncio.run(main())


def test_of_several_servers_one_that_hangs_up_is_not_asked_again() -> None:
    async def main() -> None:
        asked = []

        def hang_up(request: Any) -> list[str | bytes]:
            asked.append(request["method"])
            raise ConnectionResetError

        rude = Stranger(hang_up)
        sound = Stranger(knowing(lambda request: with_result(request, {"agents": {}, "last_seq": 0})))
        async with rude.serving(), sound.serving():
            client = Client(f"{rude.url},{sound.url}", "token")
            with pytest.raises(ConnectionLostError, match="internal error"):
                await client.open()
            async with client:
                assert await client.list_agents() == []
        assert asked == ["server.info"]

    asyncio.run(main())


@pytest.mark.parametrize("answer", [garbled, broken, other])
def test_a_server_that_speaks_otherwise_is_refused_in_words(answer: Answer) -> None:
    async def main() -> None:
        async with Stranger(answer).serving() as server:
            with pytest.raises(ConnectionLostError, match=r"cannot be read|in a way that this version does not know"):
                await Client(server.url, "token").open()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("call", "answer"),
    [(Client.list_agents, other), (first_event, other), (first_event, garbled), (first_event, notifying)],
)
def test_what_a_newer_server_answers_is_an_error_in_words(
    call: Callable[[Client], Awaitable[object]], answer: Answer
) -> None:
    async def main() -> None:
        async with Stranger(knowing(answer)).serving() as server, Client(server.url, "token") as client:
            with pytest.raises(WhispererError, match=r"in a way that this (version|client) does not"):
                await call(client)

    asyncio.run(main())


def test_an_error_says_whether_a_request_was_sent_before_the_server_went_away() -> None:
    async def main() -> None:
        def leave(_: Any) -> list[str | bytes]:
            server.is_away = True
            return []

        server = Stranger(knowing(leave))
        async with server.serving(), Client(server.url, "token", reconnect_seconds=0.1) as client:
            with pytest.raises(ConnectionLostError, match="not known whether it did") as sent:
                await client.send_task("alice", "go")
            with pytest.raises(ConnectionLostError, match="was not sent and changed nothing") as repeatable:
                await client.send_task("alice", "go")
            with pytest.raises(ConnectionLostError, match="was not sent and changed nothing") as unrepeatable:
                await client.pause_agent("alice")
            assert [each.value.was_sent for each in (sent, repeatable, unrepeatable)] == [True, False, False]

    asyncio.run(main())

"""Which of several servers a client asks, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from websockets.asyncio.client import ClientConnection

from ai_whisperer.client import route
from ai_whisperer.client.address import ServerAddress, read_address
from ai_whisperer.client.dialing import UnreachableError
from ai_whisperer.client.route import Route

ADDRESS = read_address("http://a:1,http://b:2,http://c:3", "token")


class Servers:
    """Servers of which some answer, and in which order they were asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, up: str) -> None:
        self.up = up
        self.asked = ""
        monkeypatch.setattr(route, "dial", self._dial)

    async def _dial(self, address: ServerAddress) -> ClientConnection:
        name = address.url[len("ws://")]
        self.asked += name
        await asyncio.sleep(0)
        if name in self.up:
            return cast("ClientConnection", name)
        if name == "c":
            await asyncio.Event().wait()
        raise UnreachableError("refused")

    def found(self, way: Route) -> str:
        """Which server answers, and which were asked before it."""
        self.asked = ""
        asyncio.run(way.dial())
        return self.asked


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Servers]:
    monkeypatch.setattr(route, "_NEXT_SECONDS", 0.01)
    return lambda up: Servers(monkeypatch, up)


def test_the_one_that_answered_last_is_asked_first(servers: Any) -> None:
    way = Route(ADDRESS)
    stage = servers("b")
    assert stage.found(way) == "ab"
    stage.up = "ab"
    assert stage.found(way) == "b", "it is not asked again who was away"
    stage.up = "a"
    assert stage.found(way) == "bca", "the others follow in their order"


def test_one_that_answers_and_does_not_serve_is_passed_over(servers: Any) -> None:
    way = Route(ADDRESS)
    stage = servers("ab")

    async def dial_and_leave() -> None:
        server, _ = await way.dial()
        way.pass_over(server)

    asyncio.run(dial_and_leave())
    assert stage.found(way) == "b"


def test_two_connections_that_find_the_same_server_away_pass_it_over_once(servers: Any) -> None:
    way = Route(ADDRESS)
    stage = servers("b")

    async def both() -> None:
        found = await asyncio.gather(way.dial(), way.dial())
        assert [server.url for server, _ in found] == ["ws://b:2/ws"] * 2

    asyncio.run(both())
    assert stage.found(way) == "b"


def test_if_none_answers_the_last_says_why(servers: Any) -> None:
    servers("")
    with pytest.raises(UnreachableError, match="in time"):
        asyncio.run(Route(ADDRESS).dial())

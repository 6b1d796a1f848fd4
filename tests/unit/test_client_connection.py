"""A client whose link broke: whoever asks meanwhile waits for one new link, whenever it comes."""

from __future__ import annotations

import asyncio
from random import Random
from typing import cast

import pytest

from ai_whisperer.client.connection import Connection
from ai_whisperer.client.link import Link
from ai_whisperer.client.route import Route
from ai_whisperer.protocol.sessions import LIST_SESSIONS, ListSessions

_LOOKS = 100


class _Route:
    named = "the server"


class _Link:
    is_open = True

    async def request(self, *_: object) -> bytes:
        return b'{"sessions": []}'


class _Watched(Connection):
    """Fails if somebody looks for a link again and again without giving way to others."""

    looks = 0

    def _check_open(self) -> None:
        self.looks += 1
        assert self.looks < _LOOKS, "it looks for a link for ever"
        super()._check_open()


def test_who_asks_at_the_moment_at_which_a_new_link_comes_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = 0

    async def main() -> None:
        is_awaited, comes = asyncio.Event(), asyncio.Event()

        async def open_link(route: Route) -> Link:
            nonlocal opened
            opened += 1
            is_awaited.set()
            await comes.wait()
            return cast(Link, _Link())

        monkeypatch.setattr(Link, "open", open_link)
        connection = _Watched(cast(Route, _Route()), reconnect_seconds=1, chance=Random(1))
        async with asyncio.TaskGroup() as group:
            group.create_task(connection.ask(LIST_SESSIONS, ListSessions()))
            await is_awaited.wait()
            comes.set()
            group.create_task(connection.ask(LIST_SESSIONS, ListSessions()))  # it runs right after the link has come

    asyncio.run(main())
    assert opened == 1

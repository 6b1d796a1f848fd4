"""A node that the others took for dead sends its clients to them, also those who come just then."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ai_whisperer.errors import NodeFencedError
from ai_whisperer.server import app
from ai_whisperer.server.app import Application
from ai_whisperer.server.host import SessionHost
from ai_whisperer.server.outbox import CLOSED_AS_FENCED
from ai_whisperer.server.pruning import prune_all
from ai_whisperer.settings import Settings
from ai_whisperer.simulation.loop import simulate


class Client:
    """Comes to a node that is fenced while it lets the client in."""

    def __init__(self, failed: asyncio.Future[BaseException]) -> None:
        self.scope = {"whisperer.principal": "local"}
        self.query_params: dict[str, str] = {}
        self.conn = SimpleNamespace(max_message_size=0)
        self.codes: list[int] = []
        self._failed = failed

    async def accept(self) -> None:
        self._failed.set_result(NodeFencedError())
        await asyncio.sleep(0.001)

    def drop(self, code: int, reason: str) -> None:
        del reason
        self.codes.append(code)

    def arrivals(self) -> None:
        """Nothing comes."""


class Served:
    """What would answer the client."""

    def __init__(self, *_: object, **__: object) -> None: ...

    async def run(self, arrivals: object) -> None: ...


@pytest.mark.parametrize("door", ["_connect", "_connect_node"])
def test_a_client_that_is_let_in_while_the_node_is_fenced_is_sent_away(
    door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        host = cast(SessionHost, SimpleNamespace(failed=failed, open_sessions=()))
        client = Client(failed)
        monkeypatch.setattr(app, "socket_of", lambda _: client)
        monkeypatch.setattr(app, "Door", Served)
        monkeypatch.setattr(Application, "_connection", Served)
        application = Application(host, {"local": "t"}, settings=Settings(), port=1)
        await getattr(application, door)(client)
        assert client.codes == [CLOSED_AS_FENCED]

    simulate(scenario())


def test_a_fenced_node_prunes_nothing_more() -> None:
    asked: list[str] = []

    class Host:
        async def aged_sessions(self, _: float) -> list[str]:
            return ["a", "b"]

        async def prune(self, session_id: str, **_: Any) -> None:
            asked.append(session_id)
            raise NodeFencedError

    simulate(prune_all(cast(SessionHost, Host()), "0s"))
    assert asked == ["a"]

"""The first calls to a session of a server: they open it, and take effect in the order in which they came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest

import ai_whisperer.server.answers  # noqa: F401 - says who answers what
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.server.audience import Audiences
from ai_whisperer.server.connection import Connection
from ai_whisperer.server.frames import NotificationFrames
from ai_whisperer.server.host import SessionHost
from ai_whisperer.server.metrics import Metrics
from ai_whisperer.settings import LOCAL, Settings
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import simulate
from ai_whisperer.store.base import Store
from ai_whisperer.templates.library import TemplateLibrary
from tests.simulation.test_audience import FakeSocket

Call = tuple[str, dict[str, Any]]


def host_on(store: Store) -> SessionHost:
    return SessionHost(
        store,
        model="any",
        templates=TemplateLibrary([]),
        model_factory=lambda _: FunctionModel(lambda _: "done", latency_seconds=1000),
    )


async def pipelined(host: SessionHost, calls: Sequence[Call], *, settings: Settings | None = None) -> bytes:
    """Send all calls in the session `s` and leave, without waiting for their answers; returns those that came."""
    socket = FakeSocket()
    metrics = Metrics(lambda: host.open_sessions)
    connection = Connection(
        socket,
        connection_id="c",
        principal=LOCAL,
        host=host,
        settings=settings or Settings(),
        metrics=metrics,
        audiences=Audiences(NotificationFrames(), metrics),
    )

    async def arrivals() -> AsyncIterator[list[bytes]]:
        for number, (method, params) in enumerate(calls):
            await asyncio.sleep(0.001)  # each begins before the next comes, in whatever order tasks begin here
            call = {"jsonrpc": "2.0", "id": number, "method": method, "params": {"sessionId": "s", **params}}
            yield [msgspec.json.encode(call)]
        await asyncio.sleep(0.001)

    await connection.run(arrivals())
    return b"".join(socket.writes)


def play(seed: int, *scenes: Sequence[Call]) -> list[str]:
    """The subjects of the mails in the order in which they were accepted, after each scene in a server of its own."""
    disk = SimulatedDisk(seed, slowest_read_seconds=0.1)
    subjects: list[str] = []

    async def main() -> None:
        for calls in scenes:
            store = disk.open()
            host = host_on(store)
            await host.start(session_id="default")
            assert b'"error"' not in await pipelined(host, calls)
            session = await host.session(LOCAL, "s")
            await session.flushed()
            sent = sorted(await session.sent_mail(), key=lambda mail: mail.sequence)
            subjects[:] = [mail.subject for mail in sent]
            await host.close(grace_seconds=0)
            await store.close()

    simulate(main(), seed=seed)
    disk.close()
    return subjects


CREATION: Call = ("async.createAgent", {"agentId": "ada", "autoStart": False})
MAILS: list[Call] = [
    ("mail.send", {"to": "ada", "subject": f"{number}", "body": "x", "mailId": f"mail-{number}"}) for number in range(8)
]
IN_ORDER = [f"{number}" for number in range(8)]


@pytest.mark.parametrize("seed", range(10))
def test_calls_to_a_session_that_does_not_exist_yet_keep_their_order(seed: int) -> None:
    assert play(seed, [CREATION, *MAILS]) == IN_ORDER


@pytest.mark.parametrize("seed", range(10))
def test_calls_to_a_session_that_is_not_open_keep_their_order(seed: int) -> None:
    event: Call = ("async.broadcastEvent", {"event": "e"})
    assert play(seed, [CREATION], [*MAILS[:4], event, *MAILS[4:]]) == IN_ORDER


WAITS: list[Call] = [("task.wait", {"taskId": "any"}), ("lock.acquire", {"name": "any"})]


def while_opening(scene: Callable[[SessionHost], Awaitable[None]]) -> None:
    """Play in a server where the session `s` is there, but not open, on a disk that takes a tenth of a second."""
    disk = SimulatedDisk(1, slowest_read_seconds=0.1)

    async def main() -> None:
        store = disk.open()
        host = host_on(store)
        await host.start(session_id="s")
        await scene(host)
        await host.close(grace_seconds=0)
        await store.close()

    simulate(main(), seed=1)
    disk.close()


@pytest.mark.parametrize("call", WAITS, ids=lambda call: call[0])
def test_who_only_waits_ends_with_its_client_though_the_session_is_being_opened(call: Call) -> None:
    async def scene(host: SessionHost) -> None:
        assert await pipelined(host, [call]) == b""
        assert not host.open_sessions
        assert await host.session(LOCAL, "s")

    while_opening(scene)


@pytest.mark.parametrize("call", WAITS, ids=lambda call: call[0])
def test_those_who_wait_are_counted_while_the_session_is_being_opened(call: Call) -> None:
    async def scene(host: SessionHost) -> None:
        answers = await pipelined(host, [call] * 18, settings=Settings(max_pending_requests=1))
        assert answers.count(b"waits for 16 tasks and locks already") == 2

    while_opening(scene)

"""Notifications as a client gets them while all goes well: whose, how many, and how a stream ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import cast

import pytest
from websockets.asyncio.client import ClientConnection

from ai_whisperer import Client
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.errors import (
    ClosedError,
    StateError,
    UnknownSessionError,
)
from tests.acceptance.client_stage import StagedServer


def test_streams_of_several_sessions_run_side_by_side(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        other = client.session((await client.create_session()).id)
        async with client.events() as mine, other.events() as others, other.events(after=0) as again:
            for target in (client, other):
                await target.create_agent(f"agent-of-{target.session_id}")
            for stream, target in ((mine, client), (others, other), (again, other)):
                note = await anext(stream)
                assert (note.name, note.session_id) == ("agent.created", target.session_id)
                assert note.params["agentId"] == f"agent-of-{target.session_id}"

    server.play(scenario, session_id=session_id)


def test_deltas_come_along_only_when_wanted(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create_agent("alice")
        async with client.events(deltas=True) as streamed, client.events() as kept:
            task = await client.send_task("alice", "go")
            names: list[str] = []
            while "async.task.completed" not in names:
                note = await anext(streamed)
                assert (note.seq == 0) == (note.name == "async.task.delta")
                names.append(note.name)
            assert "async.task.delta" in names
            names = [name for name in names if name != "async.task.delta"]
            assert [(await anext(kept)).name for _ in names] == names
            assert (await client.get_task(task)).state is TaskState.COMPLETED

    server.play(scenario, session_id=session_id)


def test_a_stream_has_one_reader_and_ends_with_its_client(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        stream = client.events()
        first = asyncio.ensure_future(anext(stream, None))
        await asyncio.sleep(0)
        with pytest.raises(StateError, match="reads this subscription already"):
            await anext(stream)
        await client.create_session()
        await client.close()
        assert await first is None
        with pytest.raises(ClosedError, match="subscription was closed"):
            await stream.__aenter__()

    server.play(scenario, session_id=session_id)


def test_a_stream_that_nobody_holds_any_more_lets_go_of_its_connection(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create_agent("alice")
        before = asyncio.all_tasks()
        async for _ in client.events(after=0):
            break
        (of_the_stream,) = asyncio.all_tasks() - before
        await asyncio.wait([of_the_stream], timeout=60)
        assert of_the_stream.done()

    server.play(scenario, session_id=session_id)


def test_a_stream_lets_go_in_its_own_thread_whoever_drops_it(
    server: StagedServer, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def remember(abort: Callable[[], None]) -> None:
        threads.append(threading.get_ident())
        abort()

    async def scenario(client: Client) -> None:
        stream = client.events()
        await stream.__aenter__()
        socket = cast(ClientConnection, stream._socket)
        monkeypatch.setattr(socket.transport, "abort", partial(remember, socket.transport.abort))
        holders = [stream]
        del stream
        await asyncio.to_thread(holders.clear)
        await socket.wait_closed()

    server.play(scenario, session_id=session_id)
    assert threads == [threading.get_ident()]


def test_a_stream_of_a_session_that_is_deleted_says_so(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        doomed = client.session((await client.create_session()).id)
        async with doomed.events() as events:
            await client.delete_session(doomed.session_id)
            with pytest.raises(UnknownSessionError, match=doomed.session_id):
                await anext(events)

    server.play(scenario, session_id=session_id)


@pytest.mark.parametrize("agents", [1, 5], ids=["a shorter log", "a longer log"])
def test_a_stream_does_not_go_on_in_another_session_of_the_same_id(
    server: StagedServer, session_id: str, agents: int
) -> None:
    async def scenario(client: Client) -> None:
        doomed = client.session((await client.create_session()).id)
        for name in ("one", "two"):
            await doomed.create_agent(name)
        async with doomed.events(after=0) as events:
            seen = [await anext(events) for _ in await doomed.notifications()]
            await client.delete_session(doomed.session_id)
            await client.create_session(doomed.session_id)
            for number in range(agents):
                await doomed.create_agent(f"new-{number}")
            for _ in range(2):
                with pytest.raises(UnknownSessionError, match="another has its id now"):
                    await anext(events)
            assert events.cursor == seen[-1].seq

    server.play(scenario, session_id=session_id)

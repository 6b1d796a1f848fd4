"""Forks and comparisons over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ai_whisperer.client import Client
from ai_whisperer.domain.forks import Effects
from ai_whisperer.settings import Settings
from tests.acceptance.server_in_thread import ServerInThread


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerInThread]:
    with ServerInThread(Settings(data=tmp_path_factory.mktemp("data"), port=0)) as server:
        yield server


async def furnished(client: Client) -> int:
    """Give the session an agent that has done a task; returns the entry after its first request."""
    await client.create_agent("ann", {"prompt": "You are Ann."})
    await client.wait_task((await client.send_task("ann", "One.")).id)
    await client.at_rest()
    log = await client.notifications()
    created = next(note.seq for note in log if note.name == "agent.created")
    return (await client.fork_points(created))[0]


def test_a_session_is_forked_and_compared(server: ServerInThread) -> None:
    async def go() -> None:
        async with Client(server.url, server.token) as client:
            await client.create_session("one")
            session = client.session("one")
            at = await furnished(session)
            made = await session.fork_session(at, changes={"ann.prompt": "You are Anna."}, effects="live")
            assert (made.session_ids, made.at, made.effects) == ([f"one-fork-{at}"], at, Effects.LIVE)
            fork = client.session(made.session_ids[0])
            assert (await fork.get_agent("ann")).definition.prompt == "You are Anna."
            assert (await client.get_session(fork.session_id)).title == f"one from {at}"
            alone = await session.compare_sessions(fork.session_id)
            assert alone.first is not None
            assert (alone.first.agent_id, alone.first.kind, alone.first.seq_b) == ("ann", "only_in_a", None)
            again = await session.fork_session(at, runs=2)
            assert again.session_ids == [f"one-fork-{at}-1", f"one-fork-{at}-2"]
            assert (await session.fork_session(at)).session_ids == [f"one-fork-{at}-3"]
            same = await session.compare_sessions("one")
            assert same.is_same
            assert same.first is None
            assert same.spent.a == same.spent.b

    asyncio.run(go())

"""Opening and closing a session in bad circumstances."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.errors import StoreCorruptError, StoreInUseError
from ai_whisperer.models.base import Finished, ModelRequest, StreamEvent, TextDelta
from ai_whisperer.store.sqlite import SqliteStore


class StubbornModel:
    """Answers, but cannot be closed."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        del request
        yield TextDelta(text="done")
        yield Finished()

    async def close(self) -> None:
        raise OSError("no")


def test_a_model_client_that_cannot_be_closed_does_not_keep_the_session_from_closing(tmp_path: Path) -> None:
    async def run() -> None:
        for _ in range(2):
            async with AsyncAgentSessionManager(tmp_path, model_factory=lambda _: StubbornModel()) as manager:
                await manager.start_agent("alice") if "alice" not in manager.active_sessions else None
                await manager.run_task("alice", "go")

    asyncio.run(run())


def test_a_close_that_its_caller_gives_up_still_lets_go_of_the_database(tmp_path: Path) -> None:
    async def run() -> None:
        manager = AsyncAgentSessionManager(tmp_path, model_factory=lambda _: StubbornModel())
        await manager.open()
        await manager.create_agent("alice")
        closing = asyncio.ensure_future(manager.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        async with AsyncAgentSessionManager(tmp_path) as again:
            assert list(again.active_sessions) == ["alice"]

    asyncio.run(run())


def test_a_session_is_open_once_on_a_store(tmp_path: Path) -> None:
    async def run() -> None:
        store = SqliteStore.open(tmp_path)
        async with AsyncAgentSessionManager(store=store) as first:
            with pytest.raises(StoreInUseError, match="open already"):
                await AsyncAgentSessionManager(store=store).open()
            async with AsyncAgentSessionManager(store=store, session_id="other") as other:
                task = await other.start_agent("alice")
                assert task.agent_id == "alice"
                assert first.list_agents() == []
        async with AsyncAgentSessionManager(store=store) as again:
            assert again.list_agents() == []
        await store.close()

    asyncio.run(run())


def test_a_row_that_cannot_be_read_is_told_as_damage(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncAgentSessionManager(tmp_path) as manager:
            await manager.create_agent("alice")
        store = SqliteStore.open(tmp_path)
        store._writing.execute("UPDATE agent SET definition = '{\"limits\": 5}'")
        await store.close()
        with pytest.raises(StoreCorruptError, match="cannot be read"):
            await AsyncAgentSessionManager(tmp_path).open()
        with pytest.raises(StoreCorruptError):
            await AsyncAgentSessionManager(tmp_path).open()

    asyncio.run(run())

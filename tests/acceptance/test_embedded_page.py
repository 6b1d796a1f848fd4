"""`AsyncAgentSessionManager(page=True)`: the page and the socket of a session that a program holds open."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import pytest

from ai_whisperer import AsyncAgentSessionManager, Client
from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.errors import StateError, UnknownSessionError
from ai_whisperer.server.address import ADDRESS_FILE, find_address
from ai_whisperer.settings import LOCAL
from ai_whisperer.store.base import Unit
from ai_whisperer.store.sqlite import SqliteStore


def opened(data: Path | None, **options: object) -> AsyncAgentSessionManager:
    return AsyncAgentSessionManager(data, model="scripted", templates=(), page=True, **options)  # type: ignore[arg-type]


def status_of(url: str) -> int:
    try:
        with build_opener(ProxyHandler({})).open(url) as answer:
            return int(answer.status)
    except HTTPError as error:
        error.close()
        return error.code


def whisperer(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ai_whisperer", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_program_shows_the_page_of_its_session_and_commands_find_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as manager:
            await manager.create_agent("alice")
            assert manager.page is not None
            assert capsys.readouterr().err == f"page {manager.page}\n"
            assert urlsplit(manager.page).hostname == "127.0.0.1"
            assert await asyncio.to_thread(status_of, manager.page) == 200
            assert await asyncio.to_thread(status_of, manager.page.partition("?")[0]) == 401
            async with Client(manager.page) as client:
                assert await client.run_task("alice", "Say hello")
                assert [each.id for each in await client.list_sessions()] == ["default"]
                for attempt in (client.create_session("other"), client.delete_session("default")):
                    with pytest.raises(StateError, match="A program holds this session open"):
                        await attempt
                with pytest.raises(UnknownSessionError):
                    await client.session("other").list_agents()
            assert len(await manager.list_tasks()) == 1
            found = await asyncio.to_thread(whisperer, "page", "--data", str(tmp_path))
            assert (found.returncode, found.stdout.strip()) == (0, manager.page)
            listed = await asyncio.to_thread(whisperer, "agents", "--data", str(tmp_path))
            assert "alice" in listed.stdout
        assert manager.page is None

    asyncio.run(scenario())
    assert not (tmp_path / ADDRESS_FILE).exists()
    assert whisperer("page", "--data", str(tmp_path)).returncode != 0


def test_work_for_another_session_does_not_create_it_in_the_store_of_the_program(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        async with opened(tmp_path) as manager:
            assert manager.page is not None
            async with Client(manager.page) as client:
                with pytest.raises(UnknownSessionError):
                    await client.session("other").create_agent("alice")
        store = SqliteStore.open(tmp_path)
        try:
            return [each.id for each in await store.sessions(LOCAL, limit=10)]
        finally:
            await store.close()

    assert asyncio.run(scenario()) == ["default"]


def test_the_session_is_listed_however_many_newer_ones_are_in_the_store() -> None:
    async def scenario() -> list[str]:
        store = SqliteStore.in_memory()
        unit = Unit()
        for number in range(10_001):
            unit.insert_session(SessionRecord(id=f"newer-{number}", title="", owner=LOCAL, created_at=9e9))
        await store.submit(unit)
        try:
            async with opened(None, store=store) as manager:
                assert manager.page is not None
                async with Client(manager.page) as client:
                    await client.create_agent("alice")
                    return [f"{each.id}: {each.agents}" for each in await client.list_sessions()]
        finally:
            await store.close()

    assert asyncio.run(scenario()) == ["default: 1"]


def test_a_session_without_a_folder_has_another_token_each_time() -> None:
    async def scenario() -> list[str | None]:
        pages = []
        for _ in range(2):
            async with opened(None) as manager:
                pages.append(manager.page)
        return pages

    first, second = asyncio.run(scenario())
    assert first is not None
    assert second is not None
    assert urlsplit(first).query != urlsplit(second).query


def test_the_token_of_a_folder_is_the_same_when_it_is_opened_again(tmp_path: Path) -> None:
    async def token() -> str:
        async with opened(tmp_path):
            address = find_address(tmp_path)
            assert address is not None
            assert address.temporary
            return address.token

    assert asyncio.run(token()) == asyncio.run(token())


def test_a_client_that_is_connected_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(30):
            manager = opened(tmp_path)
            await manager.open()
            await manager.create_agent("alice", auto_start=False)
            assert manager.page is not None
            client = Client(manager.page, reconnect_seconds=0)
            await client.open()
            events = client.events(after=0)
            await anext(events)
            await manager.close()
            await client.close()

    asyncio.run(scenario())


def test_without_the_wish_nothing_is_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with AsyncAgentSessionManager(tmp_path, model="scripted", templates=()) as manager:
            assert manager.page is None
            assert not (tmp_path / ADDRESS_FILE).exists()
            found = await asyncio.to_thread(whisperer, "page", "--data", str(tmp_path))
            assert found.returncode != 0
            assert "page=True" in found.stderr

    asyncio.run(scenario())

"""Every store that there is, for the tests of the contract."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.store.base import Store
from ai_whisperer.store.sqlite import SqliteStore

Scenario = Callable[[Store], Coroutine[Any, Any, None]]
Run = Callable[[Scenario], None]


@pytest.fixture(params=["file", "memory", "postgresql"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Runs a scenario on a fresh store."""
    if request.param == "postgresql":
        address = request.getfixturevalue("database")

    async def opened() -> Store:
        if request.param == "postgresql":
            from ai_whisperer.store.postgresql.store import PostgresqlStore

            return await PostgresqlStore.open(address)
        return SqliteStore.open(tmp_path) if request.param == "file" else SqliteStore.in_memory()

    def runner(scenario: Scenario) -> None:
        async def main() -> None:
            store = await opened()
            try:
                await scenario(store)
            finally:
                await store.close()

        asyncio.run(main())

    return runner

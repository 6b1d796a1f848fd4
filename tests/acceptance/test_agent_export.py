"""What agents do, passed on to the handlers of programs and to the file of the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.client import Client
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.runtime.api.agent_log import AGENTS
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings
from ai_whisperer.store.sqlite import SqliteStore
from tests.unit.log_stage import lines_in


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def a_manager() -> AsyncAgentSessionManager:
    model = FunctionModel(lambda _: "done")
    return AsyncAgentSessionManager(store=SqliteStore.in_memory(), model="any", model_factory=lambda _: model)


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler = Kept()
    AGENTS.addHandler(handler)
    AGENTS.setLevel(logging.INFO)
    yield handler
    AGENTS.setLevel(logging.NOTSET)
    AGENTS.removeHandler(handler)


def test_programs_get_what_agents_do_with_the_handlers_of_the_standard_library(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Kept()
    monkeypatch.setattr(logging.getLogger("ai_whisperer"), "handlers", [process])

    async def work() -> None:
        async with asyncio.TaskGroup() as tasks, a_manager() as manager:
            tasks.create_task(manager.log_agents())
            await manager.create_agent("ada")
            await manager.create_agent("bob", auto_start=False)
            await manager.run_task("ada", "go")
            await manager.send_mail("bob", "hello", "x")

    asyncio.run(work())
    entries: list[dict[str, Any]] = [record.__dict__["entry"] for record in kept.records]
    assert {entry["level"] for entry in entries} == {"info"}
    assert {entry["agent"] for entry in entries} >= {"ada", "bob"}
    assert any(record.getMessage().startswith("ada finished its task: ") for record in kept.records)
    assert [entry["seq"] for entry in entries] == sorted(entry["seq"] for entry in entries)
    assert all(record.name == "ai_whisperer.agents" for record in kept.records)
    assert process.records == [], "it is not the process's log"


@pytest.mark.parametrize("is_wanted", [True, False])
def test_a_server_writes_what_agents_do_to_the_file_that_is_set_and_else_to_none(
    tmp_path: Path, *, is_wanted: bool
) -> None:
    before = list(AGENTS.handlers)  # pytest has its own
    file = tmp_path / "elsewhere" / "agents.jsonl"
    settings = Settings(data=tmp_path / "data", port=0, agent_log=file if is_wanted else None, log_level="debug")

    async def work() -> list[dict[str, Any]]:
        async with running(settings) as server, Client(server.address.url, token=server.address.token) as client:
            await client.create_agent("ada")
            await client.run_task("ada", "go")
            return (await client.read_log("ada", level="debug")).entries

    told = asyncio.run(work())
    assert len(told) > 5
    if is_wanted:
        assert [line for line in lines_in(file) if line["agent"] == "ada"][: len(told)] == told
    else:
        assert not file.exists()
    assert [path for path in (tmp_path / "data").rglob("*.log") if path.name != "server.log"] == []
    assert AGENTS.handlers == before

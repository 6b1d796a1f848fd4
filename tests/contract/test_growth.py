"""What is read of a session does not grow with its history. Counted in steps of SQLite's machine, not in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.store.sqlite import SqliteStore
from tests.simulation.stage import prompt_of

SESSION = "default"
AGENTS = ("ann", "bob", "cem")
Reading = Callable[[SqliteStore], Awaitable[object]]


def answer(request: ModelRequest) -> str:
    if prompt_of(request) == "fail":
        raise ModelRefusedError("No.")
    return "done"


async def live(folder: Path, *, rounds: int) -> None:
    """Fill a session: in each round each agent has a task, a mail, and a task that fails and is dismissed."""
    async with AsyncAgentSessionManager(folder, model_factory=lambda _: FunctionModel(answer)) as manager:
        for name in AGENTS:
            await manager.create_agent(name, {"supervision": {"max_failures": 10 * rounds}})
        for _ in range(rounds):
            for name in AGENTS:
                await manager.run_task(name, "go", thread_id="talk")
                await manager.send_mail(name, "hello", "go", thread_id="talk")
                failed = await manager.wait_task(await manager.send_task(name, "fail", thread_id="bad"))
                await manager.dismiss_task(failed)
            await manager.at_rest()


def steps_of(folder: Path, read: Reading) -> int:
    """How many steps the reading takes."""
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    async def main() -> None:
        store = SqliteStore.open(folder)
        store._reading.set_progress_handler(count, 1)
        await read(store)
        await store.close()

    asyncio.run(main())
    return steps


READINGS: dict[str, Reading] = {
    "the session as it was left": lambda store: store.load(SESSION),
    "the steps of open tasks": lambda store: store.open_steps(SESSION),
    "what failed lately": lambda store: store.failures_since(SESSION, 1e12),
    "the sessions with work": lambda store: store.sessions_with_work(),
    "the sessions without a server": lambda store: store.unlisted_sessions(),
    "the threads of an agent": lambda store: store.threads_of_agent(SESSION, "ann"),
}


@pytest.fixture(scope="module")
def short_and_long(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folders = tmp_path_factory.mktemp("short"), tmp_path_factory.mktemp("long")
    for folder, rounds in zip(folders, (2, 40), strict=True):
        asyncio.run(live(folder, rounds=rounds))
    return folders


@pytest.mark.parametrize("read", READINGS.values(), ids=READINGS)
def test_reading_takes_as_many_steps_with_a_long_history_as_with_a_short_one(
    short_and_long: tuple[Path, Path], read: Reading
) -> None:
    short, long = (steps_of(folder, read) for folder in short_and_long)
    assert 0 < long <= 1.05 * short

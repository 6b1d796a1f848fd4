"""A real data folder after pruning: it is smaller, and opens again after a kill."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.store.sqlite.files import DATABASE_NAME

LIVE_AND_DIE = """
import asyncio, os, sys
from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.models.scripted import FunctionModel

async def main():
    model = FunctionModel(lambda _: "answer-4711 " * 500)
    manager = AsyncAgentSessionManager(sys.argv[1], model_factory=lambda _: model)
    await manager.open()
    await manager.create_agent("ann")
    for number in range(150):
        await manager.run_task("ann", f"prompt-4711 {number} " * 500, task_id=f"t{number}")
    print(os.path.getsize(sys.argv[1] + "/whisperer.db"), flush=True)
    await manager.prune(older_than=0)
    print("pruned", flush=True)
    os._exit(9)

asyncio.run(main())
"""


def test_a_pruned_folder_is_smaller_and_opens_again_after_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    died = subprocess.run(
        [sys.executable, "-c", LIVE_AND_DIE, str(folder)], capture_output=True, text=True, timeout=120, check=False
    )
    assert died.stdout.endswith("pruned\n"), died.stderr
    before = int(died.stdout.split()[0])

    async def go_on() -> None:
        async with AsyncAgentSessionManager(folder, model_factory=lambda _: FunctionModel(lambda _: "done")) as manager:
            assert (await manager.get_task("t7")).erased_at is not None
            first = manager.first_seq
            assert first > 1000
            await manager.run_task("ann", "again")
            assert next(note.seq for note in await manager.notifications(after=first - 1)) == first

    asyncio.run(go_on())
    assert (folder / DATABASE_NAME).stat().st_size < before / 4

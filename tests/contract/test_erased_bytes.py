"""What is erased is in no file of the data folder any more, while the session is open too; nor are its files."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.store.sqlite.backup import one_moment
from ai_whisperer.store.sqlite.files import DATABASE_NAME, wal_of
from tests.simulation.stage import call, prompt_of, round_of


def say(request: ModelRequest) -> Answer | str:
    if "write" in prompt_of(request) and not round_of(request):
        return call("write_file", path="note.txt", content="kept")
    return f"You said: {prompt_of(request)}"


def opened(folder: Path) -> AsyncAgentSessionManager:
    return AsyncAgentSessionManager(folder, model_factory=lambda _: FunctionModel(say), templates=())


def traces(folder: Path, *words: str) -> dict[str, int]:
    """In which files these words are, and how often."""
    counts = {}
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            counts[path.name] = sum(content.count(word.encode()) for word in words)
    return {name: count for name, count in counts.items() if count}


def test_what_was_deleted_is_in_no_file_any_more(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as manager:
            for name in ("ann", "ben"):
                await manager.create_agent(name)
            for number in range(40):
                await manager.run_task("ann", f"a THREADWORD {number} " * 100, thread_id="talk")
                await manager.run_task("ann", f"something else {number} " * 50)
            await manager.send_mail("ann", "THREADWORD", "THREADWORD", thread_id="talk")
            await manager.run_task("ben", "an AGENTWORD " * 500)
            room = await manager.create_room(["ann"], room_id="lobby", title="ROOMWORD")
            await manager.post_message(room, "@ann a ROOMWORD")
            await manager.at_rest()
            assert traces(tmp_path, "THREADWORD", "AGENTWORD", "ROOMWORD")
            await manager.delete_thread("ann", "talk")
            assert traces(tmp_path, "THREADWORD") == {}
            await manager.delete_agent("ben")
            assert traces(tmp_path, "AGENTWORD") == {}
            await manager.delete_room(room)
            assert traces(tmp_path, "ROOMWORD") == {}
            assert traces(tmp_path, "something else")
            await manager.prune(older_than=0)
            assert traces(tmp_path, "something else") == {}

    asyncio.run(main())


def test_whoever_reads_meanwhile_holds_up_nobody_and_sees_what_was_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as manager:
            await manager.create_agent("ann")
            await manager.run_task("ann", "a WORD " * 1000, task_id="t")
            with one_moment(tmp_path) as reading:
                async with asyncio.timeout(4):  # a lock would be waited for longer
                    await manager.prune(older_than=0)
                    await manager.run_task("ann", "go on")
                ((prompt,),) = reading.execute("SELECT prompt FROM task WHERE id='t'")
                assert "WORD" in prompt
            await manager.prune(older_than=0)
            assert traces(tmp_path, "WORD") == {}
            assert wal_of(tmp_path / DATABASE_NAME).stat().st_size == 0

    asyncio.run(main())


DELETE_AND_DIE = """
import asyncio, os, sys
from pathlib import Path
from ai_whisperer.runtime.agents.folders import Folders
from tests.contract.test_erased_bytes import opened

async def main():
    manager = opened(Path(sys.argv[1]))
    await manager.open()
    await manager.create_agent("ann", {"tools": ["write_file"]})
    await manager.run_task("ann", "write")
    Folders.put_aside = lambda *_: os._exit(9)
    await manager.delete_agent("ann")

asyncio.run(main())
"""


def test_the_folder_of_a_deleted_agent_is_gone_after_a_kill_too(tmp_path: Path) -> None:
    died = subprocess.run(
        [sys.executable, "-c", DELETE_AND_DIE, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert died.returncode == 9, died.stderr
    assert len(list(tmp_path.rglob("note.txt"))) == 1

    async def main() -> None:
        async with opened(tmp_path) as manager:
            await manager.create_agent("ann", {"tools": ["write_file"]})
            assert not (tmp_path / "work" / "default" / "agents" / "ann").exists()
            await manager.run_task("ann", "write")

    asyncio.run(main())
    assert len(list(tmp_path.rglob("note.txt"))) == 1


def test_an_agent_of_the_same_name_begins_with_no_files(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as manager:
            await manager.create_agent("ann", {"tools": ["write_file"]})
            await manager.run_task("ann", "write")
            deleting = asyncio.ensure_future(manager.delete_agent("ann"))
            while "ann" in manager.active_sessions:  # noqa: ASYNC110 - at that instant
                await asyncio.sleep(0)
            await manager.create_agent("ann", {"tools": ["write_file"]})
            await manager.run_task("ann", "write")
            await deleting

    asyncio.run(main())
    assert len(list(tmp_path.rglob("note.txt"))) == 1

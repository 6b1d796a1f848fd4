"""Folders that agents filled are removed, whatever is in them, and nothing else is."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer.domain.definition import Access, AgentDefinition
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.runtime.agents.folders import Folders, remove_work, work_of
from ai_whisperer.tools.commands import run_command
from ai_whisperer.tools.files.removing import remove_beneath
from ai_whisperer.tools.function import CancelSignal, ToolContext
from ai_whisperer.tools.workplace import Folder, Workplace

DEEP = 1500


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path.resolve()
    remove_work(tmp_path.parent, tmp_path)  # what a failed test left would break others' way of removing


def make_deep(folder: Path) -> None:
    folder.mkdir(parents=True)
    program = f"import os\nfor _ in range({DEEP}):\n os.mkdir('d'); open('f', 'w').close(); os.chdir('d')"
    subprocess.run([sys.executable, "-I", "-S", "-c", program], cwd=folder, check=True)


def test_a_folder_deeper_than_python_recurses_is_removed(root: Path) -> None:
    make_deep(root / "work" / "a")
    remove_beneath(root, root / "work")
    assert list(root.iterdir()) == []


def test_links_are_removed_and_not_followed(root: Path) -> None:
    (root / "kept" / "inner").mkdir(parents=True)
    (root / "work" / "inner").mkdir(parents=True)
    for link in ("to", "inner/to"):
        (root / "work" / link).symlink_to(root / "kept")
    (root / "gone").symlink_to(root / "kept")
    remove_beneath(root, root / "work")
    remove_beneath(root, root / "gone")
    assert sorted(root.rglob("*")) == [root / "kept", root / "kept" / "inner"]


def test_nothing_is_removed_where_a_link_leads_to(root: Path) -> None:
    (root / "elsewhere" / "s").mkdir(parents=True)
    (root / "work").symlink_to("elsewhere")
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        remove_beneath(root, root / "work" / "s")
    assert (root / "elsewhere" / "s").is_dir()


@pytest.mark.parametrize("path", [".", "..", "a/../.."])
def test_neither_the_root_nor_what_is_outside_is_removed(root: Path, path: str) -> None:
    (root / "r").mkdir()
    with pytest.raises(OSError, match="Invalid argument"):
        remove_beneath(root / "r", root / "r" / path)
    assert (root / "r").is_dir()


def test_what_is_not_there_needs_no_removing(root: Path) -> None:
    remove_beneath(root, root / "work" / "s")


def test_folders_that_may_not_be_read_or_written_are_removed(root: Path) -> None:
    (root / "work" / "a" / "b" / "c").mkdir(parents=True)
    (root / "work" / "a" / "b" / "file").touch()
    for path in ("work/a/b/c", "work/a/b", "work/a", "work"):
        (root / path).chmod(0)
    remove_beneath(root, root / "work")
    assert list(root.iterdir()) == []


def test_what_programs_left_behind_is_swept_when_the_session_opens(root: Path) -> None:
    make_deep(work_of(root, "s") / "tmp" / "left")
    (work_of(root, "s") / "tmp.0" / "left-while-sweeping").mkdir(parents=True)
    (work_of(root, "s") / "agents").mkdir()

    async def opened_and_closed() -> None:
        places = Folders(root, "s", {})
        places.sweep()
        await places.close()

    asyncio.run(opened_and_closed())
    assert [path.name for path in work_of(root, "s").iterdir()] == ["agents"]


class _Nothing:
    """A sandbox in which nothing runs."""

    name = "nothing"

    async def run(self, *_: object) -> object:
        raise AssertionError("it is cancelled before")


def test_a_command_that_is_cancelled_while_its_folder_is_made_leaves_none(root: Path) -> None:
    own = Folder(path=root / "work" / "s" / "agents" / "ada", access=Access.WRITE)
    place = Workplace(folders={"": own}, network=(), limits=EffectiveLimits(), sandbox=_Nothing())  # type: ignore[arg-type]
    context = ToolContext(
        session_id="s", agent_id="ada", task_id="t", step_id="t.1", cancelled=CancelSignal(), workplace=place
    )

    async def cancelled() -> None:
        running = asyncio.create_task(run_command("true", context))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    assert not list(root.glob("work/s/tmp/*"))


def test_a_session_without_a_data_folder_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(root))

    async def used() -> None:
        places = Folders(None, "s", {})
        make_deep(places.of("ada", AgentDefinition(), EffectiveLimits()).own.path)
        await places.close()

    asyncio.run(used())
    assert list(root.iterdir()) == []

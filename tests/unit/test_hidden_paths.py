"""What is hidden in a granted folder: for the file tools it is not there, under whatever name, and cannot be made."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import msgspec
import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.core.limits import effective
from ai_whisperer.domain.definition import Access, AgentDefinition
from ai_whisperer.domain.limits import Limits
from ai_whisperer.errors import InvalidInputError, ToolError
from ai_whisperer.runtime.agents.folders import Folders, checked_folders, kept_from_agents
from ai_whisperer.sandbox import system
from ai_whisperer.templates.library import TemplateLibrary
from ai_whisperer.tools.files import beneath
from ai_whisperer.tools.files.beneath import Links, open_beneath, open_folder
from ai_whisperer.tools.files.search_process import _by_itself, _program
from ai_whisperer.tools.workplace import Workplace, identity
from tests.unit.file_stage import CANARY, Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The desk of an agent that may write the folder of its project, with the data folder in it."""
    project = tmp_path / "project"
    (project / ".whisperer/work").mkdir(parents=True)
    (project / ".whisperer/token").write_text(CANARY)
    (project / "whisperer.toml").write_text(f"# {CANARY}")
    (project / "src").mkdir()
    (project / "src/main.py").write_text("print('open')\n")
    monkeypatch.chdir(project)
    desk = Desk(tmp_path)
    desk.workplace = workplace(project / ".whisperer", {"project": project}, {"project": Access.WRITE})
    return desk


def workplace(data: Path, folders: dict[str, Path], access: dict[str, Access]) -> Workplace:
    kept = kept_from_agents([data], hidden=[], templates=TemplateLibrary.standard())
    places = Folders(data, "s", checked_folders(folders, kept=kept), kept=kept)
    made = places.of("alice", AgentDefinition(folders=access), effective(Limits()))
    return msgspec.structs.replace(made, sandbox=None)


HIDDEN = [
    "project/.whisperer/token",
    "project/./src/../.whisperer//token",
    "project/.WHISPERER/token",
    "project/.whisperer",
    "project/whisperer.toml",
    "project/Whisperer.toml",
    "project/.claude/agents/mine.md",
    "project/.whisperer/tools/mine.py",
    "project/.whisperer/work/s/agents/alice/file",
]


@pytest.mark.parametrize("path", HIDDEN)
def test_nothing_hidden_is_read_written_listed_or_searched(desk: Desk, path: str) -> None:
    for name, arguments in {
        "read_file": {},
        "write_file": {"content": "x"},
        "edit_file": {"old": "a", "new": "b"},
        "list_directory": {},
        "search_files": {"pattern": "canary"},
    }.items():
        assert "is not for agents" in desk.refused(name, path=path, **arguments)
    assert not Path(".whisperer/tools").exists()
    assert not Path(".claude").exists()


def test_a_folder_for_code_that_is_not_there_yet_cannot_be_made(tmp_path: Path, desk: Desk) -> None:
    os.chdir(tmp_path / "outside")
    desk.workplace = workplace(tmp_path / "data", {"project": tmp_path / "outside"}, {"project": Access.WRITE})
    desk.refused("write_file", path="project/.whisperer/tools/mine.py", content="x")
    assert "Wrote" in desk.use("write_file", path="project/.whisperers/mine.py", content="x")
    assert not Path(".whisperer").exists()


def test_what_is_not_hidden_can_be_used(desk: Desk) -> None:
    assert "open" in desk.use("read_file", path="project/src/main.py")
    desk.use("write_file", path="project/new/file.txt", content="new")
    assert Path("new/file.txt").read_text() == "new"


def test_lists_and_searches_of_the_project_leave_out_what_is_hidden(desk: Desk) -> None:
    listed = desk.use("list_directory", path="project", depth=5)
    assert "src/main.py" in listed
    assert "whisperer" not in listed
    found = desk.use("search_files", path="project", pattern="canary|open")
    assert "src/main.py:1" in found
    assert CANARY not in found
    assert CANARY not in desk.use("search_files", path="project", pattern="canary", glob="**/token")


def test_a_renamed_folder_is_hidden_under_its_new_name_too(desk: Desk) -> None:
    """It is known by what it is, so that another name for it, by whatever trick, does not help."""
    real = desk.workplace.folders["project"]
    os.rename(".whisperer", "src/renamed")
    moved = msgspec.structs.replace(real, hidden=("src/renamed",))
    assert moved.hidden_identities() == {identity(os.stat("src/renamed"))}
    descriptor = open_folder(str(real.path))
    try:
        for path in ("src/renamed", "src/renamed/token", "src/renamed/work/.."):
            with pytest.raises(FileNotFoundError):
                open_beneath(descriptor, path, os.O_RDONLY, links=Links.BENEATH, hidden=moved.hidden_identities())
    finally:
        os.close(descriptor)


def test_links_do_not_lead_to_what_is_hidden(desk: Desk) -> None:
    Path("link").symlink_to(".whisperer")
    Path("src/file").symlink_to("../.whisperer/token")
    desk.workplace.prepare()
    (desk.workplace.own.path / "out").symlink_to(Path("link").absolute())
    for path in ("project/link/token", "project/src/file", "out/token"):
        for name, arguments in {
            "read_file": {},
            "write_file": {"content": "x"},
            "search_files": {"pattern": "c"},
        }.items():
            desk.refused(name, path=path, **arguments)
    assert CANARY not in desk.use("search_files", path="project", pattern="canary")
    assert "token" not in desk.use("list_directory", path="project", depth=5).replace("/token)", "")


def test_a_folder_that_a_link_leads_to_is_hidden_as_well(tmp_path: Path, desk: Desk) -> None:
    os.rename(".whisperer", "settings")
    Path(".whisperer").symlink_to("settings")
    desk.workplace = workplace(Path(".whisperer"), {"project": Path()}, {"project": Access.READ})
    assert {"settings", ".whisperer"} <= set(desk.workplace.folders["project"].hidden)
    desk.refused("read_file", path="project/settings/token")
    desk.refused("read_file", path="project/.whisperer/token")


def test_a_swap_at_the_last_moment_does_not_help(desk: Desk) -> None:
    """Somebody swaps a folder and the hidden one, again and again; it is not read under the folder's name."""
    Path("src/token").write_text("open")
    Path(".whisperer/token").write_text(CANARY)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for before, after in (("src", "aside"), (".whisperer", "src"), ("src", ".whisperer"), ("aside", "src")):
                os.rename(before, after)

    hidden = desk.workplace.folders["project"].hidden_identities()
    descriptor = open_folder(str(desk.workplace.folders["project"].path))
    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(3000):
            try:
                opened = open_beneath(descriptor, "src/token", os.O_RDONLY, links=Links.REFUSED, hidden=hidden)
            except OSError:
                continue
            with open(opened, encoding="utf-8") as file:
                assert file.read() == "open"
    finally:
        done.set()
        swapping.join()
        os.close(descriptor)


def test_the_searching_process_leaves_out_what_is_hidden(desk: Desk) -> None:
    folder = desk.workplace.folders["project"]
    request = {
        "folder": str(folder.path),
        "pattern": "canary|open",
        "glob": None,
        "max_matches": 9,
        "max_file_bytes": 1 << 20,
        "hidden": sorted(folder.hidden_identities()),
    }
    argv = (system.interpreter(), "-I", "-S", "-c", _program())

    def searched(path: str) -> bytes:
        return asyncio.run(_by_itself(argv, msgspec.json.encode({**request, "path": path}), seconds=20))

    assert b"main.py" in searched(".")
    assert CANARY.encode() not in searched(".")
    assert searched(".whisperer").startswith(b'{"failed"')
    assert searched(".whisperer/token").startswith(b'{"failed"')
    assert searched("whisperer.toml").startswith(b'{"failed"')


def test_the_python_that_runs_the_server_is_hidden_where_it_could_be_written(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "ai_whisperer.runtime.agents.folders.interpreter_folders", lambda: (str(tmp_path / "project/.venv"),)
    )
    for access, is_hidden in ((Access.WRITE, True), (Access.READ, False)):
        place = workplace(Path(".whisperer"), {"project": Path()}, {"project": access})
        assert place.folders["project"].hides(".venv/bin/python") is is_hidden


def test_a_folder_in_the_data_or_with_code_cannot_be_granted(desk: Desk, tmp_path: Path) -> None:
    Path(".whisperer/tools").mkdir()
    for bad in (".whisperer", ".whisperer/tools", ".whisperer/work"):
        with pytest.raises(InvalidInputError, match="lies in it, where the runtime has its data"):
            AsyncAgentSessionManager(tmp_path / "elsewhere", folders={"x": bad})
    with pytest.raises(InvalidInputError, match="lies in it"):
        AsyncAgentSessionManager(folders={"x": "src"}, hidden=["src"])
    for wrong in ("src", [5], [""]):
        with pytest.raises(InvalidInputError, match="hidden must be"):
            AsyncAgentSessionManager(hidden=wrong)  # type: ignore[arg-type]


def test_a_grant_of_a_folder_around_another_hides_the_same(desk: Desk, tmp_path: Path) -> None:
    place = workplace(Path(".whisperer"), {"all": tmp_path}, {"all": Access.READ})
    desk.workplace = place
    assert "open" in desk.use("read_file", path="all/project/src/main.py")
    desk.refused("read_file", path="all/project/.whisperer/token")
    assert CANARY not in desk.use("search_files", path="all/project", pattern="canary")


def test_without_the_kernels_help_nothing_hidden_is_opened_either(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beneath, "has_openat2", lambda: False)
    assert "open" in desk.use("read_file", path="project/src/main.py")
    with pytest.raises(ToolError):
        desk.use("read_file", path="project/.whisperer/token")

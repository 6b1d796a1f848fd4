"""An agent that is granted the folder of its project: its programs see all of it but what the runtime has there."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.core.limits import effective
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.definition import Access, AgentDefinition
from ai_whisperer.domain.limits import Limits
from ai_whisperer.errors import SandboxError
from ai_whisperer.runtime.agents.folders import Folders, checked_folders, kept_from_agents
from ai_whisperer.sandbox import system
from ai_whisperer.sandbox.base import Job, Sandbox
from ai_whisperer.sandbox.choosing import ChosenSandbox
from ai_whisperer.sandbox.launcher import KeptSandbox, Launcher
from ai_whisperer.sandbox.levels import ALL, STRONG
from ai_whisperer.templates.library import TemplateLibrary
from ai_whisperer.tools.commands import run_command, run_python
from ai_whisperer.tools.function import CancelSignal, ToolContext
from ai_whisperer.tools.workplace import Workplace
from tests.acceptance.sandbox_stage import need

CANARY = "canary-90c2d4"

ATTEMPTS = r"""
import ctypes, json, os, sys
os.chdir("project")
root = os.getcwd()
data = sys.argv[1]

def read(path):
    return lambda: open(path).read()

def write(path):
    def attempt():
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        open(path, "w").write("written")
    return attempt

def linked(link):
    def attempt():
        link(f"{data}/token", "link")
        return open("link").read()
    return attempt

def swapped():
    os.makedirs("mine/tools")
    os.rename("mine", ".whisperer")

def moved_above():
    os.rename("state", "other")
    return open("other/data/token").read()

def by_descriptor():
    folder = os.open(data, os.O_PATH)
    return open(f"/proc/self/fd/{folder}/token").read()

def uncovered():
    if ctypes.CDLL(None, use_errno=True).umount2(f"{root}/{data}".encode(), 2) != 0:
        raise OSError("refused")

attempts = {
    "reads the token": read(f"{data}/token"),
    "reads it by another way": read(f"src/../{data}/./token"),
    "reads it by its absolute path": read(f"{root}/{data}/token"),
    "reads it by its root": read(f"/proc/self/root{root}/{data}/token"),
    "reads it by a descriptor": by_descriptor,
    "reads it by a symbolic link": linked(os.symlink),
    "reads it by a hard link": linked(os.link),
    "reads it by a link that was there": read("old-link/token"),
    "renames the data folder": lambda: os.rename(data, "taken"),
    "renames the folder above it": moved_above,
    "reads the settings": read("whisperer.toml"),
    "writes the settings": write("whisperer.toml"),
    "removes the settings": lambda: os.remove("whisperer.toml"),
    "puts other settings there": lambda: os.replace("src/main.py", "whisperer.toml"),
    "writes the token": write(f"{data}/token"),
    "makes a file in the data folder": write(f"{data}/made"),
    "makes a tool": write(".whisperer/tools/mine.py"),
    "makes a template": write(".claude/agents/mine.md"),
    "puts a folder into its place": swapped,
    "removes the folder for tools": lambda: os.rmdir(".whisperer"),
    "renames the folder for tools": lambda: os.rename(".whisperer", "elsewhere"),
    "renames the folder for templates": lambda: os.rename(".claude", "elsewhere"),
    "opens up the folder for tools": lambda: os.chmod(".whisperer", 0o777),
    "uncovers it": uncovered,
    "reads the project": read("src/main.py"),
    "writes the project": write("src/new.py"),
    "makes a file in the project": write("top.txt"),
    "lists the project": lambda: sorted(os.listdir(".")),
    "writes into its own folder": lambda: open(os.environ["HOME"] + "/mine", "w").write("x"),
    "writes a temporary file": lambda: open(os.environ["TMPDIR"] + "/mine", "w").write("x"),
}
done = {}
for name, attempt in attempts.items():
    try:
        done[name] = repr(attempt())
    except OSError:
        done[name] = None
print(json.dumps(done))
"""

ALLOWED = {
    "reads the project",
    "writes the project",
    "makes a file in the project",
    "lists the project",
    "writes into its own folder",
    "writes a temporary file",
}


def workplace(project: Path, sandbox: Sandbox, *, data: str, access: Access = Access.WRITE) -> Workplace:
    """Where an agent works that is granted the current folder."""
    kept = kept_from_agents([project / data], hidden=[], templates=TemplateLibrary.standard())
    granted = checked_folders({"project": project}, kept=kept)
    places = Folders(project / data, "s", granted, kept=kept, sandbox=sandbox)
    definition = AgentDefinition(folders={"project": access, "shared": Access.WRITE})
    return places.of("ada", definition, effective(Limits()))


def context(place: Workplace) -> ToolContext:
    return ToolContext(
        session_id="s", agent_id="ada", task_id="t", step_id="t.1", cancelled=CancelSignal(), workplace=place
    )


def ran(place: Workplace, command: str) -> ToolResult:
    return asyncio.run(run_command(command, context(place)))


@pytest.fixture(scope="module", params=STRONG)
def sandbox(request: pytest.FixtureRequest) -> Iterator[ChosenSandbox]:
    need(request.param)
    chosen = ChosenSandbox(request.param)
    yield chosen
    asyncio.run(chosen.close())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = (tmp_path / "project").resolve()
    (folder / "src").mkdir(parents=True)
    (folder / "src/main.py").write_text("print('open')\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("data", [".whisperer", "state/data"])
@pytest.mark.parametrize("has_settings", [True, False])
def test_programs_cannot_reach_what_the_runtime_has_in_the_project(
    sandbox: ChosenSandbox, project: Path, data: str, *, has_settings: bool
) -> None:
    (project / data).mkdir(parents=True)
    (project / data / "token").write_text(CANARY)
    (project / "old-link").symlink_to(data)
    if has_settings:
        (project / "whisperer.toml").write_text(f"# {CANARY}")
    place = workplace(project, sandbox, data=data)
    result = asyncio.run(run_python(f"import sys\nsys.argv = ['x', {data!r}]\n{ATTEMPTS}", context(place)))
    assert not result.is_error, result.content
    assert result.run is not None
    assert result.run.sandbox == sandbox.name
    assert CANARY not in result.content
    done: dict[str, Any] = json.loads(result.content.splitlines()[-1])
    assert {name for name, told in done.items() if told is not None} == ALLOWED
    assert (project / data / "token").read_text() == CANARY
    assert (project / "whisperer.toml").read_text() == (f"# {CANARY}" if has_settings else "")
    assert not (project / ".whisperer/tools").exists()
    assert not (project / ".claude/agents/mine.md").exists()
    assert (project / "src/new.py").read_text() == (project / "top.txt").read_text() == "written"
    assert (place.own.path / "mine").read_text() == "x"


def test_a_program_that_may_only_read_the_project_does_not_see_it_either(sandbox: ChosenSandbox, project: Path) -> None:
    (project / ".whisperer").mkdir()
    (project / ".whisperer/token").write_text(CANARY)
    place = workplace(project, sandbox, data=".whisperer", access=Access.READ)
    result = ran(
        place, "cat project/src/main.py; cat project/.whisperer/token; ls -a project/.whisperer; echo y > mine"
    )
    assert "print('open')" in result.content
    assert CANARY not in result.content
    assert (place.own.path / "mine").read_text() == "y\n"
    assert not (project / "whisperer.toml").exists()


def test_agents_still_share_their_folder(sandbox: ChosenSandbox, project: Path) -> None:
    place = workplace(project, sandbox, data=".whisperer")
    assert not ran(place, "echo y > shared/y; cat shared/y").is_error
    assert (place.folders["shared"].path / "y").read_text() == "y\n"


def test_a_granted_folder_that_was_swapped_for_a_link_leads_nowhere(
    sandbox: ChosenSandbox, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir(mode=0o700)
    (tmp_path / "secret/token").write_text(CANARY)
    (project / "docs").mkdir()
    data = tmp_path / "data"
    kept = kept_from_agents([data], hidden=[], templates=TemplateLibrary.standard())
    granted = checked_folders({"project": project, "docs": project / "docs"}, kept=kept)
    places = Folders(data, "s", granted, kept=kept, sandbox=sandbox)

    def place(**folders: Access) -> Workplace:
        return places.of("ada", AgentDefinition(folders=folders), effective(Limits()))

    both = place(project=Access.WRITE, docs=Access.READ)
    swap = f"cd project && mv docs other; ln -sfn {tmp_path}/secret docs; echo x > docs/written"
    assert ran(both, swap).is_error
    assert not (project / "docs").is_symlink()
    assert not (project / "docs/written").exists()
    assert not ran(place(project=Access.WRITE), swap.partition("; echo")[0]).is_error
    assert (project / "docs").is_symlink()
    for access in (Access.READ, Access.WRITE):
        with pytest.raises(SandboxError, match="symbolic link by now"):
            ran(place(docs=access), f"cat docs/token {tmp_path}/secret/token")
    assert (tmp_path / "secret/token").read_text() == CANARY


def test_a_link_in_the_place_of_what_is_hidden_lets_nothing_run(sandbox: ChosenSandbox, project: Path) -> None:
    (project / "state").mkdir()
    (project / ".whisperer").symlink_to("src")
    with pytest.raises(SandboxError, match="symbolic link, so programs cannot be kept from it"):
        ran(workplace(project, sandbox, data="state"), "echo x > ran")
    assert not list(project.rglob("ran"))


@pytest.mark.parametrize("level", [level for level in ALL if level not in STRONG])
def test_a_level_that_cannot_hide_runs_nothing(project: Path, level: str) -> None:
    need(level)
    job = Job(argv=("/bin/sh", "-c", "echo x > ran"), cwd=str(project), writable=(str(project),), hidden=("/nothing",))
    launcher = Launcher()

    async def run() -> None:
        try:
            with pytest.raises(SandboxError, match="cannot keep a program from a part of a folder"):
                await KeptSandbox(level, launcher).run(job)
        finally:
            await launcher.close()

    asyncio.run(run())
    assert not list(project.rglob("ran"))


def test_the_servers_own_python_is_read_only_in_a_project_that_may_be_written(
    sandbox: ChosenSandbox, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = project / ".venv"
    venv.mkdir()
    (venv / "library.py").write_text("library")
    folders = (*system.interpreter_folders(), str(venv))
    monkeypatch.setattr("ai_whisperer.sandbox.system.interpreter_folders", lambda: folders)
    monkeypatch.setattr("ai_whisperer.runtime.agents.folders.interpreter_folders", lambda: folders)
    result = ran(
        workplace(project, sandbox, data=".whisperer"),
        "cat project/.venv/library.py; echo x >> project/.venv/library.py; mv project/.venv project/other",
    )
    assert "library" in result.content
    assert (venv / "library.py").read_text() == "library"
    assert os.listdir(venv) == ["library.py"]

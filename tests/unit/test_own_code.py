"""Folders from which the program imports its code are not for agents to write."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from ai_whisperer.domain.definition import Access, AgentDefinition
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.errors import DefinitionError
from ai_whisperer.runtime.agents.folders import Folders
from ai_whisperer.sandbox.base import Ending, Job
from ai_whisperer.sandbox.launcher import KeptSandbox, Launcher
from ai_whisperer.sandbox.own_code import imported_from


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a program was started that lies in it."""
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    return folder


@pytest.mark.parametrize("entry", ["", ".", "{}", "{}/code", "{}/missing.zip"])
def test_a_folder_that_is_or_holds_a_folder_of_imports_is_not_safe(
    project: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    monkeypatch.setattr(sys, "path", [entry.format(project), *sys.path[1:]])
    assert imported_from(project) == Path(project, entry.format(project)).resolve()


@pytest.mark.parametrize("name", ["h11", "asyncio", "msgspec/inner", "mine"])
def test_a_folder_that_is_a_package_or_could_be_taken_for_one_is_not_safe(project: Path, name: str) -> None:
    (project / "mine").mkdir()
    (project / "mine" / "__init__.py").touch()
    assert imported_from(project / name) == project


@pytest.mark.parametrize("name", ["out", "my-notes", "../elsewhere"])
def test_a_folder_beside_or_below_without_code_is_safe(project: Path, name: str) -> None:
    (project / name).mkdir()
    assert imported_from((project / name).resolve()) is None


def test_a_folder_of_imports_that_is_kept_from_agents_makes_nothing_unsafe(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path[1:], str(project / ".venv" / "lib")])
    assert imported_from(project, apart=[project / ".venv"]) is None
    assert imported_from(project) == project / ".venv" / "lib"


def test_such_a_folder_can_be_granted_for_reading_only(project: Path) -> None:
    (project / "out").mkdir()
    places = Folders(project.parent / "data", "s", {"project": project, "out": project / "out"})
    places.check("ada", AgentDefinition(folders={"project": Access.READ, "out": Access.WRITE}))
    with pytest.raises(DefinitionError, match=r"'project' .* for writing: this program imports its own code from"):
        places.check("ada", AgentDefinition(folders={"project": Access.WRITE}))


def test_one_that_was_granted_for_writing_before_can_only_be_read(project: Path) -> None:
    places = Folders(project.parent / "data", "s", {"project": project})
    definition = AgentDefinition(folders={"project": Access.WRITE})
    assert places.of("ada", definition, EffectiveLimits()).folders["project"].access is Access.READ


@pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are for Linux")
def test_the_process_that_starts_sandboxes_imports_nothing_from_the_folder_of_the_program(project: Path) -> None:
    mark = project / "mark"
    for name in ("sandlock", "msgspec", "contextlib", "site", "sitecustomize", "ai_whisperer"):
        (project / name).mkdir()
        (project / name / "__init__.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\n")
    job = Job(
        argv=("/bin/true",),
        cwd="/",
        env={},
        readable=(),
        writable=(),
        temporary=str(project),
        network=(),
        wall_seconds=20.0,
        cpu_seconds=20.0,
        memory_bytes=1 << 30,
        processes=100,
        file_bytes=1 << 20,
        output_bytes=1000,
    )

    async def run() -> Ending:
        launcher = Launcher()
        try:
            return (await KeptSandbox("rlimits", launcher).run(job)).ending
        finally:
            await launcher.close()

    assert asyncio.run(run()) is Ending.EXITED
    assert not mark.exists()

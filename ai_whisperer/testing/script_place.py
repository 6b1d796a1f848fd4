"""Plays conversation scripts in a simulated process: in virtual time, killed and started again where they say so."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ai_whisperer.errors import ScriptError
from ai_whisperer.replay.expecting import UnmetError
from ai_whisperer.replay.place import Place
from ai_whisperer.replay.playing import play
from ai_whisperer.replay.script import Script, parse_script, read_script
from ai_whisperer.testing.process import SimulatedProcess
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.project_files import load_tool_files

__tracebackhide__ = True  # pytest shows the line of the test instead


class ProcessPlace(Place):
    """A session in a simulated process."""

    def __init__(self, process: SimulatedProcess) -> None:
        self._process = process

    @property
    def session(self) -> Any:
        return self._process.session

    def check(self, script: Script) -> None:
        """Everything can be done here."""

    async def crash(self) -> None:
        self._process.die()

    async def restart(self) -> None:
        await self._process.open()


def play_in(process: SimulatedProcess, script: Script, *, patience_seconds: float) -> None:
    """Play it; each line in the life that goes on. Raises `UnmetError` for the first that is not as expected."""
    played = play(script, ProcessPlace(process), patience_seconds=patience_seconds)
    try:
        while (line := process.run_in_any_life(anext(played, None))) is not None:
            if line.failure:
                raise UnmetError(f"{script.name}, line {line.line.number}: {line.line.written}\n{line.failure}")
    finally:
        process.run_in_any_life(played.aclose())


def script_of(given: str | Path | Script, folder: Path) -> Script:
    """The script itself, that in a file of the folder, or that in a text of several lines; raises `ScriptError`."""
    if isinstance(given, Script):
        return given
    if isinstance(given, str) and "\n" in given:
        return parse_script(given, folder=folder)
    return read_script(folder / given)


def tools_of(script: Script, folder: Path) -> list[Tool]:
    """The tools in the files that the script names; raises `ScriptError`. The folder is for copies of these files."""
    if not script.tools:
        return []
    copies = folder / "tools"
    shutil.rmtree(copies, ignore_errors=True)
    copies.mkdir()
    for path in script.tools:
        shutil.copy(path, copies)
    files = load_tool_files([copies])
    wrong = next((file.error for file in files if file.error), None)
    if wrong is not None:
        raise ScriptError(f"{script.name}: {wrong}")
    return [each for file in files for each in file.tools]

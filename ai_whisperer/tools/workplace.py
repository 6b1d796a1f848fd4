"""Where the tools of one agent work: its folders, whom they may talk to, and what a process may take."""

from __future__ import annotations

import contextlib
import os
import posixpath
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ai_whisperer.domain.definition import Access
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.errors import ToolError
from ai_whisperer.sandbox.base import Sandbox

OWN = ""
"""The name under which a workplace keeps the agent's own folder."""

OWN_AS_WRITTEN = "own"
"""How paths begin that lead to the own folder where they are relative to another."""

SHARED = "shared"
"""The name of the folder that every session has for its agents together."""

TEMPORARY = "tmp"
"""The folder of a session, beside those of its agents, in which programs have one each for temporary files."""

SETTINGS_FILE = "whisperer.toml"
"""The one of the hidden paths of a project that is a file."""

FILE = "file:"
"""How the names of resources begin that are files."""


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that an agent may use. The path is absolute.

    `hidden` are the paths in it, relative and without `..`, that are not for agents: for its tools and programs there
    is nothing, and nothing can be made there.
    """

    path: Path
    access: Access
    hidden: tuple[str, ...] = ()

    def hides(self, path: str) -> bool:
        """Whether a relative path is hidden, or lies in what is; in any case of letters, as some disks have it."""
        parts = path.casefold().split("/")
        return any(parts[: each.count("/") + 1] == each.casefold().split("/") for each in self.hidden)

    @property
    def hidden_paths(self) -> tuple[str, ...]:
        """What is hidden, by absolute paths."""
        return tuple(str(self.path / each) for each in self.hidden)

    def hidden_identities(self) -> frozenset[tuple[int, int]]:
        """Device and number of what is hidden and there, by which it is known under any name. This asks the disk."""
        found: set[tuple[int, int]] = set()
        for path in self.hidden_paths:
            with contextlib.suppress(OSError):
                found.add(identity(os.stat(path)))
        return frozenset(found)


def identity(status: os.stat_result) -> tuple[int, int]:
    """By what a file is known whatever its name is."""
    return status.st_dev, status.st_ino


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A path in one of the folders: `path` is relative to it, without `..`, and `.` for the folder itself."""

    name: str
    folder: Folder
    path: str

    @property
    def resource(self) -> str:
        """The name by which tools say that they touch the file."""
        return f"{FILE}{self.folder.path / self.path}"


class Workplace(msgspec.Struct, frozen=True, kw_only=True):
    """What of the machine an agent may use. `folders` has its own folder under `OWN`, the granted ones by name.

    Paths are relative to the folder `working`, and programs run there. `sandbox` is what holds its programs; without
    one none may run.
    """

    folders: Mapping[str, Folder]
    network: tuple[str, ...]
    limits: EffectiveLimits
    sandbox: Sandbox | None = None
    working: str = OWN

    @property
    def own(self) -> Folder:
        return self.folders[OWN]

    @property
    def made_by_the_runtime(self) -> tuple[str, ...]:
        """The names of those folders that are there for the agents alone; the others are people's."""
        return tuple(name for name in (OWN, SHARED) if name in self.folders)

    def prepare(self) -> None:
        """Make the folders of the session that are not there yet, and let the own one lead to the others by name.

        A folder from outside is not made: where it is gone, a disk may be missing. This touches the disk: call it in
        a thread.
        """
        for name in self.made_by_the_runtime:
            self.folders[name].path.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, folder in self.folders.items():
            link = self.own.path / name
            if name and not (link.is_symlink() and link.readlink() == folder.path):
                with contextlib.suppress(FileExistsError):  # the agent has something of that name itself
                    link.symlink_to(folder.path, target_is_directory=True)

    def place(self, path: str) -> Place:
        """Where a path leads that a model wrote; raises `ToolError` if it leads out or to what is hidden.

        Nothing is looked up on disk. It is relative to the folder that the agent works in; if its first part is
        the name of another granted folder, to that one. Where it works in one of those, `own/` leads to its own folder.
        """
        if "\0" in path:
            raise ToolError("A path cannot hold the character NUL. Call again with a plain path.")
        parts = posixpath.normpath(path or ".").split("/")
        if posixpath.isabs(path) or parts[0] == "..":
            others = [each or OWN_AS_WRITTEN for each in self.folders if each != self.working]
            names = ", ".join(f"'{each}/'" for each in others) or "no others"
            raise ToolError(
                f"The path {path[:200]!r} leads out of your folders. Use a path relative to your working folder, or "
                f"one that begins with the name of another folder ({names})."
            )
        name, rest = self._led(parts)
        inside = "/".join(rest) or "."
        if self.folders[name].hides(inside):
            raise ToolError(
                f"The path {path[:200]!r} is not for agents: what runs them keeps its own files there. Use another."
            )
        return Place(name=name, folder=self.folders[name], path=inside)

    def _led(self, parts: list[str]) -> tuple[str, list[str]]:
        """The folder that the first part of a path leads to, and the rest."""
        if parts[0] in self.folders and parts[0] != self.working:
            return parts[0], parts[1:]
        if parts[0] == OWN_AS_WRITTEN and self.working != OWN:
            return OWN, parts[1:]
        return self.working, parts

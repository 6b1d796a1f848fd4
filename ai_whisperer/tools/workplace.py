"""Where the tools of one agent work: its folders, whom they may talk to, and what a process may take."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ai_whisperer.definition import Access, EffectiveLimits
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.sandbox.base import Sandbox

OWN = ""
"""The name under which a workplace keeps the agent's own folder."""

SHARED = "shared"
"""The name of the folder that every session has for its agents together."""

FILE = "file:"
"""How the names of resources begin that are files."""


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that an agent may use. The path is absolute."""

    path: Path
    access: Access


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

    `sandbox` is what its programs run in; without one none may run.
    """

    folders: Mapping[str, Folder]
    network: tuple[str, ...]
    limits: EffectiveLimits
    sandbox: Sandbox | None = None

    @property
    def own(self) -> Folder:
        return self.folders[OWN]

    def prepare(self) -> None:
        """Make the folders of the session that are not there yet, and let the own one lead to the others by name.

        A folder from outside is not made: where it is gone, a disk may be missing. This touches the disk: call it in
        a thread.
        """
        for name in (OWN, SHARED):
            if name in self.folders:
                self.folders[name].path.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, folder in self.folders.items():
            link = self.own.path / name
            if name and not (link.is_symlink() and link.readlink() == folder.path):
                with contextlib.suppress(FileExistsError):  # the agent has something of that name itself
                    link.symlink_to(folder.path, target_is_directory=True)

    def place(self, path: str) -> Place:
        """Where a path leads that a model wrote; raises `ToolError` if it leads out. Nothing is looked up on disk.

        It is relative to the agent's own folder; if its first part is the name of a granted folder, to that one.
        """
        if "\0" in path:
            raise ToolError("A path cannot hold the character NUL. Call again with a plain path.")
        parts = posixpath.normpath(path or ".").split("/")
        name = parts[0] if parts[0] and parts[0] in self.folders else OWN
        if posixpath.isabs(path) or parts[0] == "..":
            names = ", ".join(f"'{each}/'" for each in self.folders if each) or "no others"
            raise ToolError(
                f"The path {path[:200]!r} leads out of your folders. Use a path relative to your own folder, or one "
                f"that begins with the name of a granted folder ({names})."
            )
        inside = "/".join(parts[1:] if name else parts) or "."
        return Place(name=name, folder=self.folders[name], path=inside)

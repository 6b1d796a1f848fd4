"""How the nodes that Ray runs are started: their settings, their folder, and what each takes of a machine."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ai_whisperer.setting_sources import without_settings
from ai_whisperer.settings import FIELDS, LoadedSettings

OF_EACH_NODE: Final = frozenset({"data", "store", "node", "advertise", "host", "port", "url", "session"})
"""The settings that are not the same for all nodes, or that their shells know."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What all nodes have in common. Each has its folder below `folder`, on its machine; None is a usual place."""

    cluster_id: str
    settings: Mapping[str, Any]
    folder: str | None = None
    cpus: float = 1.0

    def data_of(self, name: str) -> Path:
        """The data folder of a node on this machine."""
        return Path(self.folder or _usual_folder()) / self.cluster_id / name


def settings_for_nodes(settings: LoadedSettings) -> dict[str, Any]:
    """Those that were set, as plain data."""
    return {
        field.name: _plain(getattr(settings.values, field.name))
        for field in FIELDS
        if field.name not in OF_EACH_NODE and settings.sources[field.name] != "default"
    }


def settings_file(settings: Mapping[str, Any], store: str) -> str:
    """The text of a `whisperer.toml`."""
    return "".join(f"{name} = {_toml(value)}\n" for name, value in {**settings, "store": store}.items())


def environment_of_nodes(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a machine, without what is Ray's, and without settings: all nodes have the same."""
    return {key: value for key, value in without_settings(environment).items() if not key.startswith("RAY_")}


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=str)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items() if each is not None)
        return f"{{{inside}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)


def _usual_folder() -> Path:
    """Where this user keeps what programs need to go on; a temporary folder for one who has no home."""
    named = os.environ.get("XDG_STATE_HOME")
    try:
        state = Path(named) if named else Path.home() / ".local" / "state"
        state.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return _own_temporary_folder()
    return state / "whisperer"


def _own_temporary_folder() -> Path:
    """One that nobody else can have made, to put settings there; raises `PermissionError`."""
    folder = Path(tempfile.gettempdir()) / f"whisperer-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(f"'{folder}' is somebody else's, or others may write there. Name a folder (--folder).")
    return folder

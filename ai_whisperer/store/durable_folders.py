"""Folders that are there after a power cut: the name of a new one is on disk when this returns."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def make_durable(folder: Path, *, mode: int = 0o700) -> None:
    """Make the folder and those above it that are missing; raises `OSError`. What is in it has to be synced by others.

    A file that was synced is lost with its folder, if nobody has synced the one above. One that is there may be new all
    the same: whoever made it may have died before it was synced. Who may not read a folder cannot sync it.
    """
    folder = folder.absolute()
    above = [folder.parent]
    while not above[-1].exists():
        above.append(above[-1].parent)
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for each in above:
        with suppress(PermissionError):
            sync_folder(each)


def sync_folder(folder: Path) -> None:
    """Have the names in the folder on disk; raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Folders that are there after a power cut: the name of a new one is on disk when this returns."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_CANNOT_SYNC_FOLDERS = (errno.EINVAL, errno.ENOTSUP)
"""What file systems say that cannot sync a folder, such as some over a network. They keep names in their own way."""
_MAY_NOT_SYNC = (errno.EACCES, errno.EPERM, errno.EROFS)
"""What is said of a folder that is not ours, or that nobody changes."""


def make_durable(folder: Path) -> None:
    """Make the folder and those above it that are missing; raises `OSError`. What is in it has to be synced by others.

    A file that was synced is lost with its folder, if nobody has synced the one above. One that is there may be new all
    the same: whoever made it may have died before it was synced. Who may not read a folder cannot sync it.
    """
    folder = folder.absolute()
    above = [folder.parent]
    while not above[-1].exists():
        above.append(above[-1].parent)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in above:
        try:
            sync_folder(each)
        except OSError as error:
            if error.errno not in _MAY_NOT_SYNC:
                raise


def sync_folder(folder: Path) -> None:
    """Have the names in the folder on disk, where its file system can do that; raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC_FOLDERS:
            raise
    finally:
        os.close(descriptor)

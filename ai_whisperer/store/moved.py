"""A data folder whose sessions were copied to PostgreSQL: it says so, so that nobody goes on with the old ones."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ai_whisperer.core.moments import moment
from ai_whisperer.errors import StoreError, StoreFullError, StoreMovedError, StoreReadOnlyError
from ai_whisperer.store.durable_folders import sync_folder

MARK: Final = "whisperer.moved"
"""In the data folder: where the sessions are now, without the password, and since when."""


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Where the sessions of a folder were copied to, and when."""

    address: str
    at: float


_DAMAGED: Final = Moved(address="", at=0.0)
"""The sessions are elsewhere, and what was written down of it cannot be read."""


def mark_moved(folder: Path, moved: Moved) -> None:
    """Write down in the folder that its sessions are elsewhere: it is on disk when this returns.

    Raises a `StoreError`; then it may be marked or not, and is to be marked again.
    """
    draft = folder / f"{MARK}.new"
    try:
        with draft.open("wb") as file:
            file.write(msgspec.json.encode(moved))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(folder / MARK)
        sync_folder(folder)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        if error.errno == errno.ENOSPC:
            raise StoreFullError from error
        raise StoreReadOnlyError(
            f"The data folder '{folder}' cannot be written ({error.strerror}) and cannot say that its sessions are in "
            "PostgreSQL, so no server takes these yet. Change its permissions, and copy again: it continues from here."
        ) from error


def find_moved(folder: Path) -> Moved | None:
    """What the folder says of it; None if its sessions are its own. Raises a `StoreError` if that cannot be known."""
    path = folder / MARK
    try:
        return msgspec.json.decode(path.read_bytes(), type=Moved)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except msgspec.MsgspecError:
        return _DAMAGED
    except OSError as error:
        raise StoreError(
            f"'{path}' cannot be read ({error.strerror}), and it tells whether the sessions of the folder were copied "
            "to PostgreSQL. Let it be read by who uses the folder; nothing was changed."
        ) from error


def check_not_moved(folder: Path, *, except_to: str | None = None) -> None:
    """Raise `StoreMovedError` if the sessions of the folder are in PostgreSQL, at any other address than this one."""
    moved = find_moved(folder)
    if moved is None or moved.address == except_to:
        return
    if moved is _DAMAGED:
        told = (
            f"The sessions of the data folder '{folder}' were copied to PostgreSQL, but '{folder / MARK}', which tells "
            "where, is damaged and cannot be read. Give the address"
        )
    else:
        told = (
            f"The sessions of the data folder '{folder}' were copied to {moved.address} on {moment(moved.at)}, and "
            "what has happened since then is there. Give that address"
        )
    raise StoreMovedError(
        f"{told} with --store, or as the setting store. To use what the folder had then: `whisperer serve "
        "--use-folder`, once, or ai_whisperer.use_folder() in Python. Nothing was changed."
    )


def unmark(folder: Path) -> bool:
    """The folder has sessions of its own, after its next sync. Returns whether it was marked; raises `OSError`."""
    try:
        (folder / MARK).unlink()
    except FileNotFoundError:
        return False
    return True

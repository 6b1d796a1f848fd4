"""A data folder whose sessions were copied to PostgreSQL: it says so, so that nobody goes on with the old ones."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ai_whisperer.core.moments import moment
from ai_whisperer.errors import StoreMovedError, StoreReadOnlyError
from ai_whisperer.store.folder_lock import lock_folder

MARK: Final = "whisperer.moved"
"""In the data folder: where the sessions are now, without the password, and since when."""


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Where the sessions of a folder were copied to, and when."""

    address: str
    at: float


def mark_moved(folder: Path, moved: Moved) -> None:
    """Write down in the folder that its sessions are elsewhere; raises `StoreReadOnlyError`."""
    draft = folder / f"{MARK}.new"
    try:
        draft.write_bytes(msgspec.json.encode(moved))
        draft.replace(folder / MARK)
    except OSError as error:
        raise StoreReadOnlyError(
            f"The copy has ended, but the data folder '{folder}' cannot be written ({error.strerror}) and cannot say "
            "that its sessions are in PostgreSQL now. Give each server the setting store."
        ) from error


def find_moved(folder: Path) -> Moved | None:
    """What the folder says of it; None if its sessions are its own. A mark that cannot be read is one, too."""
    try:
        return msgspec.json.decode((folder / MARK).read_bytes(), type=Moved)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.MsgspecError):
        return Moved(address="PostgreSQL", at=0.0)


def check_not_moved(folder: Path) -> None:
    """Raise `StoreMovedError` if the sessions of the folder are in PostgreSQL."""
    moved = find_moved(folder)
    if moved is not None:
        raise StoreMovedError(
            f"The sessions of the data folder '{folder}' were copied to {moved.address} on {moment(moved.at)}, and "
            "what has happened since then is there. Give that address with --store, or as the setting store. To use "
            "what the folder had then: `whisperer serve --use-folder`, once, or ai_whisperer.use_folder() in Python. "
            "Nothing was changed."
        )


def use_folder(data: str | Path) -> bool:
    """Take the sessions of a data folder that were copied to PostgreSQL for its own again, as they were then.

    Returns whether they had been copied. Raises a `StoreError` if the folder is in use or cannot be written.
    """
    folder = Path(data)
    lock = lock_folder(folder)
    try:
        is_marked = find_moved(folder) is not None
        unmark(folder)
    except OSError as error:
        raise StoreReadOnlyError(
            f"The data folder '{folder}' cannot be written ({error.strerror}). Change its permissions."
        ) from error
    finally:
        lock.release()
    return is_marked


def unmark(folder: Path) -> None:
    """The folder has sessions of its own."""
    with suppress(FileNotFoundError):
        (folder / MARK).unlink()

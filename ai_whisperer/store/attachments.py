"""The content of images and files, beside the database: a file for each content, named by its digest.

A content is on disk before the unit that names it is handed to the store. One that no unit came to name, since the
process died or the work was refused, is removed when the session is opened again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Container
from pathlib import Path

from ai_whisperer.store.durable_folders import make_durable, sync_folder

_DRAFT = ".draft-"


class AttachmentFiles:
    """The contents that one session keeps. All of this touches the disk: call it in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, digest: str, data: bytes) -> None:
        """Have the content on disk when this returns; nothing is written if it is there already."""
        path = self._folder / digest
        if _has(path, len(data)):
            return
        make_durable(self._folder)
        draft = self._folder / f"{_DRAFT}{secrets.token_hex(8)}"
        try:
            with draft.open("xb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise
        sync_folder(self._folder)

    def read(self, digest: str) -> bytes | None:
        """The content; None if it is gone, or is not what it was."""
        try:
            data = (self._folder / digest).read_bytes()
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None

    def sweep(self, named: Container[str]) -> list[str]:
        """Remove what nobody names, and drafts; returns what was removed."""
        removed = []
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for name in os.listdir(self._folder):
                if name not in named:
                    with contextlib.suppress(OSError):
                        (self._folder / name).unlink()
                        removed.append(name)
        return removed


def _has(path: Path, size: int) -> bool:
    """Whether the content is there, as a plain file of its size: what was cut short by a crash never got its name."""
    try:
        return path.lstat().st_size == size and path.is_file() and not path.is_symlink()
    except OSError:
        return False

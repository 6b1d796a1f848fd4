"""A file of a log: only its owner reads it, a full one is put aside, and one that cannot be written stops nothing."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path


class LogFile(RotatingFileHandler):
    """Writes a line for each record. The files put aside are `NAME.1` (the latest), `NAME.2` and so on."""

    def __init__(self, path: Path, *, max_bytes: int, backups: int, on_failure: Callable[[str], None]) -> None:
        """`on_failure` is told once, in words, when the file cannot be written."""
        super().__init__(path, maxBytes=max_bytes, backupCount=backups, encoding="utf-8", delay=True)
        self._on_failure = on_failure
        self._is_reported = False

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802 - as the base class calls it
        if self.stream is not None and not os.path.exists(self.baseFilename):
            self.stream.close()  # somebody removed it: it begins again
            self.stream = None
        if self.stream is None:
            self.stream = self._open()
        return os.fstat(self.stream.fileno()).st_size > 0 and bool(super().shouldRollover(record))

    def doRollover(self) -> None:  # noqa: N802 - as the base class calls it
        super().doRollover()
        if self.backupCount == 0:
            os.truncate(self.baseFilename, 0)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - as the base class calls it
        if not self._is_reported:
            self._is_reported = True
            error = sys.exc_info()[1]
            why = getattr(error, "strerror", None) or error
            self._on_failure(f"'{self.baseFilename}' cannot be written: {why}.")

    def close(self) -> None:
        with suppress(OSError):  # what the disk did not take when it was written it does not take now
            super().close()

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return open(self.baseFilename, "a", encoding="utf-8", opener=_opened)


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

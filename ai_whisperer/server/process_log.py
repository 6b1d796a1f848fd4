"""The log of the server's own process: `logs/server.log`, one JSON object a line, and warnings to stderr.

The file is written by a thread of its own, so that whoever logs does not wait for the disk.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ai_whisperer.core.moments import timestamp
from ai_whisperer.core.text import mended
from ai_whisperer.domain.levels import Level
from ai_whisperer.secrets import redacted, redacted_data
from ai_whisperer.server.log_file import LogFile
from ai_whisperer.store.layout import LOGS

SERVER_LOG = "server.log"
_OURS = ("ai_whisperer", "uvicorn", "asyncio")
"""Loggers that the level is meant for. Others, such as those of HTTP clients, tell of their warnings only."""

_EXTRA = ("request_id", "session", "agent")
_MAX_TEXT = 16_384
_MAX_WAITING = 10_000
_MAX_FLUSH_SECONDS = 5.0


class ProcessLog:
    """The handlers that were set up; `close` writes what is left, takes them away and leaves logging as it was."""

    def __init__(self, handlers: Sequence[logging.Handler], level: int) -> None:
        self._handlers = handlers
        root = logging.getLogger()
        self._before = [(logger, logger.level) for logger in (root, *map(logging.getLogger, _OURS))]
        root.setLevel(logging.WARNING)
        for name in _OURS:
            logging.getLogger(name).setLevel(level)
        for handler in handlers:
            root.addHandler(handler)

    def flush(self) -> None:
        """Wait until what was logged so far is written."""
        for handler in self._handlers:
            handler.flush()

    def close(self) -> None:
        for handler in self._handlers:
            logging.getLogger().removeHandler(handler)
            handler.close()
        for logger, level in self._before:
            logger.setLevel(level)


def setup_logging(data: Path, *, level: Level = "info", max_bytes: int = 5_000_000, backups: int = 3) -> ProcessLog:
    """Log this process to `logs/server.log` in the data folder, and warnings also to stderr.

    Everything is redacted. On stderr a record is one line, with its traceback only at the level `debug`. A log that
    cannot be written is told once on stderr, and stops nothing. `request_id`, `session` and `agent`, given to a logger
    as `extra`, are in the line.
    """
    log = _InItsOwnThread(LogFile(data / LOGS / SERVER_LOG, max_bytes=max_bytes, backups=backups, on_failure=_tell))
    log.setFormatter(_JsonLines())
    screen = _Screen(logging.WARNING)
    screen.setFormatter(_OneLine(with_traceback=level == "debug"))
    return ProcessLog([log, screen], logging.getLevelNamesMapping()[level.upper()])


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {name: str(record.__dict__[name]) for name in _EXTRA if record.__dict__.get(name) is not None}
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(redacted_data(entry, _shown)).decode()


def _shown(text: str) -> str:
    text = mended(text)
    return redacted(text) if len(text) <= _MAX_TEXT else f"{redacted(text[: 4 * _MAX_TEXT])[:_MAX_TEXT]}… [cut]"


class _OneLine(logging.Formatter):
    def __init__(self, *, with_traceback: bool) -> None:
        super().__init__()
        self._with_traceback = with_traceback

    def format(self, record: logging.LogRecord) -> str:
        line = " ".join(record.getMessage().split())
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line = f"{line} ({type(error).__name__}: {' '.join(str(error).split())})"
        if record.exc_info and self._with_traceback:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return _shown(f"whisperer: {record.levelname.lower()}: {line}")


class _Screen(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        # Nobody reads stderr any more, or a record makes no sense: there is nowhere left to tell it.
        with suppress(Exception):
            sys.stderr.write(f"{self.format(record)}\n")


class _InItsOwnThread(logging.Handler):
    """A log whose failure stops nothing. Lines are made where they come from and written here.

    When the disk is far too slow the newest lines are lost, and their number is logged.
    """

    def __init__(self, file: LogFile) -> None:
        super().__init__()
        self._file = file
        self._lost = 0
        self._waiting: queue.SimpleQueue[logging.LogRecord | threading.Event | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="whisperer-server-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        if self._waiting.qsize() >= _MAX_WAITING:
            self._lost += 1
            return
        if self._lost:
            lost, self._lost = self._lost, 0
            self._waiting.put(self._line(_record(logging.WARNING, f"{lost} lines are missing: the disk was too slow")))
        self._waiting.put(self._line(record))

    def flush(self) -> None:
        if self._thread.is_alive():
            written = threading.Event()
            self._waiting.put(written)
            written.wait(_MAX_FLUSH_SECONDS)

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join(_MAX_FLUSH_SECONDS)
        super().close()

    def _line(self, record: logging.LogRecord) -> logging.LogRecord:
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001 - anybody's record: one that cannot be told must not stop the one who logs it
            line = self.format(_record(record.levelno, "a record that cannot be told", name=record.name))
        return logging.makeLogRecord({"msg": line})

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            if isinstance(item, threading.Event):
                item.set()
            else:
                self._file.handle(item)
        self._file.close()


def _tell(words: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(redacted(f"whisperer: warning: {words}\n"))


def _record(level: int, message: str, *, name: str = __name__) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": name, "msg": message, "levelno": level, "levelname": logging.getLevelName(level)}
    )

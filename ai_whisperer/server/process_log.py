"""The log of the server's own process: `logs/server.log`, one JSON object a line, and warnings to stderr."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ai_whisperer.core.text import mended
from ai_whisperer.secrets import redacted, redacted_data
from ai_whisperer.server.agent_logs import Level
from ai_whisperer.server.log_files import SERVER_LOG, LogFiles, log_folder, timestamp

_OURS = ("ai_whisperer", "uvicorn", "asyncio")
"""Loggers that the level is meant for. Others, such as those of HTTP clients, tell of their warnings only."""

_EXTRA = ("request_id", "session", "agent")
_MAX_TEXT = 16_384


class ProcessLog:
    """The handlers that were set up; `close` takes them away and leaves logging as it was."""

    def __init__(self, handlers: Sequence[logging.Handler], level: int) -> None:
        self._handlers = handlers
        root = logging.getLogger()
        self._before = [(logger, logger.level) for logger in (root, *map(logging.getLogger, _OURS))]
        root.setLevel(logging.WARNING)
        for name in _OURS:
            logging.getLogger(name).setLevel(level)
        for handler in handlers:
            root.addHandler(handler)

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
    log = _LogFile(log_folder(data) / SERVER_LOG, max_bytes=max_bytes, backups=backups)
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


class _LogFile(logging.Handler):
    """A log whose failure stops nothing, with one word about it."""

    def __init__(self, path: Path, *, max_bytes: int, backups: int) -> None:
        super().__init__()
        self._path = path
        self._files = LogFiles(max_bytes=max_bytes, backups=backups)
        self._is_reported = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001 - anybody's record: one that cannot be told must not stop the one who logs it
            line = self.format(logging.makeLogRecord({"name": record.name, "msg": "a record that cannot be told"}))
        _, error = self._files.append(self._path, [f"{line}\n".encode()])
        if error is not None and not self._is_reported:
            self._is_reported = True
            told = f"whisperer: warning: '{self._path}' cannot be written: {error.strerror or error}.\n"
            with suppress(OSError, ValueError):
                sys.stderr.write(redacted(told))

    def close(self) -> None:
        self._files.close()
        super().close()

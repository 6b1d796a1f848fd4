"""What lies where in a data folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

DATABASE_NAME = "whisperer.db"
LOGS = "logs"
WORK = "work"


def wal_of(database: Path) -> Path:
    """The write-ahead log of the database."""
    return database.with_name(f"{database.name}-wal")


def shm_of(database: Path) -> Path:
    """The index of the write-ahead log, which SQLite makes anew if it is not there."""
    return database.with_name(f"{database.name}-shm")


def traces_in(folder: Path) -> Iterator[Path]:
    """The folders with what agents have left beside the database: their logs, and their files."""
    for name in (LOGS, WORK):
        above = folder / name
        if above.is_dir():
            yield from (each for each in sorted(above.iterdir()) if each.is_dir() and any(each.iterdir()))

"""The files of the database in a data folder."""

from __future__ import annotations

from pathlib import Path

DATABASE_NAME = "whisperer.db"


def wal_of(database: Path) -> Path:
    """The write-ahead log of the database."""
    return database.with_name(f"{database.name}-wal")


def shm_of(database: Path) -> Path:
    """The index of the write-ahead log, which SQLite makes anew if it is not there."""
    return database.with_name(f"{database.name}-shm")

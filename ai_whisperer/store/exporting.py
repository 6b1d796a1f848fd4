"""One session as a file: JSON lines that people can read, a member for each table, and the session's files.

Without a dialect: each store reads its rows at one moment of its database, and writes them with this.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ai_whisperer.choices import nearest
from ai_whisperer.core.file_names import file_name
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.errors import UnknownSessionError
from ai_whisperer.store import archive, tables
from ai_whisperer.store.archive import Progress, TransferReport
from ai_whisperer.store.importing import ROWS, counted
from ai_whisperer.store.layout import WORK
from ai_whisperer.store.tables import OF_A_SESSION, Column, Kind, Row, Table

IN_ORDER_OF_COMING = (tables.TASK, tables.EVENT)
"""Their rows are listed in the order in which they were inserted, so they are written in that order."""


class Export:
    """A file that a session is written to, table by table as in `OF_A_SESSION`. The `report` is there at the end."""

    report: TransferReport

    def __init__(self, writer: archive.Writer, on_progress: Progress) -> None:
        self._writer = writer
        self._on_progress = on_progress
        self.rows: dict[str, int] = {}

    @contextmanager
    def table(self, table: Table[Any]) -> Iterator[Callable[[bytes], None]]:
        """Within, the rows of a table are written with what this brings: a line for each."""
        self.rows[table.name] = 0
        with self._writer.member(f"{ROWS}{table.name}.jsonl") as write:

            def add(line: bytes) -> None:
                write(line + b"\n")
                self.rows[table.name] += 1

            yield add
        self._on_progress(len(self.rows) / len(OF_A_SESSION) * 0.9)


@contextmanager
def exporting(file: Path, record: SessionRecord, *, schema: int, data: Path, on_progress: Progress) -> Iterator[Export]:
    """Within, the rows of the session are written to a file that is not there yet; then its files below `data` are.

    Raises `ArchiveError`.
    """
    with archive.written(
        file, kind="session", schema=schema, made_at=time.time(), session_id=record.id, title=record.title
    ) as writer:
        with writer.member("session.json") as write:
            write(msgspec.json.format(msgspec.json.encode(record), indent=2))
        export = Export(writer, on_progress)
        yield export
        before = len(writer.members)
        writer.add_files(data / WORK / file_name(record.id))
        files = len(writer.members) - before
    on_progress(1.0)
    export.report = TransferReport(session_id=record.id, file=str(file), rows=counted(export.rows), files=files)


def line_of(table: Table[Any], row: Row) -> bytes:
    """A row as people read it: by the names of the columns, without the session."""
    pairs = zip(table.columns, row, strict=True)
    return msgspec.json.encode(
        {column.name: _shown(column, value) for column, value in pairs if column.name != "session_id"}
    )


def line_of_note(note: Notification) -> bytes:
    """The same of a notification, unpacked."""
    return msgspec.json.encode(
        {"seq": note.seq, "name": note.name, "cause": note.cause, "at": note.at, "params": note.params}
    )


def unknown(session_id: str, known: Sequence[str]) -> UnknownSessionError:
    near = nearest(session_id, known)
    meant = "" if near is None else f" Did you mean '{near}'?"
    return UnknownSessionError(
        f"There is no session {session_id!r:.100}.{meant} There are: {', '.join(known) or 'none'}."
    )


def _shown(column: Column, value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no word for it
    if value is None or column.kind is not Kind.JSON:
        return bool(value) if value is not None and column.kind is Kind.BOOLEAN else value
    return msgspec.json.decode(value)

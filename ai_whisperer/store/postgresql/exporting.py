"""One session of a PostgreSQL database as a file, read at one moment, whatever its node does meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
from asyncpg import Connection

from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.errors import StoreVersionError
from ai_whisperer.store import readers, tables
from ai_whisperer.store.archive import Progress, TransferReport
from ai_whisperer.store.exporting import IN_ORDER_OF_COMING, exporting, line_of, line_of_note, unknown
from ai_whisperer.store.packing import Packing
from ai_whisperer.store.postgresql import migrating, queries
from ai_whisperer.store.postgresql.addresses import shown
from ai_whisperer.store.postgresql.connecting import LOST, connect, explained
from ai_whisperer.store.postgresql.statements import names
from ai_whisperer.store.tables import OF_A_SESSION, Table


async def export_from(
    address: str, session_id: str, file: Path, *, data: Path, on_progress: Progress
) -> TransferReport:
    """Write one session to a file that is not there yet; `data` has the files of its agents.

    Raises `UnknownSessionError`, another `StoreError` or an `ArchiveError`.
    """
    try:
        connection = await connect(address, name="whisperer export")
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # files take their time
                return await _export(connection, address, session_id, file, data, on_progress)
        finally:
            await connection.close()
    except (asyncpg.PostgresError, *LOST) as error:
        raise explained(error, address) from error


async def _export(
    connection: Connection, address: str, session_id: str, file: Path, data: Path, on_progress: Progress
) -> TransferReport:
    schema = migrating.latest_version()
    version = await migrating.version_of(connection, address)
    if version != schema:
        raise StoreVersionError(
            f"The database at {shown(address)} has version {version}, and this AI Whisperer exports version {schema}. "
            "Bring it up to date: whisperer store migrate"
        )
    record = await _session_in(connection, session_id)
    packing = Packing([tables.SHAPE.read(tuple(row)) for row in await connection.fetch(queries.SHAPES)])
    with exporting(file, record, schema=schema, data=data, on_progress=on_progress) as export:
        for table in OF_A_SESSION:
            with export.table(table) as add:
                async for line in _lines_of(connection, table, session_id, packing):
                    add(line)
    return export.report


async def _session_in(connection: Connection, session_id: str) -> SessionRecord:
    found = await connection.fetchrow(queries.SESSION, session_id)
    if found is not None:
        return tables.SESSION.read(tuple(found))
    raise unknown(session_id, [str(row[0]) for row in await connection.fetch(queries.SOME_SESSIONS)])


async def _lines_of(
    connection: Connection, table: Table[Any], session_id: str, packing: Packing
) -> AsyncIterator[bytes]:
    order = names(["row"] if table in IN_ORDER_OF_COMING else table.key)
    sql = f'SELECT {queries.columns_of(table)} FROM "{table.name}" WHERE session_id=$1 ORDER BY {order}'  # noqa: S608
    read = readers.notification_reader(packing) if table is tables.NOTIFICATION else None
    async for row in connection.cursor(sql, session_id):
        yield line_of(table, tuple(row)) if read is None else line_of_note(read(tuple(row)))

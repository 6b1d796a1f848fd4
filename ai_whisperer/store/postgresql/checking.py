"""Looking at a PostgreSQL database without changing it: whether it can hold the sessions, and how it does."""

from __future__ import annotations

import asyncpg
import msgspec

from ai_whisperer.store.postgresql import migrating
from ai_whisperer.store.postgresql.addresses import shown
from ai_whisperer.store.postgresql.connecting import LOST, SCHEMA, check_server, connect, explained
from ai_whisperer.store.postgresql.lane import holder_of

_HOSTS = 23
"""The version since which there are nodes."""
_MAY_MAKE = """
SELECT has_database_privilege(current_database(), 'CREATE')
  OR coalesce(has_schema_privilege(to_regnamespace($1), 'CREATE'), false)"""
_SETTINGS = """
SELECT current_setting('fsync')='on', current_setting('synchronous_commit'),
  current_setting('synchronous_standby_names'), pg_database_size(current_database())"""


class DatabaseReport(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to say of a database. `schema` is 0 if there are no tables; `advice` is what a person should do."""

    address: str
    server: str
    schema: int
    latest: int
    sessions: int
    size_bytes: int
    used_by: str | None
    advice: tuple[str, ...]


async def check(address: str) -> DatabaseReport:
    """Look at the database; raises a `StoreError` if it cannot be used."""
    try:
        connection = await connect(address, name="whisperer store check")
        try:
            await check_server(connection, address)
            schema, latest = await migrating.version_of(connection, address), migrating.latest_version()
            may_make = await connection.fetchval(_MAY_MAKE, SCHEMA)
            syncs, commits, standbys, size = await connection.fetchrow(_SETTINGS)
            sessions = await connection.fetchval("SELECT count(*) FROM session") if schema else 0
            advice = []
            if schema < latest and not may_make:
                raise asyncpg.InsufficientPrivilegeError("it may not make tables")
            if schema:
                await migrating.check_ready(connection, address)
            if schema < latest:
                advice.append("`whisperer store migrate` or the next start makes the tables or brings them up to date.")
            if not syncs:
                advice.append("fsync is off: a crash of the machine may destroy the database. Set it to on.")
            if commits == "off":
                advice.append("synchronous_commit is off: AI Whisperer turns it on for what it commits.")
            if not standbys:
                advice.append(
                    "There is no synchronous standby: what is lost with the server's disk is what no backup has."
                )
            version = connection.get_server_version()
            return DatabaseReport(
                address=shown(address),
                server=f"{version.major}.{version.minor}",
                schema=schema,
                latest=latest,
                sessions=sessions,
                size_bytes=size,
                used_by=await _users(connection, schema),
                advice=tuple(advice),
            )
        finally:
            connection.terminate()
    except (asyncpg.PostgresError, *LOST, ValueError) as error:
        raise explained(error, address) from error


async def _users(connection: asyncpg.Connection, schema: int) -> str | None:
    """The nodes that have joined, or who has the database alone; None if nobody has."""
    names = (
        [row[0] for row in await connection.fetch("SELECT name FROM host ORDER BY name")] if schema >= _HOSTS else []
    )
    return f"the nodes {', '.join(names)}" if names else await holder_of(connection)


async def migrate(address: str) -> tuple[int, int]:
    """Make the tables, or bring them up to date; returns the versions before and after. Raises a `StoreError`."""
    try:
        connection = await connect(address, name="whisperer store migrate")
        try:
            await check_server(connection, address)
            return await migrating.migrate(connection, address)
        finally:
            connection.terminate()
    except (asyncpg.PostgresError, *LOST, ValueError) as error:
        raise explained(error, address) from error

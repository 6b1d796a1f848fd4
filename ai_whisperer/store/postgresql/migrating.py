"""Making the tables, and bringing them up to date: numbered scripts, as in SQLite, under a lock."""

from __future__ import annotations

from importlib import resources
from typing import Final

from asyncpg import Connection

from ai_whisperer.errors import StoreCorruptError, StoreInUseError, StoreVersionError
from ai_whisperer.store.postgresql.addresses import shown
from ai_whisperer.store.postgresql.connecting import SCHEMA

MIGRATING: Final = 0x57485351
"""The key of the lock under which tables are changed."""
READY: Final = "ready"
COPYING: Final = "copying"

_META: Final = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE {SCHEMA}.meta (version bigint NOT NULL, state text COLLATE "C" NOT NULL);
INSERT INTO {SCHEMA}.meta VALUES (0, '{READY}');"""  # noqa: S608


def migrations() -> dict[int, str]:
    """The scripts by their numbers, in order."""
    folder = resources.files("ai_whisperer.store.postgresql") / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return {int(name[:4]): (folder / name).read_text(encoding="utf-8") for name in names}


def latest_version() -> int:
    return max(migrations())


async def version_of(connection: Connection, address: str) -> int:
    """The version of the tables; 0 if there are none. Raises a `StoreError` for what is not ours, or too new."""
    has_meta, tables = await connection.fetchrow(
        "SELECT to_regclass($1) IS NOT NULL, (SELECT count(*) FROM pg_tables WHERE schemaname=$2)",
        f"{SCHEMA}.meta",
        SCHEMA,
    )
    if not has_meta:
        if tables:
            raise StoreCorruptError(
                f"The database at {shown(address)} has a schema '{SCHEMA}' of another program. Choose another "
                "database; nothing was changed."
            )
        return 0
    version = int(await connection.fetchval(f"SELECT version FROM {SCHEMA}.meta"))  # noqa: S608
    if version > latest_version():
        raise StoreVersionError(
            f"The database at {shown(address)} has version {version}, this AI Whisperer knows versions up to "
            f"{latest_version()}. Upgrade AI Whisperer; nothing was changed."
        )
    return version


async def migrate(connection: Connection, address: str) -> tuple[int, int]:
    """Apply the migrations that the database does not have yet, all of them or none; returns both versions."""
    latest = latest_version()
    if (known := await version_of(connection, address)) == latest:
        return known, latest
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATING)
        version = await version_of(connection, address)
        if version == 0 and not await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", f"{SCHEMA}.meta"):
            await connection.execute(_META)
        for number, script in migrations().items():
            if number > version:
                await connection.execute(script)
        await connection.execute("UPDATE meta SET version=$1", latest)
    return version, latest


async def check_ready(connection: Connection, address: str) -> None:
    """Raise `StoreInUseError` for a database into which a folder is being copied."""
    if await connection.fetchval("SELECT state FROM meta") == COPYING:
        raise StoreInUseError(
            f"The copy of a data folder into {shown(address)} has not ended. Run `whisperer store copy` again, which "
            "continues where it was."
        )

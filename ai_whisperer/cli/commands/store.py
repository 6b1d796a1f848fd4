"""`whisperer store`: check, migrate and fill a PostgreSQL database that keeps the sessions."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from ai_whisperer.cli.calling import Call, command
from ai_whisperer.errors import InvalidInputError, StoreError
from ai_whisperer.store.postgresql.addresses import EXAMPLE, checked_address

if TYPE_CHECKING:
    from ai_whisperer.store.postgresql.checking import DatabaseReport

AddressArgument = Annotated[
    str | None, typer.Argument(metavar="ADDRESS", help="The database; that of the setting store unless given.")
]


def register(app: typer.Typer) -> None:
    below = typer.Typer(no_args_is_help=True)
    command(below, check, migrate, copy, settings=("store",))
    app.add_typer(
        below, name="store", help="Look after a PostgreSQL database that keeps the sessions: check, migrate, copy."
    )


async def check(call: Call, address: AddressArgument = None) -> None:
    """Look whether the database can keep the sessions, and how it does. Nothing is changed."""
    wanted = _address(call, address)
    report = await _loaded("checking").check(wanted)
    call.output.told(report, _in_words(report))


async def migrate(call: Call, address: AddressArgument = None) -> None:
    """Make the tables, or bring them up to date, all at once or not at all. Each start of a server does it too."""
    wanted = _address(call, address)
    before, after = await _loaded("checking").migrate(wanted)
    told = f"The tables have version {after} already." if before == after else f"From version {before} to {after}."
    call.output.told({"before": before, "after": after}, told)


async def copy(
    call: Call,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The data folder, which nobody uses.")],
    address: AddressArgument = None,
) -> None:
    """Copy the sessions of a data folder into an empty database, and compare both.

    A copy that was cut short continues where it was when it is run again. The folder keeps the files of agents, and is
    marked: a server that is started on it without --store says where its sessions are. Start a server on both then:
    whisperer serve --data FOLDER --store ADDRESS
    """
    wanted = _address(call, address)
    report = await _loaded("copying").copy_folder(folder, wanted)
    rows = sum(report.rows.values())
    start = f"Start: whisperer serve --data {folder} --store ADDRESS"
    if report.was_done:
        told = f"All {rows:,} rows of {report.rows['session']} sessions are at {report.address} already, and the same."
        call.output.told(report, f"{told} {start}")
        return
    mended = f" In {report.mended} texts NUL became U+FFFD." if report.mended else ""
    call.output.told(
        report,
        f"Copied {rows:,} rows of {report.rows['session']} sessions to {report.address}, {report.written:,} of them "
        f"now, and compared them all.{mended} {start}",
    )


def _address(call: Call, given: str | None) -> str:
    wanted = given or call.settings.values.store
    if wanted is None:
        raise InvalidInputError(f"Name the database, or set store. Its address looks like {EXAMPLE}.")
    return checked_address(wanted)


def _loaded(name: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(f"ai_whisperer.store.postgresql.{name}")
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise StoreError("PostgreSQL needs the package asyncpg: pip install 'ai-whisperer[cluster]'") from error


def _in_words(report: DatabaseReport) -> str:
    tables = f"version {report.schema} of the tables" if report.schema else "no tables yet"
    size = f"{report.size_bytes / (1 << 20):,.1f} MiB"
    lines = [
        f"{report.address}: PostgreSQL {report.server}, {tables}, {report.sessions} sessions, {size}.",
        "Nobody has it now." if report.used_by is None else f"It is used by {report.used_by}.",
        *report.advice,
    ]
    return "\n".join(lines)

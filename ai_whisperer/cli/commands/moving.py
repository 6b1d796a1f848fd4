"""`whisperer backup`, `restore`, `export` and `import`: they work on the data folder, whether a server runs or not."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ai_whisperer.cli.amounts import counted, size
from ai_whisperer.cli.calling import Call, command
from ai_whisperer.cli.output import console
from ai_whisperer.core.moments import moment

if TYPE_CHECKING:
    from ai_whisperer.protocol.sessions import ImportedSession
    from ai_whisperer.store.archive import TransferReport


def register(app: typer.Typer) -> None:
    command(app, backup, restore, settings=("data",))
    command(app, export_session, settings=("data", "store", "work"))
    command(app, import_session)


FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The file.")]


def backup(call: Call, file: FileArgument) -> None:
    """Write a backup of the data folder to a file, also while its server runs.

    It has the database as it is at one moment, and the files of agents. The server is not held up. The token is not in
    it.
    """
    from ai_whisperer import backup as make

    with _progress(call, "Backing up") as tell:
        report = make(_folder_of(call, "pg_dump makes a backup of it"), file, on_progress=tell)
    told = f"Wrote {report.file}: {counted(report.sessions, 'session')}, {size(report.size_bytes)}."
    call.output.told(report, told)


def restore(
    call: Call,
    file: FileArgument,
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Set aside what the data folder has.")] = False,
) -> None:
    """Put a backup into a data folder that has no database, or with --replace in place of what it has.

    Nobody may use the folder meanwhile: stop its server first.
    """
    from ai_whisperer import restore as bring

    data = _folder_of(call, "pg_restore brings a backup of it back").resolve()
    with _progress(call, "Restoring") as tell:
        report = bring(file, data, replace=replace, on_progress=tell)
    aside = "" if report.set_aside is None else f" What was there is in {report.set_aside}."
    sessions = counted(report.sessions, "session")
    start = f"Start: whisperer serve --data {shlex.quote(str(data))}"
    call.output.told(report, f"Restored {sessions} of {moment(report.made_at)} into {data}.{aside} {start}")


def export_session(
    call: Call,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session.")],
    file: FileArgument,
) -> None:
    """Write one session to a file that people can read, with its files.

    The file is a zip with JSON lines. A server may run meanwhile.
    """
    from ai_whisperer import export_session as write

    values = call.settings.values
    if values.store is None:
        _check_here(values.data, "give its address with --store")
    with _progress(call, "Exporting") as tell:
        report = write(values.work or values.data, session, file, store=values.store, on_progress=tell)
    call.output.told(report, f"Wrote session {report.session_id} to {report.file}: {_contents(report)}.")


async def import_session(
    call: Call,
    file: FileArgument,
    *,
    new_id: Annotated[
        str | None, typer.Option("--as", metavar="ID", help="The id that it gets; its own unless given.")
    ] = None,
) -> None:
    """Bring in a session that was exported.

    A server that runs on the data folder does it; if none does, the folder is opened for it.
    """
    report = await imported(call, file, new_id=new_id)
    call.output.told(report, f"Imported session {report.session_id}: {_contents(report)}.")


async def imported(call: Call, file: Path, *, new_id: str | None) -> ImportedSession | TransferReport:
    """Bring in a session through the server that has the data folder; if none has, into the folder itself."""
    import asyncio

    from ai_whisperer.store.folder_lock import FolderLock

    data = call.settings.values.data
    if call.settings.values.url is None and FolderLock.holder(data) is None:
        _folder_of(call, "start its server, which imports")
    if call.settings.values.url is not None or FolderLock.holder(data) is not None:
        async with call.server() as client:
            return await client.import_session(os.path.abspath(file), session_id=new_id)  # noqa: ASYNC240 - no disk
    from ai_whisperer import import_into_folder

    return await asyncio.to_thread(lambda: import_into_folder(data, file, session_id=new_id))


def _contents(report: ImportedSession | TransferReport) -> str:
    return f"{counted(sum(report.rows.values()), 'row')}, {counted(report.files, 'file')}"


def _folder_of(call: Call, instead: str) -> Path:
    """The data folder, if that keeps the sessions; raises `StoreError` if PostgreSQL does."""
    from ai_whisperer.errors import StoreError

    if call.settings.values.store is not None:
        raise StoreError(f"PostgreSQL keeps the sessions here (the setting store), and not the data folder: {instead}.")
    _check_here(call.settings.values.data, instead)
    return call.settings.values.data


def _check_here(data: Path, instead: str) -> None:
    """Raise `StoreError` if a server runs in the folder and keeps its sessions elsewhere."""
    from ai_whisperer.errors import StoreError
    from ai_whisperer.server.address import find_address

    server = find_address(data)
    if server is not None and server.in_postgresql:
        raise StoreError(
            f"The server of '{data}' (process {server.pid}) keeps its sessions in PostgreSQL, and not in the data "
            f"folder: {instead}. Nothing was changed."
        )


@contextmanager
def _progress(call: Call, what: str) -> Iterator[Callable[[float], object]]:
    """A bar for people at a terminal; nothing for others."""
    if call.output.as_json or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import Progress

    with Progress(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda part: bar.update(task, completed=part)

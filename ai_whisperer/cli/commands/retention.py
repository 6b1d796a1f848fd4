"""`whisperer prune` and `storage`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ai_whisperer.cli.amounts import counted, size
from ai_whisperer.cli.calling import Following, command
from ai_whisperer.cli.output import Column
from ai_whisperer.core.moments import moment
from ai_whisperer.core.retention import age_in_seconds
from ai_whisperer.domain.retention import Erased, PruneReport, StorageReport, StoredPart


def register(app: typer.Typer) -> None:
    command(app, prune, storage)


async def prune(
    call: Following,
    *,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="How long what has ended is kept: 30d, 8w, 1h 30min.")
    ] = "30d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would go.")] = False,
    everywhere: Annotated[
        bool, typer.Option("--all", help="All your sessions, not only the one that is meant.")
    ] = False,
) -> None:
    """Erase the content of what ended longer ago, and the log before that; the database becomes smaller.

    Open work, dead letters, your mail until it is archived, and all that was used stay.
    """
    age_in_seconds(older_than)
    names = [each.id for each in await call.client.list_sessions()] if everywhere else [None]
    reports = []
    for name in names:
        client = call.client if name is None else call.client.session(name)
        report = await client.prune(older_than=older_than, dry_run=dry_run)
        reports.append(report)
        if not call.output.as_json:
            call.output.text(_told(report))
    if call.output.as_json:
        call.output.json(reports if everywhere else reports[0])


async def storage(call: Following) -> None:
    """Show how much room the session takes, by what is in it, and the database of all sessions."""
    report = await call.client.storage()
    call.output.table(report.parts, PARTS, of=report)
    if not call.output.as_json:
        call.output.text(_sizes(report))


def _told(report: PruneReport) -> str:
    what = _counted(report.erased)
    if not report.erased:
        return f"{report.session_id}: nothing ended before {moment(report.before)} is left."
    verb = "would be erased" if report.dry_run else "erased"
    log = f"The log {'would begin' if report.dry_run else 'begins'} at {report.first_seq:,}."
    return f"{report.session_id}: {verb} before {moment(report.before)}: {what}. {log}"


def _counted(erased: Erased) -> str:
    counts = ((getattr(erased, name), name) for name in Erased.__struct_fields__)
    return ", ".join(counted(count, name.removesuffix("s")) for count, name in counts if count)


def _sizes(report: StorageReport) -> str:
    return (
        f"Session {report.session_id}: {size(report.size_bytes)}; its log has {report.first_seq:,} to "
        f"{report.last_seq:,}. The database of all sessions: {size(report.database_bytes)}, of which "
        f"{size(report.free_bytes)} hold nothing."
    )


PARTS: Sequence[Column[StoredPart]] = (
    Column("WHAT", lambda each: each.name, whole=True),
    Column("ROWS", lambda each: f"{each.rows:,}", right=True),
    Column("SIZE", lambda each: size(each.size_bytes), right=True),
)

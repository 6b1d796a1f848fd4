"""`whisperer approvals`: tool calls that wait for a person's approval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ai_whisperer.cli.arguments import LimitOption
from ai_whisperer.cli.calling import Call, command, group
from ai_whisperer.cli.output import Column
from ai_whisperer.cli.printable import readable_arguments
from ai_whisperer.cli.short_ids import whole_id
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.domain.sessions import IdKind

ApprovalId = Annotated[
    str, typer.Argument(metavar="ID", help="The id, as `whisperer approvals` shows it, or how it begins.")
]


def register(app: typer.Typer) -> None:
    below = group(app, "approvals", help="Show the tool calls that wait for your approval; approve or refuse one.")(
        list_approvals
    )
    command(below, "show")(show)
    command(below, "approve")(approve)
    command(below, "refuse")(refuse)


async def list_approvals(
    call: Call,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Include those already decided, newest first.")] = False,
    limit: LimitOption = 100,
) -> None:
    """Show the tool calls that wait for approval, the oldest first."""
    async with call.server() as client:
        found = await client.list_approvals(state=None if everything else ApprovalState.PENDING, limit=limit)
    call.output.table(found, APPROVALS, empty="Nothing waits for your approval.", limit=limit)


async def show(call: Call, approval: ApprovalId) -> None:
    """Show a tool call that waits: its exact arguments, with what could steer a terminal shown as escapes."""
    async with call.server() as client:
        found = await client.get_approval(await whole_id(client, IdKind.APPROVAL, approval))
    call.output.details(
        found,
        [
            ("approval", found.id),
            ("state", found.state),
            ("agent", found.agent_id),
            ("task", found.task_id),
            ("tool", found.tool),
            ("digest", found.digest),
            ("requested", moment(found.requested_at)),
            ("decided", moment(found.decided_at)),
            ("by", found.decided_by or ""),
            ("reason", found.reason),
        ],
        body=readable_arguments(found.arguments),
    )


async def approve(
    call: Call,
    approval: ApprovalId,
    *,
    digest: Annotated[
        str | None,
        typer.Option("--digest", metavar="TEXT", help="Only if the call has this digest, as `show` prints it."),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")] = "",
) -> None:
    """Allow a tool call, exactly as it is: its arguments cannot be changed. It runs as soon as its agent may."""
    async with call.server() as client:
        approval = await whole_id(client, IdKind.APPROVAL, approval)
        record = await client.approve(approval, digest=digest, reason=reason)
    call.output.told(record, f"{record.agent_id} may call {record.tool} with {readable_arguments(record.arguments)}")


async def refuse(
    call: Call,
    approval: ApprovalId,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; the agent is told.")] = "",
) -> None:
    """Refuse a tool call: the agent is told so, with your reason, and continues without it."""
    async with call.server() as client:
        approval = await whole_id(client, IdKind.APPROVAL, approval)
        record = await client.refuse(approval, reason=reason)
    call.output.told(record, f"{record.agent_id} may not call {record.tool}, and is told so.")


APPROVALS: Sequence[Column[ApprovalRecord]] = (
    Column("APPROVAL", lambda each: each.id, whole=True),
    Column("STATE", lambda each: each.state),
    Column("AGENT", lambda each: each.agent_id),
    Column("TOOL", lambda each: each.tool, whole=True),
    Column("SINCE", lambda each: moment(each.requested_at)),
    Column("ARGUMENTS", lambda each: each.arguments),
)

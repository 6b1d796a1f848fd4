"""`whisperer approvals`: tool calls that wait for a person's approval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ai_whisperer.cli.arguments import LimitOption, reason_option
from ai_whisperer.cli.calling import Connected, group
from ai_whisperer.cli.output import Column
from ai_whisperer.cli.printable import readable_arguments
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.domain.sessions import IdKind

ApprovalId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The id, as `whisperer approvals` shows it, or how it begins."),
    IdKind.APPROVAL,
]


def register(app: typer.Typer) -> None:
    told = "Show the tool calls that wait for your approval; approve or refuse one."
    group(app, "approvals", list_approvals, show, approve, refuse, help=told)


async def list_approvals(
    call: Connected,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Include those already decided, newest first.")] = False,
    limit: LimitOption = 100,
) -> None:
    """Show the tool calls that wait for approval, the oldest first."""
    found = await call.client.list_approvals(state=None if everything else ApprovalState.PENDING, limit=limit)
    call.output.table(found, APPROVALS, empty="Nothing waits for your approval.", limit=limit)


async def show(call: Connected, approval: ApprovalId) -> None:
    """Show a tool call that waits: its exact arguments, with what could steer a terminal shown as escapes."""
    found = await call.client.get_approval(approval)
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
    call: Connected,
    approval: ApprovalId,
    *,
    digest: Annotated[
        str | None,
        typer.Option("--digest", metavar="TEXT", help="Only if the call has this digest, as `show` prints it."),
    ] = None,
    reason: Annotated[str, reason_option("it is kept")] = "",
) -> None:
    """Allow a tool call, exactly as it is: its arguments cannot be changed. It runs as soon as its agent may."""
    record = await call.client.approve(approval, digest=digest, reason=reason)
    call.output.told(record, f"{record.agent_id} may call {record.tool} with {readable_arguments(record.arguments)}")


async def refuse(
    call: Connected, approval: ApprovalId, *, reason: Annotated[str, reason_option("the agent is told")] = ""
) -> None:
    """Refuse a tool call: the agent is told so, with your reason, and continues without it."""
    record = await call.client.refuse(approval, reason=reason)
    call.output.told(record, f"{record.agent_id} may not call {record.tool}, and is told so.")


APPROVALS: Sequence[Column[ApprovalRecord]] = (
    Column("APPROVAL", lambda each: each.id, whole=True),
    Column("STATE", lambda each: each.state),
    Column("AGENT", lambda each: each.agent_id),
    Column("TOOL", lambda each: each.tool, whole=True),
    Column("SINCE", lambda each: moment(each.requested_at)),
    Column("ARGUMENTS", lambda each: each.arguments),
)

"""`whisperer mail`: the person's inbox, and mail to agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ai_whisperer.cli.arguments import LimitOption, PriorityOption, once_option, text_argument
from ai_whisperer.cli.calling import Connected, group
from ai_whisperer.cli.connecting import AgentName, agent_names
from ai_whisperer.cli.output import Column
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.mail import USER, MailRecord, MailState
from ai_whisperer.domain.sessions import IdKind
from ai_whisperer.domain.tasks import Priority

if TYPE_CHECKING:
    from ai_whisperer.client import Client

MailId = Annotated[
    str, typer.Argument(metavar="MAIL", help="The id of a mail in the inbox, or how it begins."), IdKind.MAIL
]
SentOnceId = Annotated[str | None, once_option("sent")]
Body = Annotated[str, text_argument("BODY", "The text")]

_SEARCHED = (50, 10_000)


def register(app: typer.Typer) -> None:
    told = "Show what agents have written to you; write to them."
    group(app, "mail", list_mail, send, reply, read, archive, help=told)


async def list_mail(
    call: Connected,
    *,
    owner: Annotated[
        str,
        typer.Option(
            "--agent", "-a", metavar="AGENT", help="Show the mailbox of this agent.", autocompletion=agent_names
        ),
    ] = USER,
    sent: Annotated[bool, typer.Option("--sent", help="Show what was sent instead of what came.")] = False,
    limit: LimitOption = 100,
) -> None:
    """Show what agents have written to you, the newest first."""
    mails = await (call.client.sent_mail if sent else call.client.mailbox)(owner, limit=limit)
    empty = "No mail was sent." if sent else "The mailbox is empty."
    call.output.table(mails, SENT if sent else MAILS, empty=empty, limit=limit)


async def send(
    call: Connected,
    agent: AgentName,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT")],
    body: Body,
    *,
    priority: PriorityOption = Priority.NORMAL,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="NAME", help="Mails of one thread share their history.")
    ] = None,
    mail_id: SentOnceId = None,
) -> None:
    """Write to an agent."""
    mail = await call.client.send_mail(agent, subject, body, priority=priority, thread_id=thread, mail_id=mail_id)
    call.output.told(mail, f"Mail {mail.id} was sent to {mail.recipient}.")


async def reply(
    call: Connected,
    mail: MailId,
    body: Body,
    *,
    priority: PriorityOption = Priority.NORMAL,
    reply_id: SentOnceId = None,
) -> None:
    """Answer a mail in the inbox."""
    answer = await call.client.reply_mail(mail, body, priority=priority, reply_id=reply_id)
    call.output.told(answer, f"Mail {answer.id} was sent to {answer.recipient}.")


async def read(call: Connected, mail: MailId) -> None:
    """Show a mail in the inbox, and mark it as read."""
    known = await _find(call.client, mail)
    if known is None or known.state in (MailState.QUEUED, MailState.DELIVERED):
        known = await call.client.mark_mail(mail, MailState.READ)
    call.output.details(
        known,
        [
            ("mail", known.id),
            ("from", known.sender),
            ("subject", known.subject),
            ("priority", known.priority),
            ("state", known.state),
            ("sent", moment(known.created_at)),
            ("answers", known.reply_to or ""),
        ],
        body=known.body,
    )


async def _find(client: Client, mail_id: str) -> MailRecord | None:
    """The mail in the inbox, if it is there: most often it is one of the newest."""
    for limit in _SEARCHED:
        mails = await client.mailbox(USER, limit=limit)
        known = next((each for each in mails if each.id == mail_id), None)
        if known is not None or len(mails) < limit:
            return known
    return None


async def archive(call: Connected, mail: MailId) -> None:
    """Put a mail of the inbox away."""
    record = await call.client.mark_mail(mail, MailState.ARCHIVED)
    call.output.told(record, f"Mail {record.id} is {record.state}.")


def _columns(whom: Column[MailRecord]) -> Sequence[Column[MailRecord]]:
    return (
        Column("MAIL", lambda each: each.id, whole=True),
        whom,
        Column("PRIORITY", lambda each: each.priority),
        Column("STATE", lambda each: each.state),
        Column("SENT", lambda each: moment(each.created_at)),
        Column("SUBJECT", lambda each: each.subject),
    )


MAILS = _columns(Column("FROM", lambda each: each.sender, whole=True))
SENT = _columns(Column("TO", lambda each: each.recipient, whole=True))

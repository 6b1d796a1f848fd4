"""The tools for mail: to send it, to read it, to answer it, and to ask and wait for the answer."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ai_whisperer.core.mailbox import as_text
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.tasks import Priority
from ai_whisperer.tools.desk import Arguments, CoordinationTool, Desk, Wanted

Seconds = Annotated[float, msgspec.Meta(gt=0)]


class SendMail(Arguments, frozen=True, kw_only=True):
    to_agent: str
    subject: str
    body: str
    priority: Priority = Priority.NORMAL


class SendMailWithSwitch(SendMail, frozen=True, kw_only=True):
    timeout_seconds: Seconds | None = None


class ReplyMail(Arguments, frozen=True, kw_only=True):
    mail_id: str
    body: str
    priority: Priority = Priority.NORMAL


class CheckMail(Arguments, frozen=True, kw_only=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    include_read: bool = False


def _send_mail(desk: Desk, given: SendMail) -> ToolResult:
    mail = desk.send_mail(to=given.to_agent, subject=given.subject, body=given.body, priority=given.priority)
    return ToolResult(content=f"Sent to {mail.recipient} as mail {mail.id}.", mails_sent=1)


def _send_mail_with_switch(desk: Desk, given: SendMailWithSwitch) -> None:
    desk.ask(
        to=given.to_agent,
        subject=given.subject,
        body=given.body,
        priority=given.priority,
        timeout_seconds=given.timeout_seconds,
    )


def _reply_mail(desk: Desk, given: ReplyMail) -> ToolResult:
    mail = desk.reply_mail(mail_id=given.mail_id, body=given.body, priority=given.priority)
    return ToolResult(content=f"Replied to {mail.recipient} as mail {mail.id}.", mails_sent=1)


def _check_mail(desk: Desk, given: CheckMail) -> ToolResult:
    mails, left = desk.take_mail(given.limit)
    to_answer = desk.mail_to_answer()
    parts = [] if to_answer is None else [f"The mail that you were given and have not answered:\n{as_text(to_answer)}"]
    if mails:
        heading = f"{len(mails)} new mail(s)" + (f", {left} more waiting." if left else ".")
        parts += [heading, *map(as_text, mails)]
    else:
        parts.append("No new mail.")
    earlier = desk.earlier_mail(given.limit) if given.include_read else ()
    if earlier:
        parts += [f"{len(earlier)} mail(s) that you have read before.", *map(as_text, earlier)]
    return ToolResult(content="\n\n---\n".join(parts), mails=tuple(mail.id for mail in mails))


MAIL_TOOLS = (
    CoordinationTool(
        "send_mail",
        "Send mail to another agent, or to 'user' for the person. You do not wait; an answer comes as mail.",
        SendMail,
        _send_mail,
    ),
    CoordinationTool(
        "check_mail",
        "Read your unread mail, the most urgent first; with include_read also the latest that you have read before.",
        CheckMail,
        _check_mail,
        wants=lambda given: Wanted(mailbox=given.limit if given.include_read else 0),
    ),
    CoordinationTool(
        "reply_mail",
        "Answer a mail that you received.",
        ReplyMail,
        _reply_mail,
        wants=lambda given: Wanted(mail_id=given.mail_id),
    ),
    CoordinationTool(
        "send_mail_with_switch",
        "Ask another agent and wait: it answers at once, and its reply is the result of this call. For a short "
        "question whose answer you need to continue.",
        SendMailWithSwitch,
        _send_mail_with_switch,
    ),
)

"""The tools for mail: to send, read and answer it; and to ask an agent or the person and wait for the answer."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ai_whisperer.core.mailbox import as_text
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.tasks import Priority
from ai_whisperer.tools.brief_schema import Unsaid
from ai_whisperer.tools.desk import Arguments, CoordinationTool, Desk, Wanted

Seconds = Annotated[float, msgspec.Meta(gt=0)]


class SendMail(Arguments, frozen=True, kw_only=True):
    """Mail an agent, or the person ('user')."""

    to_agent: str
    subject: str
    body: str
    priority: Priority = Priority.NORMAL

    def run(self, desk: Desk) -> ToolResult | None:
        mail = desk.send_mail(to=self.to_agent, subject=self.subject, body=self.body, priority=self.priority)
        return ToolResult(content=f"Sent to {mail.recipient} as mail {mail.id}.", mails_sent=1)


class SendMailWithSwitch(SendMail, frozen=True, kw_only=True):
    """Ask an agent a short question and wait for the answer."""

    priority: Unsaid[Priority] = Priority.NORMAL
    timeout_seconds: Seconds | None = None

    def run(self, desk: Desk) -> None:
        desk.ask(
            to=self.to_agent,
            subject=self.subject,
            body=self.body,
            priority=self.priority,
            timeout_seconds=self.timeout_seconds,
        )


class AskUser(Arguments, frozen=True, kw_only=True):
    """Ask the person and wait for the answer, in a form if you give a flat JSON Schema."""

    question: str
    schema: dict[str, Any] | None = None
    timeout_seconds: Seconds | None = None

    def run(self, desk: Desk) -> None:
        desk.ask_user(question=self.question, schema=self.schema, timeout_seconds=self.timeout_seconds)


class ReplyMail(Arguments, frozen=True, kw_only=True):
    """Answer a mail you got."""

    mail_id: str
    body: str
    priority: Unsaid[Priority | None] = None

    def wants(self) -> Wanted:
        return Wanted(mail_id=self.mail_id)

    def run(self, desk: Desk) -> ToolResult:
        mail = desk.reply_mail(mail_id=self.mail_id, body=self.body, priority=self.priority)
        return ToolResult(content=f"Replied to {mail.recipient} as mail {mail.id}.", mails_sent=1)


class CheckMail(Arguments, frozen=True, kw_only=True):
    """Read your mail, most urgent first."""

    limit: Unsaid[Annotated[int, msgspec.Meta(ge=1, le=100)]] = 10
    include_read: bool = False

    def wants(self) -> Wanted:
        return Wanted(mailbox=self.limit if self.include_read else 0)

    def run(self, desk: Desk) -> ToolResult:
        mails, left = desk.take_mail(self.limit)
        to_answer = desk.mail_to_answer()
        parts = []
        if to_answer is not None:
            parts.append(f"The mail that you were given and have not answered:\n{as_text(to_answer)}")
        if mails:
            heading = f"{len(mails)} new mail(s)" + (f", {left} more waiting." if left else ".")
            parts += [heading, *map(as_text, mails)]
        else:
            parts.append("No new mail.")
        earlier = desk.earlier_mail(self.limit) if self.include_read else ()
        if earlier:
            parts += [f"{len(earlier)} mail(s) that you have read before.", *map(as_text, earlier)]
        return ToolResult(content="\n\n---\n".join(parts), mails=tuple(mail.id for mail in mails))


ASK_USER_TOOL = CoordinationTool("ask_user", AskUser)
MAIL_TOOLS = (
    CoordinationTool("send_mail", SendMail),
    CoordinationTool("check_mail", CheckMail),
    CoordinationTool("reply_mail", ReplyMail),
    CoordinationTool("send_mail_with_switch", SendMailWithSwitch),
)

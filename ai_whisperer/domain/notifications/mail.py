"""Notifications about mail."""

from __future__ import annotations

from typing import Self

import msgspec
from msgspec import UNSET, UnsetType

from ai_whisperer.domain.mail import MailRecord, MailState
from ai_whisperer.domain.notifications.base import OfAgent, Told, notification
from ai_whisperer.domain.tasks import Priority


@notification("mail.sent", "[replyTo?replied to|mailed] {@recipient}[: {subject}]")
class MailSent(Told, frozen=True, kw_only=True):
    """A mail was accepted.

    `given_to` is the task that waits for it and has it at once; without one it waits in the mailbox.
    """

    who = "{@sender}"
    mail_id: str
    thread_id: str
    sender: str
    sequence: int
    recipient: str
    subject: str
    priority: Priority
    reply_to: str | None
    given_to: str | UnsetType = UNSET

    @classmethod
    def of(cls, mail: MailRecord) -> Self:
        return cls(
            mail_id=mail.id,
            thread_id=mail.thread_id,
            sender=mail.sender,
            sequence=mail.sequence,
            recipient=mail.recipient,
            subject=mail.subject,
            priority=mail.priority,
            reply_to=mail.reply_to,
            given_to=UNSET if mail.task_id is None else mail.task_id,
        )


@notification(
    "mail.state_changed",
    "was [state=dead?moved to the dead letters|state=replied?replied to|{state}]",
    level="debug",
    watched=False,
)
class MailChanged(OfAgent, frozen=True, kw_only=True):
    """A mail was delivered, read, replied to, archived or moved to the dead letters."""

    who = "A mail to {@agentId}"
    mail_id: str
    before: MailState | UnsetType = msgspec.field(name="from", default=UNSET)
    state: MailState
    task_id: str | None

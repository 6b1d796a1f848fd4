"""The methods `mail.*`: writing to agents, and the inbox of the user."""

from __future__ import annotations

from typing import Any

import msgspec

from ai_whisperer.domain.mail import USER, MailRecord, MailState
from ai_whisperer.domain.tasks import Priority
from ai_whisperer.protocol.method import InSession, Method


class MailList(msgspec.Struct, frozen=True):
    """Mails, the newest first."""

    mails: list[MailRecord]


class SendMail(InSession, frozen=True, kw_only=True):
    """Send mail from the user to an agent. When this is answered the mail is on disk.

    A caller that gives a `mailId` may call again with the same content: the mail is sent once.
    """

    to: str
    subject: str
    body: str
    priority: Priority = Priority.NORMAL
    thread_id: str | None = None
    mail_id: str | None = None


class ReplyMail(InSession, frozen=True, kw_only=True):
    """Answer a mail in the user's inbox. When this is answered the reply is on disk.

    A caller that gives a `replyId`, the id of the mail that is sent, may call again with the same content: the reply is
    sent once.
    """

    mail_id: str
    body: str
    priority: Priority = Priority.NORMAL
    reply_id: str | None = None


class ListMail(InSession, frozen=True, kw_only=True):
    """The mails of an agent or, by default, of the user, the newest first."""

    owner: str = USER
    limit: int = 100


class ListSentMail(InSession, frozen=True, kw_only=True):
    """The mails that an agent or, by default, the user has sent, the newest first."""

    owner: str = USER
    limit: int = 100


class MarkMail(InSession, frozen=True, kw_only=True):
    """Mark a mail in the user's inbox as `read` or `archived`."""

    mail_id: str
    state: MailState


SEND_MAIL = Method("mail.send", SendMail, MailRecord)
REPLY_MAIL = Method("mail.reply", ReplyMail, MailRecord)
LIST_MAIL = Method("mail.list", ListMail, MailList)
LIST_SENT_MAIL = Method("mail.listSent", ListSentMail, MailList)
MARK_MAIL = Method("mail.mark", MarkMail, MailRecord)

METHODS: tuple[Method[Any, Any], ...] = (
    SEND_MAIL,
    REPLY_MAIL,
    LIST_MAIL,
    LIST_SENT_MAIL,
    MARK_MAIL,
)

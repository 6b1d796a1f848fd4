"""The methods `mail.*`: writing to agents, and the inbox of the user."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.mail import USER, MailRecord, MailState
from ai_whisperer.domain.tasks import Priority
from ai_whisperer.protocol.method import Effect, InSession, Method, Params


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


class NewMail(Params, frozen=True, kw_only=True):
    """A mail that is to be sent, under an id that the caller chooses."""

    to: str
    subject: str
    body: str
    mail_id: str
    priority: Priority = Priority.NORMAL
    thread_id: str | None = None


class SendMails(InSession, frozen=True, kw_only=True):
    """Send many mails from the user to agents at once, all of them or, if one cannot be sent, none.

    When this is answered they are on disk. At most 1,000 go at once. A caller may call again with the same `mailId` and
    content: each mail is sent once.
    """

    mails: list[NewMail]


class SentMails(msgspec.Struct, frozen=True):
    """Mails, in the order in which they were given."""

    mails: list[MailRecord]


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
    owner: str = USER
    limit: int = 100


class MarkMail(InSession, frozen=True, kw_only=True):
    """Mark a mail in the user's inbox as `read` or `archived`."""

    mail_id: str
    state: MailState


SEND_MAIL = Method("mail.send", SendMail, MailRecord, "send_mail", once="mail_id")
SEND_MAILS = Method("mail.sendMany", SendMails, SentMails, "send_mails", Effect.REPEATS)
REPLY_MAIL = Method("mail.reply", ReplyMail, MailRecord, "reply_mail", once="reply_id")
LIST_MAIL = Method("mail.list", ListMail, MailList, "mailbox", Effect.READS)
LIST_SENT_MAIL = Method("mail.listSent", ListMail, MailList, "sent_mail", Effect.READS)
MARK_MAIL = Method("mail.mark", MarkMail, MailRecord, "mark_mail")

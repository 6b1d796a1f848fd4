"""Answers to `mail.*`."""

from __future__ import annotations

from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.protocol import mail
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.calls import Caller, answers, reads


@answers(mail.SEND_MAIL)
async def send_mail(caller: Caller, params: mail.SendMail) -> MailRecord:
    session = await caller.session(params.session_id)
    return await session.send_mail(
        params.to,
        params.subject,
        params.body,
        priority=params.priority,
        thread_id=params.thread_id,
        mail_id=params.mail_id,
    )


@answers(mail.REPLY_MAIL)
async def reply_mail(caller: Caller, params: mail.ReplyMail) -> MailRecord:
    session = await caller.session(params.session_id)
    return await session.reply_mail(params.mail_id, params.body, priority=params.priority, reply_id=params.reply_id)


@reads(mail.LIST_MAIL)
def list_mail(session: AsyncAgentSessionManager, params: mail.ListMail) -> mail.MailList:
    return mail.MailList(session.mailbox(params.owner, limit=params.limit))


@reads(mail.LIST_SENT_MAIL)
def list_sent_mail(session: AsyncAgentSessionManager, params: mail.ListSentMail) -> mail.MailList:
    return mail.MailList(session.sent_mail(params.owner, limit=params.limit))


@answers(mail.MARK_MAIL)
async def mark_mail(caller: Caller, params: mail.MarkMail) -> MailRecord:
    return await (await caller.session(params.session_id)).mark_mail(params.mail_id, params.state)

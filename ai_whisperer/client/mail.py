"""Mail and events from outside."""

from __future__ import annotations

from typing import Any

from ai_whisperer.client.base import ANY_SIZE, AgentRef, ClientBase, agent_name
from ai_whisperer.core.mailbox import check_mail_text, mark_of, priority_of
from ai_whisperer.core.paging import checked_id, checked_limit
from ai_whisperer.core.signals import check_event_data, check_event_name
from ai_whisperer.core.text import check_text
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.mail import USER, MailRecord, MailState
from ai_whisperer.domain.tasks import Priority
from ai_whisperer.protocol import mail
from ai_whisperer.protocol.agents import BROADCAST_EVENT, LIST_EVENTS, BroadcastEvent, ListEvents


class ClientMail(ClientBase):
    """The mail and the events of a session."""

    async def send_mail(
        self,
        to: AgentRef,
        subject: str,
        body: str,
        *,
        priority: Priority | str = Priority.NORMAL,
        thread_id: str | None = None,
        mail_id: str | None = None,
    ) -> MailRecord:
        """Send mail from the user to an agent. When this returns the mail is on disk.

        A caller that gives a `mail_id` may call again with the same content: the mail is sent once.
        """
        check_mail_text(subject, body, ANY_SIZE)
        params = mail.SendMail(
            session_id=self._session_id,
            to=agent_name(to),
            subject=subject,
            body=body,
            priority=priority_of(priority),
            thread_id=None if thread_id is None else checked_id(thread_id),
            mail_id=self._new_id() if mail_id is None else checked_id(mail_id),
        )
        return await self._ask(mail.SEND_MAIL, params)

    async def reply_mail(
        self,
        mail_id: str,
        body: str,
        *,
        priority: Priority | str = Priority.NORMAL,
        reply_id: str | None = None,
    ) -> MailRecord:
        """Answer a mail in the user's inbox. Under the same `reply_id` it is sent once, however often it is called."""
        check_text("mail body", body, max_bytes=ANY_SIZE)
        params = mail.ReplyMail(
            session_id=self._session_id,
            mail_id=mail_id,
            body=body,
            priority=priority_of(priority),
            reply_id=self._new_id() if reply_id is None else checked_id(reply_id),
        )
        return await self._ask(mail.REPLY_MAIL, params)

    async def mark_mail(self, mail_id: str, state: MailState | str) -> MailRecord:
        """Mark a mail in the user's inbox as read or archived."""
        params = mail.MarkMail(session_id=self._session_id, mail_id=mail_id, state=mark_of(state))
        return await self._do(mail.MARK_MAIL, params)

    async def mailbox(self, owner: AgentRef = USER, *, limit: int = 100) -> list[MailRecord]:
        """The mails of an agent or, by default, of the user, the newest first."""
        params = mail.ListMail(session_id=self._session_id, owner=agent_name(owner), limit=checked_limit(limit))
        return (await self._ask(mail.LIST_MAIL, params)).mails

    async def sent_mail(self, owner: AgentRef = USER, *, limit: int = 100) -> list[MailRecord]:
        """The mails that an agent or, by default, the user has sent, the newest first."""
        params = mail.ListSentMail(session_id=self._session_id, owner=agent_name(owner), limit=checked_limit(limit))
        return (await self._ask(mail.LIST_SENT_MAIL, params)).mails

    async def broadcast_event(self, event: str, data: Any = None, *, event_id: str | None = None) -> EventRecord:
        """Broadcast an event: it wakes the agents that sleep until it and becomes a task for those that subscribe.

        Under the same id it happens once, however often it is called.
        """
        check_event_data(data)
        check_event_name(event)
        params = BroadcastEvent(
            session_id=self._session_id,
            event=event,
            data=data,
            event_id=self._new_id() if event_id is None else checked_id(event_id),
        )
        return await self._ask(BROADCAST_EVENT, params)

    async def list_events(self, *, limit: int = 100) -> list[EventRecord]:
        """The events that were broadcast, the newest first."""
        params = ListEvents(session_id=self._session_id, limit=checked_limit(limit))
        return (await self._ask(LIST_EVENTS, params)).events

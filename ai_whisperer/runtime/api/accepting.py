"""Accepting work from outside: checked, given an id once, durable before the caller is told."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from ai_whisperer.core.budgets import check_budget, deadline_after, tree_budget
from ai_whisperer.core.mailbox import check_mail_text
from ai_whisperer.core.paging import checked_id
from ai_whisperer.core.signals import check_event_data
from ai_whisperer.core.text import check_text, one_line
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.domain.mail import USER, MailRecord
from ai_whisperer.domain.tasks import Budget, Origin, Priority, TaskKind, TaskRecord
from ai_whisperer.errors import ClosedError, DuplicateIdError, InvalidInputError
from ai_whisperer.runtime.agents.agent import LiveAgent
from ai_whisperer.runtime.life.open_session import OpenSession
from ai_whisperer.runtime.messaging.mail import own_mail
from ai_whisperer.runtime.session.cause import by_caller
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.reads import Overlay

_Accepted = TypeVar("_Accepted", TaskRecord, MailRecord, EventRecord)


class Intake:
    """Takes tasks, mail and events from people and programs.

    A caller that gives an id may call again with the same content when it does not know whether it was heard: the
    work is accepted once. What is on its way to the disk under a given id is kept in mind until a read finds
    it there.
    """

    def __init__(self, session: OpenSession) -> None:
        self._session = session
        self.book = session.roster.book
        self._tasks: Overlay[str, TaskRecord] = Overlay()
        self._mails: Overlay[str, MailRecord] = Overlay()
        self._events: Overlay[str, EventRecord] = Overlay()

    async def task(
        self,
        agent: LiveAgent,
        prompt: str,
        *,
        priority: Priority,
        thread_id: str | None,
        task_id: str | None,
        known: TaskRecord | None,
        cause: str,
        timeout_seconds: float | None = None,
        budget: Budget | None = None,
        decision: Decision | None = None,
    ) -> TaskRecord:
        """Accept a task, as part of the decision that creates its agent if one is given: see `check_task`.

        `known` is what `known_task` has found a moment ago.
        """
        most = agent.limits.max_prompt_bytes
        self._session.reached.check_prompt("prompt", prompt, agent.agent_id, most=most)
        if not prompt.strip():
            raise InvalidInputError("The prompt is empty. Say what the agent should do.")
        if known is not None:
            said = prompt if known.erased_at is not None else known.prompt  # of what is erased nobody can tell
            return await self._again(known, (known.agent_id, said), (agent.agent_id, prompt))
        agent.work.check_room()
        decision = decision or self._session.kernel.decide(cause)
        origin = _terms(timeout_seconds, budget, agent.limits, now=decision.at)
        new_id = task_id or self._session.kernel.ids.new()
        task = TaskRecord(
            session_id=self._session.kernel.session_id,
            id=new_id,
            agent_id=agent.agent_id,
            thread_id=new_id if thread_id is None else checked_id(thread_id),
            kind=TaskKind.PROMPT,
            prompt=prompt,
            arrival=self._session.kernel.next_arrival(),
            cause=cause,
            priority=priority,
            created_at=decision.at,
            origin=origin,
        )
        agent.work.accept_task(decision, task)
        if task_id is not None:
            self._tasks.keep(task_id, task, until=decision.when_readable)
        await decision.commit()
        return task

    def check_task(
        self,
        limits: EffectiveLimits,
        prompt: str,
        *,
        thread_id: str | None,
        known: TaskRecord | None,
        timeout_seconds: float | None,
        budget: Budget | None,
    ) -> None:
        """Raise what `task` would for an agent with these limits that is not there yet."""
        check_text("prompt", prompt, max_bytes=limits.max_prompt_bytes)
        if not prompt.strip():
            raise InvalidInputError("The prompt is empty. Say what the agent should do.")
        _terms(timeout_seconds, budget, limits, now=self._session.kernel.clock.now())
        if thread_id is not None:
            checked_id(thread_id)
        if known is not None:
            raise _used_already(known.id)

    def known_task(self, given_id: str | None) -> Coroutine[Any, Any, TaskRecord | None]:
        """What was accepted under the id before: see `_known`."""
        return self._known(given_id, self._session.kernel.reads.task, self._tasks)

    def known_mail(self, given_id: str | None) -> Coroutine[Any, Any, MailRecord | None]:
        """What was accepted under the id before: see `_known`."""
        return self._known(given_id, self._session.kernel.reads.mail, self._mails)

    async def _known(
        self,
        given_id: str | None,
        read: Callable[[str], Coroutine[Any, Any, _Accepted | None]],
        fresh: Overlay[str, _Accepted],
    ) -> _Accepted | None:
        """What was accepted under an id before, if one is given. Calls return in the order in which they came.

        Raises `ClosedError` if the session was closed meanwhile.
        """
        reads = self._session.kernel.reads
        known: _Accepted | None = None
        if given_id is None:
            if reads.has_line:
                await reads.turn()
        else:
            stored = await reads.in_turn(read(checked_id(given_id)))
            known = fresh.get(given_id) or stored
        if self._session.kernel.closing:
            raise self._session.kernel.log.failure or ClosedError()
        return known

    async def mail(
        self,
        to: str,
        *,
        subject: str,
        body: str,
        priority: Priority,
        thread_id: str | None,
        mail_id: str | None,
        known: MailRecord | None,
        decision: Decision | None = None,
    ) -> MailRecord:
        """Accept a mail, as part of the decision that creates its recipient if one is given: see `check_mail`.

        `known` is what `known_mail` has found a moment ago.
        """
        if known is not None:
            recipient = self._session.roster.book.resolve_recipient(to)
            now = (USER, recipient, one_line(str(subject)), body)
            said = now[2:] if known.erased_at is not None else (known.subject, known.body)
            return await self._again(known, (known.sender, known.recipient, *said), now)
        decision = decision or self._session.kernel.decide(by_caller())
        mail = self._session.mail.send(
            decision,
            sender=USER,
            to=to,
            subject=subject,
            body=body,
            priority=priority,
            thread_id=None if thread_id is None else checked_id(thread_id),
            mail_id=mail_id,
        )
        self._keep_until_readable(decision, mail, mail_id)
        await decision.commit()
        return mail

    def check_mail(
        self, limits: EffectiveLimits, subject: str, body: str, *, thread_id: str | None, known: MailRecord | None
    ) -> None:
        """Raise what `mail` would for an agent with these limits that is not there yet."""
        check_mail_text(subject, body, limits.max_mail_bytes)
        if thread_id is not None:
            checked_id(thread_id)
        if known is not None:
            raise _used_already(known.id)

    async def reply(self, mail_id: str, body: str, *, priority: Priority, reply_id: str | None) -> MailRecord:
        post = self._session.mail
        with self._session.kernel.reads.under_way.one_more():
            found, known = None, await self.known_mail(reply_id)
            if known is None:
                found = await post.find(mail_id)
        if known is not None:
            before = (known.sender, known.reply_to or "", body if known.erased_at is not None else known.body)
            return await self._again(known, before, (USER, mail_id, body))
        decision = self._session.kernel.decide(by_caller())
        original = own_mail(USER, mail_id, found)
        mail = post.reply(decision, original, body=body, priority=priority, mail_id=reply_id)
        self._keep_until_readable(decision, mail, reply_id)
        await decision.commit()
        return mail

    def _keep_until_readable(self, decision: Decision, mail: MailRecord, given_id: str | None) -> None:
        if given_id is not None:
            self._mails.keep(given_id, mail, until=decision.when_readable)

    async def event(self, name: str, data: Any, *, event_id: str | None) -> EventRecord:
        known = await self._known(event_id, self._session.kernel.reads.event, self._events)
        if known is not None:
            told = data if known.erased_at is not None else known.data
            return await self._again(known, (known.name, _as_kept(told)), (name, _as_kept(data)))
        check_event_data(data)
        data = msgspec.json.decode(msgspec.json.encode(data))  # as it is kept
        decision = self._session.kernel.decide(by_caller())
        event = self._session.events.broadcast(decision, name=name, data=data, sender=USER, event_id=event_id)
        if event_id is not None:
            self._events.keep(event_id, event, until=decision.when_readable)
        await decision.commit()
        return event

    async def _again(self, known: _Accepted, before: tuple[str, ...], now: tuple[str, ...]) -> _Accepted:
        """Answer as the first time, once that is durable; raise if the id stood for something else."""
        if before != now:
            raise _used_already(known.id)
        await self._session.kernel.store.flushed()
        return known


def _terms(
    timeout_seconds: float | None, budget: Budget | None, limits: EffectiveLimits, *, now: float
) -> Origin | None:
    if budget is not None:
        check_budget(budget)
    budget = tree_budget(budget, limits)
    if timeout_seconds is None and budget is None:
        return None
    return Origin(deadline_at=deadline_after(timeout_seconds, now=now), budget=budget)


def _used_already(given_id: str) -> DuplicateIdError:
    return DuplicateIdError(f"The id '{given_id}' was used for something else. Choose another; nothing was accepted.")


def _as_kept(data: Any) -> str:
    """The data as it is kept, to compare; whatever it is, it can be compared."""
    try:
        return msgspec.json.encode(data).decode()
    except (TypeError, ValueError, RecursionError):
        return repr(data)

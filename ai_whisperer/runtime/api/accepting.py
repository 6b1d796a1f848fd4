"""Accepting work from outside: checked, given an id once, durable before the caller is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ai_whisperer.core.attachments import records_of
from ai_whisperer.core.budgets import check_budget, deadline_after, tree_budget
from ai_whisperer.core.mailbox import check_each, check_mail_text
from ai_whisperer.core.outputs import with_output_schema
from ai_whisperer.core.paging import checked_id
from ai_whisperer.core.signals import check_event_data
from ai_whisperer.core.text import check_text, one_line
from ai_whisperer.domain.attachments import Attachment
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.domain.mail import USER, MailDraft, MailRecord
from ai_whisperer.domain.tasks import Budget, Deliver, Origin, Priority, TaskKind, TaskRecord
from ai_whisperer.errors import ClosedError, DuplicateIdError, InvalidInputError, StateError
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
        output_schema: dict[str, Any] | None = None,
        parts: tuple[Attachment, ...] | None = None,
        deliver: Deliver = Deliver.IN_TURN,
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
            before = [known.agent_id, known.prompt, *(part.digest for part in known.parts or ())]
            now = [agent.agent_id, prompt, *(part.digest for part in parts or ())]
            if output_schema is not None:
                before.append(_as_kept(known.output_schema))
                now.append(_as_kept(output_schema))
            if known.erased_at is not None:
                before[1:] = now[1:]  # of what is erased nobody can tell
            return await self._again(known, tuple(before), tuple(now))
        agent.work.check_room()
        joins = deliver is Deliver.NEXT_STEP
        if joins and output_schema is not None:
            raise InvalidInputError(
                "A message for the next step of a task has no output of its own: the answer is that of the task. "
                "Leave out the output, or send it in its turn."
            )
        thread_id = _thread_at_work(agent, thread_id) if joins else _checked_thread(thread_id)
        decision = decision or self._session.kernel.decide(cause)
        origin = _terms(timeout_seconds, budget, agent.limits, now=decision.at)
        if joins:
            origin = replace(origin or Origin(), next_step=True)
        new_id = task_id or self._session.kernel.ids.new()
        task = TaskRecord(
            session_id=self._session.kernel.session_id,
            id=new_id,
            agent_id=agent.agent_id,
            thread_id=new_id if thread_id is None else thread_id,
            kind=TaskKind.PROMPT,
            prompt=prompt,
            arrival=self._session.kernel.next_arrival(),
            cause=cause,
            priority=priority,
            created_at=decision.at,
            origin=origin,
            parts=parts,
        )
        task = with_output_schema(task, output_schema or agent.record.definition.output_schema)
        agent.work.accept_task(decision, task)
        if parts is not None:
            for record in records_of(parts, session_id=task.session_id, owner=f"task:{task.id}", now=decision.at):
                decision.unit.insert_attachment(record)
        if task_id is not None:
            self._tasks.keep(task_id, task, until=decision.when_readable)
        await decision.commit()
        return task

    async def compaction(self, agent: LiveAgent, thread_id: str, *, task_id: str | None) -> TaskRecord:
        """Accept a task that makes a thread of the agent shorter for its model."""
        agent.work.check_room()
        cause = by_caller()
        decision = self._session.kernel.decide(cause)
        task = TaskRecord(
            session_id=self._session.kernel.session_id,
            id=task_id or self._session.kernel.ids.new(),
            agent_id=agent.agent_id,
            thread_id=thread_id,
            kind=TaskKind.COMPACTION,
            prompt="Make this conversation shorter.",
            arrival=self._session.kernel.next_arrival(),
            cause=cause,
            created_at=decision.at,
        )
        agent.work.accept_task(decision, task)
        if task_id is not None:
            self._tasks.keep(task_id, task, until=decision.when_readable)
        await decision.commit()
        return task

    async def compaction_again(self, known: TaskRecord, agent: LiveAgent, thread_id: str | None) -> TaskRecord:
        """The task that was accepted under the id before; raises if that was something else."""
        before = (known.agent_id, known.kind, known.thread_id)
        return await self._again(known, before, (agent.agent_id, TaskKind.COMPACTION, thread_id or known.thread_id))

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

    def decide(self) -> Decision:
        """Begin a decision in the name of the caller."""
        return self._session.kernel.decide(by_caller())

    def is_new(self, given_id: str | None) -> bool:
        """Whether there is nothing to look up and nobody to wait for: no id is given, and no one is in line."""
        kernel = self._session.kernel
        return given_id is None and not kernel.reads.has_line and not kernel.closing

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

    async def known_mails(self, given_ids: Sequence[str]) -> dict[str, MailRecord]:
        """What was accepted under these ids before: see `_known`."""
        reads = self._session.kernel.reads
        if given_ids:
            stored = await reads.in_turn(self._stored(given_ids))
        else:
            await reads.turn()
            stored = {}
        if self._session.kernel.closing:
            raise self._session.kernel.log.failure or ClosedError()
        fresh = {given_id: mail for given_id in given_ids if (mail := self._mails.get(given_id)) is not None}
        return stored | fresh

    async def _stored(self, mail_ids: Sequence[str]) -> dict[str, MailRecord]:
        read = self._session.kernel.reads.mail
        return {mail_id: mail for mail_id in mail_ids if (mail := await read(mail_id)) is not None}

    def check_mails(self, drafts: Sequence[MailDraft]) -> list[MailDraft]:
        """Raise, saying which it is, if one of the mails cannot be sent after those before it.

        Returns those to agents that are not there, but could be created: they are not looked at.
        """
        creation, post = self._session.creation, self._session.mail
        before: Counter[str] = Counter()
        missing: list[MailDraft] = []

        def check(draft: MailDraft) -> None:
            if creation.missing(draft.to) is not None:
                missing.append(draft)
                return
            if draft.thread_id is not None:
                checked_id(draft.thread_id)
            post.check(sender=USER, to=draft.to, subject=draft.subject, body=draft.body, before=before)

        check_each(drafts, check)
        return missing

    async def mail_again(self, known: MailRecord, to: str, *, subject: str, body: str) -> MailRecord:
        """Accept a mail under the id of one that is known: it is sent once."""
        self.check_same_mail(known, to, subject=subject, body=body)
        await self._session.kernel.flushed()
        return known

    def check_same_mail(self, known: MailRecord, to: str, *, subject: str, body: str) -> None:
        """Raise `DuplicateIdError` if the mail is not the one that is known under its id."""
        recipient = self._session.roster.book.resolve_recipient(to)
        now = (USER, recipient, one_line(str(subject)), body)
        said = now[2:] if known.erased_at is not None else (known.subject, known.body)
        if (known.sender, known.recipient, *said) != now:
            raise _used_already(known.id)

    def mail(
        self,
        decision: Decision,
        to: str,
        *,
        subject: str,
        body: str,
        priority: Priority,
        thread_id: str | None,
        mail_id: str | None,
        is_checked: bool = False,
    ) -> MailRecord:
        """Accept a mail as part of a decision; raises, having changed nothing, if it cannot be delivered.

        One that `is_checked` can be: `check_mails` has just said so.
        """
        mail = self._session.mail.send(
            decision,
            sender=USER,
            to=to,
            subject=subject,
            body=body,
            priority=priority,
            thread_id=None if thread_id is None else checked_id(thread_id),
            mail_id=mail_id,
            is_checked=is_checked,
        )
        if mail_id is not None:
            self._mails.keep(mail_id, mail, until=decision.when_readable)
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
        if reply_id is not None:
            self._mails.keep(reply_id, mail, until=decision.when_readable)
        await decision.commit()
        return mail

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
        await self._session.kernel.flushed()
        return known


def _checked_thread(thread_id: str | None) -> str | None:
    return None if thread_id is None else checked_id(thread_id)


def _thread_at_work(agent: LiveAgent, thread_id: str | None) -> str | None:
    """The conversation that is meant: the one that is named, which the runtime may have named, or that it is at.

    None if it is at none. Raises `InvalidInputError` if it is at several and none is named, `StateError` if it is no
    longer at one that only the runtime begins tasks in.
    """
    threads = sorted({loop.task.thread_id for loop in agent.work.loops.values() if not loop.task.answers_a_switch})
    if thread_id is not None:
        if thread_id in threads:
            return thread_id
        if isinstance(thread_id, str) and "~" in thread_id:
            raise StateError(
                f"'{agent.agent_id}' is not at work in the conversation {thread_id[:100]!r}; nothing was sent. It is "
                "one that people cannot begin tasks in: leave out thread_id, or write to its room."
            )
        return checked_id(thread_id)
    if len(threads) > 1:
        raise InvalidInputError(
            f"'{agent.agent_id}' works in {len(threads)} conversations; nothing was sent. Say with thread_id which one "
            f"is meant: {', '.join(threads[:10])}."
        )
    return threads[0] if threads else None


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

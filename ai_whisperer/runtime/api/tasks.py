"""Giving work to a session: tasks and mail."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, Unpack, overload

from ai_whisperer.core.budgets import overdrawn
from ai_whisperer.core.mailbox import checked_drafts, mark_of, priority_of
from ai_whisperer.core.output_types import schema_of, value_of
from ai_whisperer.core.tasks import branch_of, check_answered, continuation_id, delivery_of, host_of, joined, parent_of
from ai_whisperer.core.text import check_reason
from ai_whisperer.domain.attachments import InputPart
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.limits import EffectiveLimits, Limits
from ai_whisperer.domain.mail import USER, MailDraft, MailRecord, MailState
from ai_whisperer.domain.tasks import Budget, Deliver, Priority, RetriedTasks, TaskRecord, TaskState
from ai_whisperer.errors import ConflictError, StateError
from ai_whisperer.runtime.api.accepting import Intake
from ai_whisperer.runtime.api.attachments import SessionAttachments
from ai_whisperer.runtime.api.base import AgentRef
from ai_whisperer.runtime.api.handle import AgentSession
from ai_whisperer.runtime.api.requeueing import EndedTask, dismiss, look_up_ended, queue_when_durable, requeue
from ai_whisperer.runtime.limits.deadlines import overdue
from ai_whisperer.runtime.messaging.continuations import parts_of
from ai_whisperer.runtime.session.cause import by_caller
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.reads import Overlay
from ai_whisperer.session_api import OutputType, TaskTerms

T = TypeVar("T")

_RETRIED_AT_ONCE = 100
"""So many are one unit: others have their turn then."""
_End = tuple[str, float | None, float | None]


class SessionWork(SessionAttachments):
    """The half of the session manager that gives work and takes it back."""

    def __init__(self) -> None:
        self._settled: Overlay[_End, TaskRecord] = Overlay()  # tasks that were retried or dismissed

    @property
    @abstractmethod
    def _intake(self) -> Intake:
        """Where work from outside is accepted; raises `ClosedError`."""

    async def send_task(
        self,
        agent_id: AgentRef,
        prompt: str,
        *,
        priority: Priority | str = Priority.NORMAL,
        thread_id: str | None = None,
        task_id: str | None = None,
        timeout_seconds: float | None = None,
        budget: Budget | None = None,
        output: OutputType | None = None,
        parts: Sequence[InputPart] = (),
        deliver: Deliver | str = Deliver.IN_TURN,
    ) -> TaskRecord:
        urgency, delivery, intake = priority_of(priority), delivery_of(deliver), self._intake
        schema = None if output is None else schema_of(output)
        kept = None
        if parts:
            await self._attaching.acquire()
        try:
            if parts:
                kept = await self._keep_parts(parts, max_bytes=self._max_attachment_bytes(agent_id))
            known = None if intake.is_new(task_id) else await intake.known_task(task_id)
            decision = self._create_if_missing(
                agent_id,
                lambda limits: intake.check_task(
                    limits, prompt, thread_id=thread_id, known=known, timeout_seconds=timeout_seconds, budget=budget
                ),
            )
            return await intake.task(
                self._find_agent(agent_id),
                prompt,
                priority=urgency,
                thread_id=thread_id,
                task_id=task_id,
                known=known,
                cause=by_caller(),
                timeout_seconds=timeout_seconds,
                budget=budget,
                output_schema=schema,
                parts=kept,
                deliver=delivery,
                decision=decision,
            )
        finally:
            if parts:
                self._attaching.release()

    def _max_attachment_bytes(self, agent: AgentRef) -> int:
        """How large a file may be that the agent is given, also if it is not there yet."""
        if self._session.creation.missing(agent) is not None:
            return self._session.stated.for_agent(Limits()).max_attachment_bytes
        return self._find_agent(agent).limits.max_attachment_bytes

    def _create_if_missing(self, agent: AgentRef, check: Callable[[EffectiveLimits], object]) -> Decision | None:
        """Create the agent that is named if it is not there, a template is called so and that is wanted here.

        Returns the decision in which that happens, for the work to join it. `check` raises if the work is refused.
        """
        session = self._session
        missing = session.creation.missing(agent)
        if missing is None:
            return None
        decision = session.kernel.decide(by_caller())
        session.creation.create_missing(decision, missing, check)
        return decision

    async def wait_task(self, task: str | TaskRecord) -> TaskRecord:
        known = await self.get_task(task)
        while True:
            if not known.state.ended:
                known = await self._session.cycles.end_of(known)
            if not known.state.is_passed_on:
                return joined(await parts_of(self._session.kernel.reads, known)) if known.continuation else known
            known = await self.get_task(host_of(known) or continuation_id(known))

    @overload
    async def run_task(
        self, agent_id: AgentRef, prompt: str, *, output: None = None, **terms: Unpack[TaskTerms]
    ) -> str: ...
    @overload
    async def run_task(self, agent_id: AgentRef, prompt: str, *, output: type[T], **terms: Unpack[TaskTerms]) -> T: ...
    @overload
    async def run_task(
        self, agent_id: AgentRef, prompt: str, *, output: Mapping[str, Any], **terms: Unpack[TaskTerms]
    ) -> Any: ...
    async def run_task(
        self,
        agent_id: AgentRef,
        prompt: str,
        *,
        priority: Priority | str = Priority.NORMAL,
        thread_id: str | None = None,
        task_id: str | None = None,
        timeout_seconds: float | None = None,
        budget: Budget | None = None,
        output: OutputType | None = None,
        parts: Sequence[InputPart] = (),
    ) -> Any:
        task = await self.send_task(
            agent_id,
            prompt,
            priority=priority,
            thread_id=thread_id,
            task_id=task_id,
            timeout_seconds=timeout_seconds,
            budget=budget,
            output=output,
            parts=parts,
        )
        answer = check_answered(await self.wait_task(task))
        return answer.final if output is None else value_of(output, answer.output)

    async def cancel_task(self, task: str | TaskRecord, *, reason: str = "cancelled by the user") -> TaskRecord:
        known = await self._last_part(task)
        if known.state.ended:
            raise StateError(
                f"Task {known.id} is {known.state} already. Only a queued or running task can be cancelled."
            )
        check_reason(reason)
        await self._find_agent(known.agent_id).work.cancel_task(known.id, by_caller(), reason)
        ended = await self.get_task(known.id)
        if ended.state is not TaskState.CANCELLED:
            raise StateError(f"Task {known.id} ended as {ended.state} before it could be cancelled.")
        return ended

    async def cancel_tree(self, task: str | TaskRecord, *, reason: str = "cancelled by the user") -> list[TaskRecord]:
        root = await self.get_task(task)
        check_reason(reason)
        cancelled: list[TaskRecord] = []
        withdrawn = 0
        while True:  # what is cancelled may have caused more until it was
            await self._session.kernel.flushed()
            branch = branch_of(await self._tree(root.root_id), root.id)
            left = [each for each in branch.values() if not each.state.ended]
            for each in left:
                self._find_agent(each.agent_id).work.check_not_from_inside("cancel the tree of a task of")
            withdrawn += await self._withdraw_mails(branch)
            if not left:
                break
            with self._session.trees.cancelling(branch):
                cancelled += await self._cancel_all(left, reason)
        if not cancelled and not withdrawn:
            raise StateError(f"Task {root.id} and all that it caused have ended already; there is nothing to cancel.")
        return cancelled

    async def _cancel_all(self, tasks: list[TaskRecord], reason: str) -> list[TaskRecord]:
        cancelling = (self._find_agent(task.agent_id).work.cancel_task(task.id, by_caller(), reason) for task in tasks)
        for outcome in await asyncio.gather(*cancelling, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        ended = [await self.get_task(task.id) for task in tasks]
        return [task for task in ended if task.state is TaskState.CANCELLED]

    async def _withdraw_mails(self, branch: Mapping[str, TaskRecord]) -> int:
        """Archive the mails that tasks of the branch sent and nobody has begun to handle."""
        session = self._session
        decision = session.kernel.decide(by_caller())
        count = 0
        for agent in session.roster.agents.values():
            for mail in [item for item in agent.work.waiting if isinstance(item, MailRecord)]:
                if parent_of(mail.cause) in branch:
                    agent.work.take_out_mail(mail)
                    session.mail.move(decision, mail, MailState.ARCHIVED)
                    count += 1
        if count:
            await decision.commit()
        return count

    async def retry_task(self, task: str | TaskRecord) -> TaskRecord:
        with self._session.kernel.reads.under_way.one_more():
            ended = await look_up_ended(self._session, await self._last_part(task))
            self._check_retry(ended)
            (queued,), durable = self._requeue([ended])
        await asyncio.shield(durable)
        return queued

    async def retry_failed_tasks(self, agent_id: AgentRef | None = None) -> RetriedTasks:
        of = None if agent_id is None else self._find_agent(agent_id).agent_id
        await self._session.kernel.flushed()
        dead = sorted((await self.dead_letters()).tasks, key=lambda each: each.arrival)
        failed = [each.id for each in dead if each.state is TaskState.FAILED and of in (None, each.agent_id)]
        retried: list[str] = []
        reasons: dict[str, str] = {}
        for batch in _batches(failed, _RETRIED_AT_ONCE):
            with self._session.kernel.reads.under_way.one_more():
                known = [await look_up_ended(self._session, await self.get_task(each)) for each in batch]
                ready: list[EndedTask] = []
                room: Counter[str] = Counter()
                for ended in known:
                    try:
                        self._check_retry(ended, beside=room[ended.task.agent_id])
                    except ConflictError as error:
                        reasons[ended.task.id] = error.message
                    else:
                        ready.append(ended)
                        room[ended.task.agent_id] += 1
                queued, durable = self._requeue(ready) if ready else ([], None)
            if durable is not None:
                await asyncio.shield(durable)
            retried += [task.id for task in queued]
        return RetriedTasks(retried=len(retried), not_retried=len(reasons), task_ids=tuple(retried), reasons=reasons)

    def _check_retry(self, ended: EndedTask, *, beside: int = 0) -> None:
        """Raise a `ConflictError` unless the task can be retried, beside so many others of its agent."""
        known = ended.task
        if known.state not in (TaskState.FAILED, TaskState.CANCELLED, TaskState.DEAD):
            raise StateError(f"Task {known.id} is {known.state}. Only a failed, cancelled or dead task can be retried.")
        if known.erased_at is not None or self._session.kernel.erasing.has_erased(
            known.agent_id, known.thread_id, known.arrival
        ):
            raise StateError(f"Task {known.id} was erased, so it cannot be retried. Send a new task instead.")
        agent = self._find_agent(known.agent_id)
        self._check_not_settled(known)
        self._check_terms(known, ended.used)
        returning = sum(each.agent_id == known.agent_id for each in self._session.roster.returning.values())
        agent.work.check_room(returning=returning + beside)

    def _requeue(self, ended: Sequence[EndedTask]) -> tuple[list[TaskRecord], asyncio.Future[None]]:
        """Take up tasks again that can be retried; the future is done when that is durable."""
        decision = self._session.kernel.decide(by_caller())
        queued = [requeue(self._session, decision, each) for each in ended]
        self._settle(decision, [each.task for each in ended])
        durable = decision.submit()
        journals = [each.steps for each in ended]
        queue_when_durable(self._session, list(zip(queued, journals, strict=True)), durable)
        return queued, durable

    async def dismiss_task(self, task: str | TaskRecord) -> TaskRecord:
        with self._session.kernel.reads.under_way.one_more():
            known = await self._last_part(task)
            mail = None if known.mail_id is None else await self._session.mail.find(known.mail_id)
            self._check_dismissal(known)
            decision = self._session.kernel.decide(by_caller())
            dismissed = dismiss(self._session, decision, known, mail)
            self._settle(decision, [known])
            durable = decision.submit()
        await asyncio.shield(durable)
        return dismissed

    def _check_dismissal(self, known: TaskRecord) -> None:
        """Raise `StateError` unless the task is a dead letter that nobody has settled."""
        if known.dismissed_at is not None:
            raise StateError(f"Task {known.id} was dismissed already.")
        if not known.is_dead_letter:
            raise StateError(
                f"Task {known.id} is {known.state}. Only a dead letter, a failed or dead task, can be dismissed."
            )
        self._check_not_settled(known)

    async def _last_part(self, task: str | TaskRecord) -> TaskRecord:
        """The task, or the last of those that continued it."""
        known = await self.get_task(task)
        while known.state is TaskState.CONTINUED:
            known = await self.get_task(continuation_id(known))
        return known

    def _settle(self, decision: Decision, tasks: Sequence[TaskRecord]) -> None:
        """Keep in mind that these are retried or dismissed, until whoever reads them sees it."""
        for task in tasks:
            self._settled.keep(_end_of(task), task, until=decision.when_readable)

    def _check_not_settled(self, task: TaskRecord) -> None:
        """Raise `StateError` if that is so for this end of the task: it may have ended again since."""
        if _end_of(task) in self._settled:
            raise StateError(f"Task {task.id} is being retried or dismissed already.")

    def _check_terms(self, task: TaskRecord, used: Usage) -> None:
        """Raise `StateError` if the task has neither time nor budget left, so that it could only fail again."""
        if overdue(task, now=self._session.kernel.clock.now()) is not None:
            raise StateError(f"The time for task {task.id} is over, so it cannot be retried. Send a new task instead.")
        spent = None if task.budget is None else overdrawn(task.budget, used)
        if spent is not None:
            raise StateError(
                f"The budget of task {task.id} is spent ({spent}), so it cannot be retried. Send a new task with a "
                "larger one instead."
            )

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
        recipient = to.agent_id if isinstance(to, AgentSession) else to
        urgency, intake, decision = priority_of(priority), self._intake, None
        known = None if intake.is_new(mail_id) else await intake.known_mail(mail_id)
        if isinstance(recipient, str) and not intake.book.knows(recipient):
            decision = self._create_if_missing(
                recipient, lambda limits: intake.check_mail(limits, subject, body, thread_id=thread_id, known=known)
            )
        if known is not None:
            return await intake.mail_again(known, recipient, subject=subject, body=body)
        decision = decision or intake.decide()
        mail = intake.mail(
            decision,
            recipient,
            subject=subject,
            body=body,
            priority=urgency,
            thread_id=thread_id,
            mail_id=mail_id,
        )
        await decision.commit()
        return mail

    async def send_mails(self, mails: Sequence[MailDraft]) -> list[MailRecord]:
        intake, drafts = self._intake, checked_drafts(mails)
        known = await intake.known_mails([draft.mail_id for draft in drafts if draft.mail_id is not None])
        for draft in drafts if known else ():
            if (before := known.get(draft.mail_id or "")) is not None:
                intake.check_same_mail(before, draft.to, subject=draft.subject, body=draft.body)
        new = [draft for draft in drafts if draft.mail_id not in known]
        if missing := intake.check_mails(new):
            self._create_recipients(missing)
            intake.check_mails(new)
        decision = intake.decide()
        sent = [
            known.get(draft.mail_id or "")
            or intake.mail(
                decision,
                draft.to,
                subject=draft.subject,
                body=draft.body,
                priority=priority_of(draft.priority),
                thread_id=draft.thread_id,
                mail_id=draft.mail_id,
                is_checked=True,
            )
            for draft in drafts
        ]
        if new:
            await decision.commit()
        if known:
            await self._session.kernel.flushed()
        return sent

    def _create_recipients(self, drafts: Sequence[MailDraft]) -> None:
        """Create the agents that are not there for these mails."""
        intake = self._intake
        for draft in drafts:
            decision = self._create_if_missing(
                draft.to,
                lambda limits, draft=draft: intake.check_mail(  # type: ignore[misc]
                    limits, draft.subject, draft.body, thread_id=draft.thread_id, known=None
                ),
            )
            if decision is not None:
                decision.submit()

    async def broadcast_event(self, event: str, data: Any = None, *, event_id: str | None = None) -> EventRecord:
        return await self._intake.event(event, data, event_id=event_id)

    async def reply_mail(
        self,
        mail_id: str,
        body: str,
        *,
        priority: Priority | str = Priority.NORMAL,
        reply_id: str | None = None,
    ) -> MailRecord:
        return await self._intake.reply(mail_id, body, priority=priority_of(priority), reply_id=reply_id)

    async def mark_mail(self, mail_id: str, state: MailState | str) -> MailRecord:
        mail = await self._session.mail.received_by(USER, mail_id)
        return await self._committed(lambda decision: self._session.mail.move(decision, mail, mark_of(state)))


def _end_of(task: TaskRecord) -> _End:
    """What tells an ended task from the same one that was dismissed, or retried and ended again."""
    return task.id, task.finished_at, task.dismissed_at


def _batches(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), size):
        yield ids[start : start + size]

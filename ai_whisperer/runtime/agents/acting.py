"""The desk at which coordination tools work: in the name of one agent, inside one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ai_whisperer.core.mailbox import check_mail_text, in_order
from ai_whisperer.core.marks import quoted, said
from ai_whisperer.core.sleeping import in_words, sleep_plan
from ai_whisperer.core.tasks import continuation_id, inherited
from ai_whisperer.core.text import check_reason, check_text, mended
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.domain.locks import LockRecord, LockSummary
from ai_whisperer.domain.mail import USER, MailRecord, MailState
from ai_whisperer.domain.notifications.tasks import TaskProgress
from ai_whisperer.domain.tasks import Priority, StepRecord, TaskRecord, TaskState
from ai_whisperer.errors import InvalidInputError, UnknownTaskError
from ai_whisperer.runtime.agents.journal import TaskJournal
from ai_whisperer.runtime.agents.looking_up import Found
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.runtime.agents.status import as_it_is_now, status_of
from ai_whisperer.runtime.messaging.mail import own_mail
from ai_whisperer.runtime.session.decision import Decision


class AgentDesk:
    """See `tools.desk.Desk`. Everything done here joins the decision that records the step's result."""

    def __init__(
        self, agent: Owner, running: TaskJournal, decision: Decision, step: StepRecord, found: Found | None
    ) -> None:
        self._agent = agent
        self._found = found
        self._running = running
        self._decision = decision
        self._step = step

    def send_mail(self, *, to: str, subject: str, body: str, priority: Priority) -> MailRecord:
        post, book = self._agent.parts.mail, self._agent.parts.roster.book
        self._create_if_missing(to, lambda limits: check_mail_text(subject, body, limits.max_mail_bytes))
        if book.resolve_recipient(to) != USER:
            self._check_tree()
        return post.send(
            self._decision,
            sender=self._agent.agent_id,
            to=to,
            subject=subject,
            body=body,
            priority=priority,
            thread_id=self._running.task.thread_id,
            mail_id=self._mail_id,
            origin=inherited(self._running.task),
        )

    def reply_mail(self, *, mail_id: str, body: str, priority: Priority | None) -> MailRecord:
        post = self._agent.parts.mail
        found = None if self._found is None else self._found.mails.get(mail_id)
        original = own_mail(self._agent.agent_id, mail_id, post.in_memory(mail_id) or found)
        if original.sender != USER and not original.awaited:
            self._check_tree()
        return post.reply(
            self._decision,
            original,
            body=body,
            priority=priority or original.priority,
            mail_id=self._mail_id,
            origin=inherited(self._running.task),
        )

    def mail_to_answer(self) -> MailRecord | None:
        mail_id = self._running.task.mail_id
        mail = None if mail_id is None else self._agent.parts.mail.in_memory(mail_id)
        return mail if mail is not None and mail.state in (MailState.DELIVERED, MailState.READ) else None

    def ask(self, *, to: str, subject: str, body: str, priority: Priority, timeout_seconds: float | None) -> None:
        parts, task = self._agent.parts, self._running.task

        def check(limits: EffectiveLimits) -> None:
            check_mail_text(subject, body, limits.max_mail_bytes)
            parts.switch.check_depth(self._decision, task)
            parts.waits.deadline(task, timeout_seconds, now=self._decision.at)

        self._create_if_missing(to, check)
        self._check_tree()
        parts.switch.ask(
            self._decision,
            task,
            self._step,
            to=to,
            subject=subject,
            body=body,
            priority=priority,
            timeout_seconds=timeout_seconds,
        )

    def ask_user(self, *, question: str, schema: Any, timeout_seconds: float | None) -> None:
        self._agent.parts.questions.ask(
            self._decision,
            self._running.task,
            self._step,
            question=question,
            schema=schema,
            timeout_seconds=timeout_seconds,
        )

    def delegate(self, *, to: str, prompt: str, priority: Priority, timeout_seconds: float | None) -> TaskRecord:
        parts, task = self._agent.parts, self._running.task

        def check(limits: EffectiveLimits) -> None:
            check_text("task", prompt, max_bytes=limits.max_prompt_bytes)
            parts.delegation.check(task, prompt, timeout_seconds, now=self._decision.at)

        self._create_if_missing(to, check)
        self._check_tree()
        return parts.delegation.delegate(
            self._decision,
            task,
            self._step,
            to=to,
            prompt=prompt,
            priority=priority,
            timeout_seconds=timeout_seconds,
        )

    def sleep(
        self, *, duration_seconds: float | None, until: str | None, wake_events: Sequence[str], reason: str
    ) -> str:
        clock = self._agent.parts.kernel.clock
        plan = sleep_plan(
            self._decision.at,
            wall=clock.wall(),
            duration_seconds=duration_seconds,
            until=until,
            wake_events=wake_events,
        )
        check_reason(reason)
        self._agent.sleep(self._decision, plan, reason)
        return in_words(plan, offset=clock.offset)

    def wake(self, *, agent: str, reason: str) -> None:
        parts = self._agent.parts
        check_reason(reason)
        sleeper = parts.roster.agents[parts.roster.book.resolve(agent)]
        self._check_tree()
        by = self._agent.agent_id
        sleeper.wake(
            self._decision,
            f"{reason} (from {by})",
            details=f"{said(by, reason)} (from {by})",
            origin=inherited(self._running.task),
        )

    def broadcast(self, *, event: str, data: Any) -> EventRecord:
        self._check_tree()
        return self._agent.parts.events.broadcast(
            self._decision,
            name=event,
            data=data,
            sender=self._agent.agent_id,
            origin=inherited(self._running.task),
        )

    def listeners(self, event: str) -> int:
        others = (agent for agent in self._agent.parts.roster.agents.values() if agent.agent_id != self._agent.agent_id)
        return sum(
            agent.record.started and (agent.listens_for(event) or agent.subscribes_to(event)) for agent in others
        )

    def acquire_lock(self, *, name: str, ttl_seconds: float, wait_seconds: float | None) -> LockRecord | None:
        got = self._agent.parts.locks.acquire(
            self._decision,
            self._running.task,
            self._step,
            name=name,
            ttl_seconds=ttl_seconds,
            wait_seconds=wait_seconds,
        )
        return got if isinstance(got, LockRecord) else None

    def release_lock(self, name: str) -> None:
        locks = self._agent.parts.locks
        locks.release(self._decision, locks.book.of_task(self._running.task.id, name))

    def renew_lock(self, name: str, ttl_seconds: float) -> LockRecord:
        locks = self._agent.parts.locks
        return locks.renew(self._decision, locks.book.of_task(self._running.task.id, name), ttl_seconds)

    def locks(self) -> Sequence[LockSummary]:
        return self._agent.parts.locks.book.listed()

    def take_mail(self, limit: int) -> tuple[Sequence[MailRecord], int]:
        waiting = in_order(item for item in self._agent.work.queue if isinstance(item, MailRecord))
        for mail in waiting[:limit]:
            self._agent.work.queue.remove_mail(mail.id)
            self._agent.parts.mail.deliver(self._decision, mail, self._running.task.id)
        return waiting[:limit], len(waiting[limit:])

    def earlier_mail(self, limit: int) -> Sequence[MailRecord]:
        mails = () if self._found is None else self._found.mailbox
        shown = (MailState.READ, MailState.REPLIED)
        earlier = [mail for mail in mails if mail.state in shown and mail.task_id != self._running.task.id]
        return earlier[:limit][::-1]

    def agents(self) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "agent": agent.agent_id,
                "name": agent.record.definition.name or agent.agent_id,
                "description": agent.record.definition.description,
                "state": agent.state,
            }
            for agent in self._agent.parts.roster.agents.values()
        ]

    def agent_status(self, name: str) -> Mapping[str, Any]:
        parts = self._agent.parts
        status = status_of(parts.roster.agents[parts.roster.book.resolve(name)])
        since, last_step_at = status.running_since, status.last_step_at or status.running_since
        return {
            "agent": status.agent_id,
            "state": status.state,
            "current_task": status.current_task,
            "queue_size": status.queue_size,
            "sleeping_until": status.sleeping_until,
            "progress_percent": status.progress_percent,
            "progress_note": status.progress_note,
            "running_seconds": None if since is None else round(self._decision.at - since, 1),
            "seconds_since_last_step": None if last_step_at is None else round(self._decision.at - last_step_at, 1),
            "waiting_for": status.waiting_for,
            "paused_for": status.paused_for,
            "reason": status.reason,
        }

    def task_status(self, task_id: str) -> Mapping[str, Any]:
        task = self._delegated(task_id)
        since = task.started_at if task.state is TaskState.RUNNING else None
        return {
            "task": task_id,
            "agent": task.agent_id,
            "state": task.state,
            "progress_percent": task.progress_percent,
            "progress_note": task.progress_note,
            "running_seconds": None if since is None else round(self._decision.at - since, 1),
            "error": None if task.error is None else task.error.message,
        }

    def _delegated(self, task_id: str) -> TaskRecord:
        """The task of that id, or the last that continues it, as it is now, if this agent has delegated it."""
        found = {} if self._found is None else self._found.tasks
        task = found.get(task_id)
        reports_to = None if task is None or task.origin is None else task.origin.report_to
        if task is None or reports_to is None or reports_to.agent_id != self._agent.agent_id:
            raise UnknownTaskError(f"You have delegated no task '{task_id}'. Use the id that delegate_task told you.")
        while task.state is TaskState.CONTINUED and (following := found.get(continuation_id(task))) is not None:
            task = following
        return as_it_is_now(self._agent.parts, task)

    def create_agent(self, agent_id: str, *, template: str | None, prompt: str | None, description: str) -> str:
        return self._agent.parts.creation.create_for(
            self._decision, self._agent, agent_id, template=template, prompt=prompt, description=description
        ).agent_id

    def read_result(self, step: str) -> tuple[str, bool]:
        found = None if self._found is None else self._found.texts.get(step)
        if found is None:
            raise InvalidInputError(
                f"This conversation has no result of a step {quoted(step[:100])}. Use the step that is named beside a "
                "result which is not shown whole."
            )
        return found

    def report_progress(self, percent: float | None, note: str) -> None:
        note = mended(note)
        task = replace(self._running.task, progress_percent=percent, progress_note=note)
        self._running.update_task(self._decision, task)
        self._decision.tell(TaskProgress(agent_id=task.agent_id, task_id=task.id, percent=percent, note=note))

    def _create_if_missing(self, name: str, check: Callable[[EffectiveLimits], object]) -> None:
        """Whoever is given work by the name of a template is created, if that is wanted here.

        The step's result is kept with this decision whatever comes of the work, and so would be the agent: the work is
        therefore checked first.
        """
        creation = self._agent.parts.creation
        missing = creation.missing(name)
        if missing is not None:
            self._check_tree()
            creation.create_missing(self._decision, missing, check, by=self._agent)

    def _check_tree(self) -> None:
        """What is done next gives somebody work: the tree of the task must have room for it."""
        self._agent.parts.trees.check_room(self._decision, self._running.task)

    @property
    def _mail_id(self) -> str:
        """The same step sends the same mail. Callers cannot give ids with this sign, so that the two never meet."""
        return f"{self._step.id}~mail"

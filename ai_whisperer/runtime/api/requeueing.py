"""Ended tasks that are taken up again, or dismissed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from ai_whisperer.core.tasks import summary_of
from ai_whisperer.domain.mail import MailState
from ai_whisperer.domain.notifications.tasks import TaskBefore, TaskDismissed, TaskQueued
from ai_whisperer.domain.tasks import Retried, StepKind, StepState, TaskRecord, TaskState
from ai_whisperer.runtime.life.open_session import OpenSession
from ai_whisperer.runtime.session.decision import Decision


def requeue(session: OpenSession, decision: Decision, task: TaskRecord) -> TaskRecord:
    """Make an ended task a queued one again: a request that failed may be asked anew. See `queue_when_durable`."""
    session.mail.reclaim(decision, task)
    for step in session.kernel.store.steps(task.session_id, task.id):
        if step.kind is StepKind.MODEL and step.state is StepState.FAILED:
            anew = replace(step, state=StepState.STARTED, failures=0, outage_seconds=0.0, error=None, finished_at=None)
            decision.unit.put_step(anew)
    queued = replace(
        task,
        state=TaskState.QUEUED,
        attempts=0,
        restarts=0,
        not_before=None,
        error=None,
        finished_at=None,
        dismissed_at=None,
    )
    decision.unit.update_task(queued)
    if task.dismissed_at is not None:
        decision.unit.update_dismissal(queued)
    session.counters.dead_tasks[task.agent_id] -= task.is_dead_letter
    session.counters.retried[Retried.TASK] += 1
    if task.finished_at is not None:
        decision.unit.agent_was_active(task)  # the task itself does not tell any more when it ended
    decision.tell(TaskQueued.of(queued, summary=summary_of(queued), again=TaskBefore.of(task)))
    session.rooms.task_taken_up(decision, queued)
    return queued


def dismiss(session: OpenSession, decision: Decision, task: TaskRecord) -> TaskRecord:
    """Take a dead letter off the list, and with it the mail that it was for."""
    dismissed = replace(task, dismissed_at=decision.at)
    decision.unit.update_dismissal(dismissed)
    session.counters.dead_tasks[task.agent_id] -= task.is_dead_letter
    decision.tell(TaskDismissed(agent_id=task.agent_id, task_id=task.id))
    mail = None if task.mail_id is None else session.mail.find(task.mail_id)
    if mail is not None and mail.state is MailState.DEAD and mail.task_id == task.id:
        session.mail.move(decision, mail, MailState.ARCHIVED)
    return dismissed


def queue_when_durable(session: OpenSession, tasks: Sequence[TaskRecord], durable: asyncio.Future[None]) -> None:
    """Put tasks into their queues once their journals are durable, so that these can be read when their turn comes."""

    def queue(future: asyncio.Future[None]) -> None:
        for task in tasks:
            del session.roster.returning[task.id]
        if future.exception() is not None or session.kernel.closing:
            return
        for task in tasks:
            session.roster.agents[task.agent_id].work.queue_up(task)
        for agent_id in dict.fromkeys(task.agent_id for task in tasks):
            session.roster.agents[agent_id].work.dispatch()

    session.roster.returning.update((task.id, task) for task in tasks)
    durable.add_done_callback(queue)

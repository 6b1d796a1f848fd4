"""Ended tasks that are taken up again, or dismissed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ai_whisperer.core.tasks import summary_of
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.mail import MailRecord, MailState
from ai_whisperer.domain.notifications.tasks import TaskBefore, TaskDismissed, TaskQueued
from ai_whisperer.domain.tasks import Retried, StepKind, StepRecord, StepState, TaskRecord, TaskState
from ai_whisperer.runtime.life.open_session import OpenSession
from ai_whisperer.runtime.messaging.continuations import Earlier, earlier_of
from ai_whisperer.runtime.session.decision import Decision


class EndedTask(Struct, frozen=True):
    """A task that has ended, with its journal, its mail, what came before it, and what its tree has used."""

    task: TaskRecord
    steps: list[StepRecord]
    mail: MailRecord | None
    earlier: Earlier
    used: Usage


async def look_up_ended(session: OpenSession, task: TaskRecord) -> EndedTask:
    """Look up what is needed to take the task up again. Hold the reads until that is decided."""
    steps = await session.kernel.reads.steps(task.id)
    earlier = await earlier_of(session.kernel.reads, task)
    used = task.usage if task.budget is None else await session.trees.usage_of(task)
    mail = None if task.mail_id is None else await session.mail.find(task.mail_id)
    return EndedTask(task, steps, mail, earlier, used)


def requeue(session: OpenSession, decision: Decision, ended: EndedTask) -> TaskRecord:
    """Make an ended task a queued one again: a request that failed may be asked anew. See `queue_when_durable`."""
    task = ended.task
    session.mail.reclaim(decision, task, ended.mail)
    session.continuations.take_up(task, ended.earlier)
    for index, step in enumerate(ended.steps):
        if step.kind is not StepKind.TOOL and step.state is StepState.FAILED:
            anew = replace(step, state=StepState.STARTED, failures=0, outage_seconds=0.0, error=None, finished_at=None)
        elif step.answer is not None and step.answer.objection:
            anew = replace(step, answer=replace(step.answer, excused=True))
        else:
            continue
        ended.steps[index] = anew
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
    decision.tell(TaskQueued.of(queued, summary=summary_of(queued), again=TaskBefore.of(task)))
    session.rooms.task_taken_up(decision, queued)
    return queued


def dismiss(session: OpenSession, decision: Decision, task: TaskRecord, mail: MailRecord | None) -> TaskRecord:
    """Take a dead letter off the list, and with it the mail that it was for."""
    dismissed = replace(task, dismissed_at=decision.at)
    decision.unit.update_dismissal(dismissed)
    session.counters.dead_tasks[task.agent_id] -= task.is_dead_letter
    if task.id in session.kernel.ended_lately:
        session.kernel.ended_lately.keep(task.id, dismissed, until=decision.when_readable)
    decision.tell(TaskDismissed(agent_id=task.agent_id, task_id=task.id))
    if mail is not None and mail.state is MailState.DEAD and mail.task_id == task.id:
        session.mail.move(decision, mail, MailState.ARCHIVED)
    return dismissed


def queue_when_durable(
    session: OpenSession, tasks: Sequence[tuple[TaskRecord, list[StepRecord]]], durable: asyncio.Future[None]
) -> None:
    """Put tasks with their journals into their queues once that is durable."""

    def queue(future: asyncio.Future[None]) -> None:
        for task, _ in tasks:
            del session.roster.returning[task.id]
        if future.exception() is not None or session.kernel.closing:
            return
        for task, steps in tasks:
            session.roster.agents[task.agent_id].work.queue_up(task, steps)
        for agent_id in dict.fromkeys(task.agent_id for task, _ in tasks):
            session.roster.agents[agent_id].work.dispatch()

    session.roster.returning.update((task.id, task) for task, _ in tasks)
    durable.add_done_callback(queue)

"""What follows from the end of a task for others than its agent. All of it joins the decision that ends the task."""

from __future__ import annotations

from collections.abc import Iterable

from ai_whisperer.core.blame import trial_key
from ai_whisperer.core.queueing import Work
from ai_whisperer.core.supervising import restart_key
from ai_whisperer.domain.tasks import TaskRecord, TaskState
from ai_whisperer.domain.waits import WaitKind
from ai_whisperer.runtime.agents.parts import Parts
from ai_whisperer.runtime.session.decision import Decision


def task_ended(parts: Parts, decision: Decision, task: TaskRecord) -> None:
    """The task has ended for good: completed, failed, cancelled or dead; a task that is continued has not."""
    parts.deadlines.forget(task)
    if task.not_before is not None:
        parts.kernel.timers.cancel(restart_key(task.id))
        decision.unit.delete_timer(task.session_id, trial_key(task.id))
    parts.approvals.task_ended(decision, task)
    for wait in parts.waits.of_task(task.id):
        if wait.kind is WaitKind.REPLY:
            parts.switch.abandon(decision, wait)
        elif wait.kind is WaitKind.RESOURCE:
            parts.turns.abandon(wait)
        else:
            parts.locks.abandon(decision, wait)
    parts.locks.release_all(decision, task)
    if task.answers_a_switch:
        parts.switch.task_ended(decision, task)
    if task.origin is not None and task.origin.report_to is not None:
        parts.delegation.report(decision, task, task.origin.report_to)
    parts.rooms.task_ended(decision, task)
    if task.state.is_dead_letter:
        parts.supervisor.task_failed(decision, task)
    elif task.state is TaskState.COMPLETED:
        parts.supervisor.task_completed(task)


def task_continued(parts: Parts, decision: Decision, task: TaskRecord, following: TaskRecord) -> None:
    """Another task goes on with this one, and holds and owes what it did."""
    parts.deadlines.forget(task)
    parts.approvals.task_continued(decision, task)
    parts.locks.task_continued(decision, task, following)
    if task.answers_a_switch:
        parts.switch.task_continued(task, following)


def agent_stopped(parts: Parts, decision: Decision, waiting: Iterable[Work]) -> None:
    """The agent has stopped, and what waits in its queues waits for a start: nobody else should wait for that."""
    for item in waiting:
        parts.switch.put_off(decision, item)
        if isinstance(item, TaskRecord):
            parts.locks.release_all(decision, item)

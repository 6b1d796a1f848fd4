"""What follows from the end of a task for others than its agent. All of it joins the decision that ends the task."""

from __future__ import annotations

from collections.abc import Iterable

from ai_whisperer.core.blame import trial_key
from ai_whisperer.core.queueing import Work
from ai_whisperer.core.supervising import restart_key
from ai_whisperer.domain.tasks import TaskRecord, TaskState
from ai_whisperer.domain.waits import WaitKind
from ai_whisperer.runtime.messaging.delegation import report
from ai_whisperer.runtime.session.workspace import Decision, Workspace


def task_ended(workspace: Workspace, decision: Decision, task: TaskRecord) -> None:
    """The task has ended for good: completed, failed, cancelled or dead; a task that is continued has not."""
    workspace.deadlines.forget(task)
    if task.not_before is not None:
        workspace.scheduler.cancel(restart_key(task.id))
        decision.unit.delete_timer(task.session_id, trial_key(task.id))
    workspace.approvals.task_ended(decision, task)
    for wait in workspace.waits.of_task(task.id):
        if wait.kind is WaitKind.REPLY:
            workspace.switchboard.abandon(decision, wait)
        elif wait.kind is WaitKind.RESOURCE:
            workspace.admission.resources.abandon(wait)
        else:
            workspace.locks.abandon(decision, wait)
    workspace.locks.release_all(decision, task)
    if task.answers_a_switch:
        workspace.switchboard.task_ended(decision, task)
    if task.origin is not None and task.origin.report_to is not None:
        report(workspace, decision, task, task.origin.report_to)
    workspace.rooms.task_ended(decision, task)
    if task.state.is_dead_letter:
        workspace.supervisor.task_failed(decision, task)
    elif task.state is TaskState.COMPLETED:
        workspace.supervisor.task_completed(task)


def task_continued(workspace: Workspace, decision: Decision, task: TaskRecord, following: TaskRecord) -> None:
    """Another task goes on with this one, and holds and owes what it did."""
    workspace.deadlines.forget(task)
    workspace.approvals.task_continued(decision, task)
    workspace.locks.task_continued(decision, task, following)
    if task.answers_a_switch:
        workspace.switchboard.task_continued(task, following)


def agent_stopped(workspace: Workspace, decision: Decision, waiting: Iterable[Work]) -> None:
    """The agent has stopped, and what waits in its queues waits for a start: nobody else should wait for that."""
    for item in waiting:
        workspace.switchboard.put_off(decision, item)
        if isinstance(item, TaskRecord):
            workspace.locks.release_all(decision, item)

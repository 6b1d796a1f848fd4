"""What follows from the end of a task for others than its agent. All of it joins the decision that ends the task."""

from __future__ import annotations

from ai_whisperer.records import TaskRecord
from ai_whisperer.runtime.workspace import Decision, Workspace


def task_ended(workspace: Workspace, decision: Decision, task: TaskRecord) -> None:
    """The task has ended for good: completed, failed, cancelled or set aside; a task that is continued has not."""
    workspace.rooms.task_ended(decision, task)

"""How tasks have ended, in words."""

from __future__ import annotations

from collections.abc import Iterable

from ai_whisperer.domain.tasks import TaskRecord, TaskState

WELL = (TaskState.COMPLETED, TaskState.CONTINUED)


def troubles_of(tasks: Iterable[TaskRecord]) -> list[str]:
    """What became of the tasks that did not end well, each in a sentence."""
    return [
        f"The task of {task.agent_id} is {task.state}: {task.error.message if task.error else 'no reason was recorded'}"
        for task in tasks
        if task.state not in WELL
    ]

"""Tasks that must end by a time."""

from __future__ import annotations

from functools import partial

from ai_whisperer.errors import DeadlineError
from ai_whisperer.records import TaskRecord
from ai_whisperer.runtime.workspace import Workspace


class Deadlines:
    """Ends tasks whose time is over, whether they run or wait. The times are in the tasks' records."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def watch(self, task: TaskRecord) -> None:
        """Let the task fail at its deadline, at once if that is past."""
        if task.deadline_at is not None:
            self._workspace.scheduler.at(task.deadline_at, _key(task), partial(self._time_is_over, task))

    def forget(self, task: TaskRecord) -> None:
        """The task has ended."""
        if task.deadline_at is not None:
            self._workspace.scheduler.cancel(_key(task))

    def _time_is_over(self, task: TaskRecord) -> None:
        agent = self._workspace.agents[task.agent_id]
        cause = f"timer:{_key(task)}"
        self._workspace.chores.run(agent.fail_task(task.id, cause, _error_of(task)), name=f"deadline of {task.id}")


def overdue(task: TaskRecord, *, now: float) -> DeadlineError | None:
    """The error with which the task fails if its time is over: then it begins no more steps."""
    return _error_of(task) if task.deadline_at is not None and task.deadline_at <= now else None


def _error_of(task: TaskRecord) -> DeadlineError:
    return DeadlineError(f"The time for task {task.id} is over. Give it more time or split it.")


def _key(task: TaskRecord) -> str:
    return f"deadline:{task.id}"

"""Tasks that must end by a time."""

from __future__ import annotations

from functools import partial

from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.errors import DeadlineError, TaskTimeError
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Loop, Roster

_TASK_TIME = "task-seconds"


class Deadlines:
    """Ends tasks whose time is over, whether they run or wait. The times are in the tasks' records.

    How long a task may run is a limit of its agent. One timer looks after all of them, when the first may be over: a
    task that ends in time costs nothing.
    """

    def __init__(self, kernel: Kernel, roster: Roster) -> None:
        self._kernel = kernel
        self._roster = roster
        self._next_look: float | None = None

    def begun(self, task: TaskRecord, max_seconds: float) -> None:
        """Let the task fail when it has run for so long, counted from its start."""
        due_at = (task.started_at or 0.0) + max_seconds
        if self._next_look is None or due_at < self._next_look:
            self._next_look = due_at
            self._kernel.timers.at(due_at, _TASK_TIME, self.look_again)

    def none_run(self) -> None:
        """The last task that ran has ended."""
        self._next_look = None
        self._kernel.timers.cancel(_TASK_TIME)

    def look_again(self) -> None:
        """Let those fail that have run too long by now, and see when the next one may have."""
        self._next_look = None
        now = self._kernel.clock.now()
        for loop in list(self._roster.running.values()):
            task, most = loop.task, loop.agent.limits.max_task_seconds
            if (task.started_at or now) + most > now:
                self.begun(task, most)
                continue
            error = TaskTimeError(
                f"Task {task.id} has run for {now - (task.started_at or now):,.0f} seconds and may run for "
                f"{most:,.0f}. Raise max_task_seconds or split the task."
            )
            failing = loop.agent.work.fail_task(task.id, f"timer:{_TASK_TIME}", error)
            self._kernel.background.run(failing, name=f"end of {task.id}")

    def watch(self, task: TaskRecord) -> None:
        """Let the task fail at its deadline, at once if that is past."""
        if task.deadline_at is not None:
            self._kernel.timers.at(task.deadline_at, _key(task), partial(self._time_is_over, task))

    def task_ended(self, _: Decision, task: TaskRecord, __: TaskRecord | None = None) -> None:
        """The task has ended, or another continues it."""
        if task.origin is not None and task.deadline_at is not None:
            self._kernel.timers.cancel(_key(task))

    def _time_is_over(self, task: TaskRecord) -> None:
        agent, loop = self._roster.agents[task.agent_id], self._roster.running.get(task.id)
        error = _error_of(task, "" if loop is None else _failure_of_model(loop))
        failing = agent.work.fail_task(task.id, f"timer:{_key(task)}", error)
        self._kernel.background.run(failing, name=f"deadline of {task.id}")


def overdue(task: TaskRecord, *, now: float) -> DeadlineError | None:
    """The error with which the task fails if its time is over: then it begins no more steps."""
    return _error_of(task) if task.deadline_at is not None and task.deadline_at <= now else None


def _error_of(task: TaskRecord, failure: str = "") -> DeadlineError:
    """`failure`: why the model could not be asked when the time was over."""
    if failure:
        return DeadlineError(f"The time for task {task.id} is over, and its model had not answered: {failure}")
    return DeadlineError(f"The time for task {task.id} is over. Give it more time or split it.")


def _failure_of_model(loop: Loop) -> str:
    """Why the last request failed, if the loop waits to ask again."""
    steps = loop.running.journal.steps
    waits = bool(steps) and steps[-1].retry_at is not None
    return steps[-1].error.message if waits and steps[-1].error is not None else ""


def _key(task: TaskRecord) -> str:
    return f"deadline:{task.id}"

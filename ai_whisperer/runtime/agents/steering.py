"""Messages to a task at work: the tasks that wait to join the one in their thread, and what they have to say to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ai_whisperer.core.queueing import WorkQueue
from ai_whisperer.domain.tasks import Said, StepRecord, TaskRecord
from ai_whisperer.runtime.limits.deadlines import overdue


class Steering:
    """Those of one agent, by thread, in the order in which they came in. They are in the queue as any other."""

    __slots__ = ("_queue", "_threads")

    def __init__(self, queue: WorkQueue) -> None:
        self._queue = queue
        self._threads: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._threads)

    def waiting_in(self, thread_id: str) -> Sequence[str]:
        """The ids of the tasks that wait to join the one of this thread."""
        return self._threads.get(thread_id, ())

    def tasks_in(self, thread_id: str) -> Iterator[TaskRecord]:
        """The tasks themselves."""
        found = map(self._queue.find_task, self.waiting_in(thread_id))
        return (each for each in found if each is not None)

    def add(self, task: TaskRecord) -> None:
        self._threads.setdefault(task.thread_id, []).append(task.id)

    def remove(self, task: TaskRecord) -> None:
        """The task has left the queue: it is begun, ended, or has joined another."""
        waiting = [each for each in self._threads.pop(task.thread_id, ()) if each != task.id]
        if waiting:
            self._threads[task.thread_id] = waiting

    def said_to(self, task: TaskRecord, *, now: float) -> tuple[Said, ...] | None:
        """What they have to say to this task, which is about to ask its model; None if nobody waits.

        Those whose time is over say nothing: they are about to fail.
        """
        said = (
            Said(task_id=each.id, text=each.prompt, parts=each.parts or ())
            for each in self.tasks_in(task.thread_id)
            if overdue(each, now=now) is None
        )
        return tuple(said) or None

    def is_being_said(self, task_id: str, last_steps: Iterable[StepRecord]) -> bool:
        """Whether a model is asked with the prompt of this task, and has not answered.

        `last_steps` are those that the loops of the agent are at.
        """
        if not self or self._queue.find_task(task_id) is None:
            return False
        return any(each.task_id == task_id for step in last_steps if step.answer is None for each in step.said or ())

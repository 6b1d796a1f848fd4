"""The stream of one task's events, over whatever brings its records and notifications: a session here or a client."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from ai_whisperer.core.following import Follower
from ai_whisperer.core.tasks import continuation_id
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.task_events import TaskEnded, TaskEvent
from ai_whisperer.domain.tasks import StepRecord, TaskRecord, TaskState
from ai_whisperer.errors import ClosedError


class TaskSource(Protocol):
    """Where a stream reads. What it reads is on disk."""

    async def begin(self) -> None:
        """Listen from now on."""
        ...

    async def next_note(self) -> Notification:
        """The next notification; raises `StopAsyncIteration` when nothing more comes."""
        ...

    async def task(self, task_id: str) -> TaskRecord: ...

    async def steps(self, task_id: str, *, after: int) -> list[StepRecord]: ...

    async def answer(self, task: TaskRecord) -> str | None:
        """The final answer of a task that has ended, in all its parts, if it has one."""
        ...

    async def close(self) -> None: ...


class TaskStream:
    """An iterator over what happens to a task, from its beginning, also if it lies in the past; it ends with the task.

    The last event is a `TaskEnded`. A task that is continued goes over to the events of its continuation. A reader may
    take its time: nothing is kept for it but some pieces of text, and only those can be missed. Raises `ClosedError` if
    the session is closed before the task has ended.
    """

    def __init__(self, task_id: str, source: TaskSource) -> None:
        self._task_id = task_id
        self._source = source
        self._follower: Follower | None = None
        self._events: deque[TaskEvent] = deque()
        self._is_stale = True
        self._has_ended = False

    def __aiter__(self) -> TaskStream:
        return self

    async def __anext__(self) -> TaskEvent:
        while not self._events:
            if self._has_ended:
                await self.close()
                raise StopAsyncIteration
            if self._follower is None:
                await self._source.begin()
                self._follower = Follower(await self._source.task(self._task_id))
            if self._is_stale:  # also if a look was cancelled
                await self._look(self._follower)
            else:
                await self._read_on(self._follower)
        return self._events.popleft()

    async def __aenter__(self) -> TaskStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop listening."""
        self._has_ended = True
        await self._source.close()

    async def _read_on(self, follower: Follower) -> None:
        try:
            note = await self._source.next_note()
        except StopAsyncIteration:
            raise ClosedError("The session was closed before the task ended; the task resumes later.") from None
        piece = follower.piece(note)
        if piece is not None:
            self._events.append(piece)
        elif note.seq and follower.hear(note):
            self._is_stale = True

    async def _look(self, follower: Follower) -> None:
        """Take what is new of the task, and of what continues it."""
        while True:
            task = await self._source.task(follower.task_id)
            steps = await self._source.steps(follower.task_id, after=follower.settled)
            self._events.extend(follower.look(task, steps))
            if task.state is not TaskState.CONTINUED:
                break
            self._follower = follower = Follower(await self._source.task(continuation_id(task)))
        if task.state.ended:
            at = task.finished_at or task.created_at
            answer = await self._source.answer(task)
            self._events.append(TaskEnded(task_id=task.id, agent_id=task.agent_id, at=at, task=task, answer=answer))
            self._has_ended = True
        self._is_stale = False

"""What a stream of a task's events reads of an open session."""

from __future__ import annotations

from ai_whisperer.core.paging import can_be_id
from ai_whisperer.core.tasks import base_id
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import StepRecord, TaskRecord
from ai_whisperer.errors import UnknownTaskError
from ai_whisperer.runtime.agents.status import shown_steps
from ai_whisperer.runtime.life.open_session import OpenSession
from ai_whisperer.runtime.messaging.continuations import answer_of
from ai_whisperer.runtime.session.log import Subscription


def unknown_task(session_id: str, task_id: object) -> UnknownTaskError:
    return UnknownTaskError(
        f"There is no task {task_id!r} in session '{session_id}'. List its tasks (`whisperer tasks`), or name another "
        "session."
    )


class SessionTaskSource:
    """Reads from the store, never from memory, which may be ahead of it."""

    def __init__(self, session: OpenSession, task_id: str) -> None:
        self._session = session
        self._task_id = task_id
        self._subscription: Subscription | None = None

    async def begin(self) -> None:
        if self._subscription is None:
            bus, of_task = self._session.kernel.log, base_id(await self.task(self._task_id))
            self._subscription = bus.subscribe(after=bus.last_seq, deltas=True, of_task=of_task)
        await self._session.kernel.flushed()

    async def next_note(self) -> Notification:
        if self._subscription is None:
            raise StopAsyncIteration
        return await anext(self._subscription)

    async def task(self, task_id: str) -> TaskRecord:
        found = await self._session.kernel.reads.task(task_id) if can_be_id(task_id) else None
        if found is None:
            raise unknown_task(self._session.kernel.session_id, task_id)
        return found

    async def steps(self, task_id: str, *, after: int) -> list[StepRecord]:
        return await shown_steps(self._session, task_id, after=after)

    async def answer(self, task: TaskRecord) -> str | None:
        return None if task.result is None else await answer_of(self._session.kernel.reads, task)

    async def close(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.close()

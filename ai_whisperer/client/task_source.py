"""What a stream of a task's events reads of a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ai_whisperer.client.events import EventStream
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import StepRecord, TaskRecord


class TaskReader(Protocol):
    """The part of the client that is needed here."""

    async def get_task(self, task: str) -> TaskRecord: ...

    async def list_steps(self, task: str, *, after: int = 0) -> list[StepRecord]: ...

    async def answer_of(self, task: TaskRecord) -> str: ...


class ClientTaskSource:
    """Listens on a connection of its own, which goes on over outages; asks for records as the client does."""

    def __init__(self, client: TaskReader, listen: Callable[[], EventStream]) -> None:
        self._client = client
        self._listen = listen
        self._events: EventStream | None = None

    async def begin(self) -> None:
        if self._events is None:
            self._events = self._listen()
        await self._events.__aenter__()

    async def next_note(self) -> Notification:
        if self._events is None:
            raise StopAsyncIteration
        return await anext(self._events)

    async def task(self, task_id: str) -> TaskRecord:
        return await self._client.get_task(task_id)

    async def steps(self, task_id: str, *, after: int) -> list[StepRecord]:
        return await self._client.list_steps(task_id, after=after)

    async def answer(self, task: TaskRecord) -> str | None:
        return None if task.result is None else await self._client.answer_of(task)

    async def close(self) -> None:
        events, self._events = self._events, None
        if events is not None:
            await events.close()

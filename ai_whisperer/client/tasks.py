"""Waiting for tasks from outside, and following them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, Unpack, overload

from ai_whisperer.client.base import AgentRef, ClientBase
from ai_whisperer.client.events import EventStream
from ai_whisperer.core.budgets import deadline_after
from ai_whisperer.core.output_types import value_of
from ai_whisperer.core.tasks import check_answered, whole_answer
from ai_whisperer.domain.attachments import InputPart
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import Budget, Priority, StepRecord, TaskRecord
from ai_whisperer.protocol import tasks
from ai_whisperer.session_api import OutputType, SessionApi, TaskRef, TaskTerms
from ai_whisperer.task_stream import TaskStream

T = TypeVar("T")

_ONE_WAIT_SECONDS = 30.0
"""So long one request waits for a task."""


class ClientTasks(ClientBase, SessionApi[AgentRef]):
    """The tasks of a session: what takes more than a request."""

    async def wait_task(self, task: TaskRef, *, timeout_seconds: float | None = None) -> TaskRecord:
        """Wait until the task has ended and return it. A continued task has ended when its last continuation has.

        If it has not after `timeout_seconds`, it is returned as it is then. A task of an agent that is stopped, paused,
        asleep or without its tools waits, and so does this.
        """
        deadline_after(timeout_seconds, now=0.0)
        task_id = self._task_id(task)
        loop = asyncio.get_running_loop()
        until = None if timeout_seconds is None else loop.time() + timeout_seconds
        while True:
            left = _ONE_WAIT_SECONDS if until is None else min(_ONE_WAIT_SECONDS, max(0.0, until - loop.time()))
            params = tasks.WaitTask(session_id=self._session_id, task_id=task_id, timeout_seconds=left)
            known = await self._hub.ask_late(tasks.WAIT_TASK, params)
            if known.state.ended and not known.state.is_passed_on:
                return known
            if until is not None and loop.time() >= until:
                return known

    @overload
    async def run_task(
        self, agent_id: AgentRef, prompt: str, *, output: None = None, **terms: Unpack[TaskTerms]
    ) -> str: ...
    @overload
    async def run_task(self, agent_id: AgentRef, prompt: str, *, output: type[T], **terms: Unpack[TaskTerms]) -> T: ...
    @overload
    async def run_task(
        self, agent_id: AgentRef, prompt: str, *, output: Mapping[str, Any], **terms: Unpack[TaskTerms]
    ) -> Any: ...
    async def run_task(
        self,
        agent_id: AgentRef,
        prompt: str,
        *,
        priority: Priority | str = Priority.NORMAL,
        thread_id: str | None = None,
        task_id: str | None = None,
        timeout_seconds: float | None = None,
        budget: Budget | None = None,
        output: OutputType | None = None,
        parts: Sequence[InputPart] = (),
    ) -> Any:
        task = await self.send_task(
            agent_id,
            prompt,
            priority=priority,
            thread_id=thread_id,
            task_id=task_id,
            timeout_seconds=timeout_seconds,
            budget=budget,
            output=output,
            parts=parts,
        )
        ended = await self.wait_task(task)
        return await self.answer_of(ended) if output is None else value_of(output, check_answered(ended).output)

    async def answer_of(self, task: TaskRecord) -> str:
        """The whole final answer of a task that has ended, with what it continues; raises `TaskEndedError`."""
        check_answered(task)
        # One that was waited for has the whole answer already.
        parts = [await self.get_task(task.id) if task.continuation else task]
        while parts[0].continuation and parts[0].parent_id is not None:
            parts.insert(0, await self.get_task(parts[0].parent_id))
        return whole_answer(parts)

    def stream(self, task: TaskRef) -> TaskStream:
        """An iterator over what happens to a task, from its beginning to its end: `async for event in …`.

        The events are the records of `ai_whisperer.domain.task_events`; the last is a `TaskEnded`. It continues over
        lost connections, and works for a task that has ended too. `UnknownTaskError` comes with the first event.
        """
        listen = partial(self._hub.stream, self._session_id, after=None, deltas=True)
        return TaskStream(self._task_id(task), _TaskSource(self, listen))


class _TaskSource:
    """What a stream of a task reads: on a connection of its own, which goes on over outages, and records by calls."""

    def __init__(self, client: ClientTasks, listen: Callable[[], EventStream]) -> None:
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

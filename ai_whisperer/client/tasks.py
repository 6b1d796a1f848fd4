"""Giving tasks to agents from outside, waiting for them, taking them back."""

from __future__ import annotations

import asyncio
from functools import partial

from ai_whisperer.client.base import ANY_SIZE, AgentRef, ClientBase, TaskRef, agent_name
from ai_whisperer.client.task_source import ClientTaskSource
from ai_whisperer.core.budgets import check_budget, deadline_after
from ai_whisperer.core.mailbox import priority_of
from ai_whisperer.core.paging import checked_id, checked_limit, checked_position
from ai_whisperer.core.tasks import check_answered, whole_answer
from ai_whisperer.core.text import check_reason, check_text
from ai_whisperer.domain.mail import DeadLetters
from ai_whisperer.domain.tasks import Budget, Priority, RetriedTasks, StepRecord, TaskRecord, TaskState, ThreadSummary
from ai_whisperer.protocol import tasks
from ai_whisperer.protocol.agents import SEND_TASK, SendTask, TaskBudget
from ai_whisperer.task_stream import TaskStream

_ONE_WAIT_SECONDS = 30.0
"""So long one request waits for a task."""


class ClientTasks(ClientBase):
    """The tasks of a session."""

    async def send_task(
        self,
        agent_id: AgentRef,
        prompt: str,
        *,
        priority: Priority | str = Priority.NORMAL,
        thread_id: str | None = None,
        task_id: str | None = None,
        timeout_seconds: float | None = None,
        budget: Budget | None = None,
    ) -> TaskRecord:
        """Give the agent a task. When this returns the task is on disk. Tasks of one thread share their history.

        `timeout_seconds` and `budget` hold for the task and for everything that it causes. A caller that gives a
        `task_id` may call again with the same content: the task is given once.
        """
        name = agent_name(agent_id)
        check_text("prompt", prompt, max_bytes=ANY_SIZE)
        deadline_after(timeout_seconds, now=0.0)
        if budget is not None:
            check_budget(budget)
        params = SendTask(
            session_id=self._session_id,
            agent_id=name,
            prompt=prompt,
            priority=priority_of(priority),
            thread_id=None if thread_id is None else checked_id(thread_id),
            task_id=self._new_id() if task_id is None else checked_id(task_id),
            timeout_seconds=timeout_seconds,
            budget=None
            if budget is None
            else TaskBudget(max_tokens=budget.max_tokens, max_cost_usd=budget.max_cost_usd),
        )
        return await self._ask(SEND_TASK, params)

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
            if known.state.ended and known.state is not TaskState.CONTINUED:
                return known
            if until is not None and loop.time() >= until:
                return known

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
    ) -> str:
        """Give a task as `send_task` does, wait for it, return the final answer.

        Raises `TaskEndedError` if there is none, for instance because `timeout_seconds` or the `budget` was used up.
        The answer of a task that was continued is the answers of all its parts. The same call again with the same
        `task_id`, also after a restart, waits for the same task.
        """
        task = await self.send_task(
            agent_id,
            prompt,
            priority=priority,
            thread_id=thread_id,
            task_id=task_id,
            timeout_seconds=timeout_seconds,
            budget=budget,
        )
        return await self.answer_of(await self.wait_task(task))

    async def answer_of(self, task: TaskRecord) -> str:
        """The whole final answer of a task that has ended, with what it continues; raises `TaskEndedError`."""
        check_answered(task)
        parts = [task]
        while parts[0].continuation and parts[0].parent_id is not None:
            parts.insert(0, await self.get_task(parts[0].parent_id))
        return whole_answer(parts)

    async def cancel_task(self, task: TaskRef, *, reason: str = "cancelled by the user") -> TaskRecord:
        """End a task. When this returns, what it ran has ended. Raises `StateError` if it has ended already."""
        check_reason(reason)
        params = tasks.CancelTask(session_id=self._session_id, task_id=self._task_id(task), reason=reason)
        return await self._do(tasks.CANCEL_TASK, params)

    async def cancel_tree(self, task: TaskRef, *, reason: str = "cancelled by the user") -> list[TaskRecord]:
        """End a task and everything that it caused; returns the tasks that were cancelled."""
        check_reason(reason)
        params = tasks.CancelTree(session_id=self._session_id, task_id=self._task_id(task), reason=reason)
        return (await self._do(tasks.CANCEL_TREE, params)).tasks

    async def retry_task(self, task: TaskRef) -> TaskRecord:
        """Take a failed, cancelled or dead task up again at the step where it ended; no finished step is repeated."""
        params = tasks.RetryTask(session_id=self._session_id, task_id=self._task_id(task))
        return await self._do(tasks.RETRY_TASK, params)

    async def retry_failed_tasks(self, agent_id: AgentRef | None = None) -> RetriedTasks:
        """Retry all failed tasks of an agent, or of all agents, that nobody has dismissed; the oldest first.

        Tasks at which the process died and cancelled ones are left alone. Those that cannot be retried, since their
        time is over, their budget is spent or the queue is full, are told with the reason.
        """
        name = None if agent_id is None else agent_name(agent_id)
        params = tasks.RetryFailed(session_id=self._session_id, agent_id=name)
        return await self._do(tasks.RETRY_FAILED, params)

    async def dismiss_task(self, task: TaskRef) -> TaskRecord:
        """Take a failed or dead task off the dead letters; the mail that it was for is archived.

        Everything about it is kept, and it can still be retried. Raises `StateError` if it is no dead letter.
        """
        params = tasks.DismissTask(session_id=self._session_id, task_id=self._task_id(task))
        return await self._do(tasks.DISMISS_TASK, params)

    async def get_task(self, task: TaskRef) -> TaskRecord:
        """The task as it is now; raises `UnknownTaskError`."""
        params = tasks.GetTask(session_id=self._session_id, task_id=self._task_id(task))
        return await self._ask(tasks.GET_TASK, params)

    async def list_tasks(self, agent_id: AgentRef | None = None, *, limit: int = 100) -> list[TaskRecord]:
        """The tasks of an agent, or of all agents, the newest first."""
        name = None if agent_id is None else agent_name(agent_id)
        params = tasks.ListTasks(session_id=self._session_id, agent_id=name, limit=checked_limit(limit))
        return (await self._ask(tasks.LIST_TASKS, params)).tasks

    async def get_task_tree(self, task: TaskRef) -> list[TaskRecord]:
        """All tasks of the tree that the task belongs to, the oldest first; `parent_id` says what caused what."""
        params = tasks.GetTree(session_id=self._session_id, task_id=self._task_id(task))
        return (await self._ask(tasks.GET_TREE, params)).tasks

    async def list_steps(self, task: TaskRef, *, after: int = 0) -> list[StepRecord]:
        """The journal of a task, or what follows the step of that number."""
        params = tasks.ListSteps(
            session_id=self._session_id, task_id=self._task_id(task), after=checked_position(after)
        )
        return (await self._ask(tasks.LIST_STEPS, params)).steps

    def stream(self, task: TaskRef) -> TaskStream:
        """An iterator over what happens to a task, from its beginning to its end: `async for event in …`.

        The events are the records of `ai_whisperer.domain.task_events`; the last is a `TaskEnded`. It continues over
        lost connections, and works for a task that has ended too. `UnknownTaskError` comes with the first event.
        """
        listen = partial(self._hub.stream, self._session_id, after=None, deltas=True)
        return TaskStream(self._task_id(task), ClientTaskSource(self, listen))

    async def list_threads(self, agent_id: AgentRef) -> list[ThreadSummary]:
        """The conversations of an agent."""
        params = tasks.ListThreads(session_id=self._session_id, agent_id=agent_name(agent_id))
        return (await self._ask(tasks.LIST_THREADS, params)).threads

    async def dead_letters(self) -> DeadLetters:
        """The tasks and mails that could not be done and wait for a person."""
        return await self._ask(tasks.LIST_DEAD_LETTERS, tasks.ListDeadLetters(session_id=self._session_id))

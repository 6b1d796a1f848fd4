"""Answers to `task.*`."""

from __future__ import annotations

import asyncio

from ai_whisperer.domain.mail import DeadLetters
from ai_whisperer.domain.tasks import RetriedTasks, TaskRecord
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.protocol import tasks
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.calls import Caller, answers, reads

_LONGEST_WAIT_SECONDS = 24 * 3600.0


@reads(tasks.GET_TASK)
def get_task(session: AsyncAgentSessionManager, params: tasks.GetTask) -> TaskRecord:
    return session.get_task(params.task_id)


@reads(tasks.LIST_TASKS)
def list_tasks(session: AsyncAgentSessionManager, params: tasks.ListTasks) -> tasks.TaskList:
    return tasks.TaskList(session.list_tasks(params.agent_id, limit=params.limit))


@answers(tasks.WAIT_TASK)
async def wait_task(caller: Caller, params: tasks.WaitTask) -> TaskRecord:
    session = await caller.reading(params.session_id)
    if not 0 <= params.timeout_seconds <= _LONGEST_WAIT_SECONDS:
        raise InvalidInputError(f"timeoutSeconds must be 0 to {_LONGEST_WAIT_SECONDS:g}.")
    try:
        async with asyncio.timeout(params.timeout_seconds):
            return await session.wait_task(params.task_id)
    except TimeoutError:
        await session.flushed()
        return session.get_task(params.task_id)


@answers(tasks.CANCEL_TASK)
async def cancel_task(caller: Caller, params: tasks.CancelTask) -> TaskRecord:
    return await (await caller.session(params.session_id)).cancel_task(params.task_id, reason=params.reason)


@answers(tasks.CANCEL_TREE)
async def cancel_tree(caller: Caller, params: tasks.CancelTree) -> tasks.TaskList:
    session = await caller.session(params.session_id)
    return tasks.TaskList(await session.cancel_tree(params.task_id, reason=params.reason))


@answers(tasks.RETRY_TASK)
async def retry_task(caller: Caller, params: tasks.RetryTask) -> TaskRecord:
    return await (await caller.session(params.session_id)).retry_task(params.task_id)


@answers(tasks.RETRY_FAILED)
async def retry_failed(caller: Caller, params: tasks.RetryFailed) -> RetriedTasks:
    return await (await caller.session(params.session_id)).retry_failed_tasks(params.agent_id)


@answers(tasks.DISMISS_TASK)
async def dismiss_task(caller: Caller, params: tasks.DismissTask) -> TaskRecord:
    return await (await caller.session(params.session_id)).dismiss_task(params.task_id)


@reads(tasks.GET_TREE)
def get_tree(session: AsyncAgentSessionManager, params: tasks.GetTree) -> tasks.TaskList:
    return tasks.TaskList(session.get_task_tree(params.task_id))


@reads(tasks.LIST_STEPS)
def list_steps(session: AsyncAgentSessionManager, params: tasks.ListSteps) -> tasks.StepList:
    return tasks.StepList(session.list_steps(params.task_id, after=params.after))


@reads(tasks.LIST_THREADS)
def list_threads(session: AsyncAgentSessionManager, params: tasks.ListThreads) -> tasks.ThreadList:
    return tasks.ThreadList(session.list_threads(params.agent_id))


@reads(tasks.LIST_DEAD_LETTERS)
def list_dead_letters(session: AsyncAgentSessionManager, _: tasks.ListDeadLetters) -> DeadLetters:
    return session.dead_letters()

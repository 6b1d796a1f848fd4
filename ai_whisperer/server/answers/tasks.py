"""Answers to `task.*`."""

from __future__ import annotations

import asyncio

from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.protocol import tasks
from ai_whisperer.server.calls import Caller, answers

_LONGEST_WAIT_SECONDS = 24 * 3600.0


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
        return await session.get_task(params.task_id)

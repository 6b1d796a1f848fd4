"""The answer of a task that was continued: it is spread over the task and those that go on with it."""

from __future__ import annotations

from ai_whisperer.core.tasks import whole_answer
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.store.base import Store


def parts_of(store: Store, task: TaskRecord) -> list[TaskRecord]:
    """The task that was given and those that went on with it, up to this one.

    The earlier ones are durable: the later had to wait for that before it asked its model.
    """
    parts = [task]
    while parts[0].continuation and parts[0].parent_id is not None:
        earlier = store.task(task.session_id, parts[0].parent_id)
        if earlier is None:
            break
        parts.insert(0, earlier)
    return parts


def answer_of(store: Store, task: TaskRecord) -> str:
    """The whole final answer, in all its parts."""
    return whole_answer(parts_of(store, task))

"""The methods `context.*`: what models are shown of conversations."""

from __future__ import annotations

from ai_whisperer.domain.compactions import ContextReport
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.protocol.method import Effect, Method, OfAgent


# What the methods do is said by `SessionApi`.
class OfThread(OfAgent, frozen=True, kw_only=True):
    thread_id: str | None = None


class CompactContext(OfThread, frozen=True, kw_only=True):
    """Make what the agent's model is shown of a thread as short as can be. The answer is the task that does it.

    Without `threadId` it is the thread in which the agent was given something last. Nothing is deleted: the journal
    keeps all of it. Under the same `taskId` it is done once, however often it is called.
    """

    task_id: str | None = None


GET_CONTEXT = Method("context.get", OfThread, ContextReport, "get_context", Effect.READS)
COMPACT_CONTEXT = Method("context.compact", CompactContext, TaskRecord, "compact_context", once="task_id")

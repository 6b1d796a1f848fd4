"""Notifications about conversations that have grown too long for their models."""

from __future__ import annotations

from typing import Self

from msgspec import UNSET, UnsetType

from ai_whisperer.domain.compactions import Compaction, CompactionKind, CompactionReason
from ai_whisperer.domain.notifications.base import OfStep, notification
from ai_whisperer.domain.tasks import StepRecord, TaskRecord


@notification(
    "context.compacted",
    "[kind=summary?had its conversation summarized|had its conversation trimmed]: {tokensBefore:count} tokens became "
    "{tokensAfter:count}[: {problem}]",
)
class ContextCompacted(OfStep, frozen=True, kw_only=True):
    """A conversation was made shorter, so that the agent's model can take it. The journal keeps all of it.

    `tokens_before` and `tokens_after` are estimates. `steps` is how many steps of the thread the summary stands for so
    far, and `problem` why there is none though one was wanted.
    """

    thread_id: str
    kind: CompactionKind
    reason: CompactionReason
    tokens_before: int
    tokens_after: int
    window: int
    steps: int
    problem: str | UnsetType = UNSET

    @classmethod
    def of(cls, task: TaskRecord, step: StepRecord, compaction: Compaction) -> Self:
        return cls(
            agent_id=task.agent_id,
            task_id=task.id,
            step_id=step.id,
            thread_id=task.thread_id,
            kind=compaction.kind or CompactionKind.TRIM,
            reason=compaction.reason,
            tokens_before=compaction.tokens_before,
            tokens_after=compaction.tokens_after,
            window=compaction.window,
            steps=compaction.steps,
            problem=compaction.problem or UNSET,
        )

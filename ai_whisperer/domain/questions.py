"""Questions that agents ask a person."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from ai_whisperer.domain.record import Record


class QuestionState(StrEnum):
    """`expired`: its time was over. `withdrawn`: the task ended first."""

    PENDING = "pending"
    ANSWERED = "answered"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


class QuestionRecord(Record, frozen=True, kw_only=True):
    """What an agent asks a person in a tool call that waits for the answer. Its id is that of the step.

    `schema` is the form of the answer, a flat JSON Schema of an object, which the `answer` fits. `deadline_at` is when
    the call waits no longer; None if it waits as long as its task may.
    """

    session_id: str
    id: str
    agent_id: str
    task_id: str
    question: str
    schema: dict[str, Any]
    state: QuestionState = QuestionState.PENDING
    asked_at: float = 0.0
    deadline_at: float | None = None
    decided_at: float | None = None
    decided_by: str | None = None
    answer: dict[str, Any] | None = None
    reason: str = ""

    @property
    def question_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id

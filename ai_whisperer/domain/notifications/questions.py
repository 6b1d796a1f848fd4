"""Notifications about questions that agents ask a person.

The form and the answer may be long and are for the two alone: whoever wants them asks.
"""

from __future__ import annotations

from typing import Self

from ai_whisperer.domain.notifications.base import OfTask, notification
from ai_whisperer.domain.questions import QuestionRecord, QuestionState


class OfQuestion(OfTask, frozen=True, kw_only=True):
    question_id: str


@notification("question.asked", "asks you: {question}")
class QuestionAsked(OfQuestion, frozen=True, kw_only=True):
    """An agent asks a person, and its task waits for the answer. `question` is the beginning of it."""

    question: str
    deadline_at: float | None


class QuestionDecided(OfQuestion, frozen=True, kw_only=True):
    decided_by: str
    reason: str

    @classmethod
    def of(cls, question: QuestionRecord) -> Self:
        return cls(
            agent_id=question.agent_id,
            task_id=question.task_id,
            question_id=question.id,
            decided_by=question.decided_by or "",
            reason=question.reason,
        )


@notification("question.answered", "was answered[ by {decidedBy}]")
class QuestionAnswered(QuestionDecided, frozen=True, kw_only=True):
    """A person answered a question: the answer is the result of the call."""


@notification("question.refused", "was refused an answer[ by {decidedBy}][: {reason}]")
class QuestionRefused(QuestionDecided, frozen=True, kw_only=True):
    """A person does not want to answer a question: the agent is told so."""


@notification("question.withdrawn", "[state=expired?had no answer in time|no longer asks][: {reason}]")
class QuestionWithdrawn(OfQuestion, frozen=True, kw_only=True):
    """Nobody answered a question before its time was over, or before its task ended."""

    state: QuestionState
    reason: str

    @classmethod
    def of(cls, question: QuestionRecord) -> Self:
        return cls(
            agent_id=question.agent_id,
            task_id=question.task_id,
            question_id=question.id,
            state=question.state,
            reason=question.reason,
        )

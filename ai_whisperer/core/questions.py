"""What can become of a question to a person, and what its model is told of that."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ai_whisperer.core.forms import ONLY_FIELD
from ai_whisperer.core.marks import as_json, said
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.questions import QuestionRecord, QuestionState
from ai_whisperer.errors import InvalidInputError, StateError

_SUMMARY_CHARACTERS = 200


def question_state(state: QuestionState | str | None) -> QuestionState | None:
    """The state that is asked for, None for all; raises `InvalidInputError`."""
    if state is None:
        return None
    if isinstance(state, str) and state in tuple(QuestionState):
        return QuestionState(state)
    raise InvalidInputError(f"state must be one of {', '.join(QuestionState)}, or nothing for all, not {state!r}.")


def beginning_of(question: str) -> str:
    """As much of a question as a list shows."""
    line = " ".join(question.split())
    return line if len(line) <= _SUMMARY_CHARACTERS else line[: _SUMMARY_CHARACTERS - 1] + "…"


def answered(question: QuestionRecord, answer: dict[str, Any], *, at: float, by: str) -> QuestionRecord:
    """The question with this answer; the same record if it was answered so already. Raises `StateError`."""
    if question.state is QuestionState.ANSWERED and question.answer == answer:
        return question
    _check_open(question)
    return replace(question, state=QuestionState.ANSWERED, answer=answer, decided_at=at, decided_by=by)


def refused(question: QuestionRecord, *, at: float, by: str, reason: str) -> QuestionRecord:
    """The question that nobody wants to answer; the same record if that is so already. Raises `StateError`."""
    if question.state is QuestionState.REFUSED:
        return question
    _check_open(question)
    return replace(question, state=QuestionState.REFUSED, decided_at=at, decided_by=by, reason=reason)


def answer_text(question: QuestionRecord) -> str:
    """What the model is told of an answer: a text alone as it is, all else as JSON."""
    answer = question.answer or {}
    only = answer.get(ONLY_FIELD) if len(answer) == 1 else None
    return said(question.decided_by or USER, only if isinstance(only, str) else as_json(answer))


def refusal_text(question: QuestionRecord) -> str:
    """What the model is told when a person does not want to answer."""
    words = f" They say: {said(question.decided_by or USER, question.reason)}" if question.reason else ""
    return f"No answer: the person does not want to answer this.{words}\nContinue without it, as well as you can."


def timeout_text(seconds: float) -> str:
    """What the model is told when nobody has answered in time."""
    return (
        f"No answer: nobody answered within {seconds:,.0f} seconds, and the question is closed. Continue without the "
        "answer, as well as you can, and say what you assumed."
    )


def _check_open(question: QuestionRecord) -> None:
    if question.state is not QuestionState.PENDING:
        why = f" ({question.reason})" if question.reason else ""
        raise StateError(
            f"Question {question.id} is {question.state} already{why}. Nothing was changed; the call no longer waits."
        )

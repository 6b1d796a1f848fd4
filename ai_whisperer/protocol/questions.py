"""The methods `question.*`: what agents ask a person."""

from __future__ import annotations

from typing import Any

import msgspec

from ai_whisperer.domain.questions import QuestionRecord, QuestionState
from ai_whisperer.protocol.method import Effect, InSession, Method


class QuestionList(msgspec.Struct, frozen=True):
    """What agents ask people: what waits for an answer with the oldest first, all else with the newest first."""

    questions: list[QuestionRecord]


class ListQuestions(InSession, frozen=True, kw_only=True):
    """What agents ask people: by default what waits for an answer; null for all."""

    question_state: QuestionState | None = QuestionState.PENDING
    limit: int = 100


# Params of a method that acts on a question.
class OfQuestion(InSession, frozen=True, kw_only=True):
    question_id: str


class GetQuestion(OfQuestion, frozen=True, kw_only=True):
    """The question as it is now. `schema` is the form of its answer: a flat JSON Schema."""


class AnswerQuestion(OfQuestion, frozen=True, kw_only=True):
    """Answer a question: the fields of its form by name, or the value alone if there is one.

    An answer that does not fit is refused with the code `answer_misfit`, whose `fields` say what is wrong with which
    field; the question stays open. The same answer again changes nothing.
    """

    answer: Any


class RefuseQuestion(OfQuestion, frozen=True, kw_only=True):
    """Do not answer a question: its agent is told so, with the reason, and continues."""

    reason: str = ""


LIST_QUESTIONS = Method("question.list", ListQuestions, QuestionList, "list_questions", Effect.READS)
GET_QUESTION = Method("question.get", GetQuestion, QuestionRecord, "get_question", Effect.READS)
ANSWER_QUESTION = Method("question.answer", AnswerQuestion, QuestionRecord, "answer_question")
REFUSE_QUESTION = Method("question.refuse", RefuseQuestion, QuestionRecord, "refuse_question")

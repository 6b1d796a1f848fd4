"""Questions of agents, as a program or a person answers them."""

from __future__ import annotations

from typing import Any

from ai_whisperer.core.paging import checked_limit
from ai_whisperer.core.questions import question_state
from ai_whisperer.core.text import check_reason, check_text
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.questions import QuestionRecord, QuestionState
from ai_whisperer.runtime.api.approvals import MAX_NAME_BYTES
from ai_whisperer.runtime.api.tasks import SessionWork


class SessionQuestions(SessionWork):
    """The part of the session manager that handles what agents ask a person."""

    async def list_questions(
        self, *, state: QuestionState | str | None = QuestionState.PENDING, limit: int = 100
    ) -> list[QuestionRecord]:
        chosen, questions = question_state(state), self._session.questions
        checked_limit(limit)
        if chosen is QuestionState.PENDING:
            found = questions.pending()[:limit]
        else:
            found = await self._session.kernel.reads.questions(state=chosen, limit=limit)
        return [questions.shown(each) for each in found]

    async def get_question(self, question_id: str) -> QuestionRecord:
        return self._session.questions.shown(await self._session.questions.get(question_id))

    async def answer_question(self, question_id: str, answer: Any, *, by: str = USER) -> QuestionRecord:
        check_text("name of who answers", by, max_bytes=MAX_NAME_BYTES)
        questions = self._session.questions
        question = await questions.get(question_id)
        return questions.shown(
            await self._committed(lambda decision: questions.answer(decision, question, answer, by=by))
        )

    async def refuse_question(self, question_id: str, *, reason: str = "", by: str = USER) -> QuestionRecord:
        check_reason(reason)
        check_text("name of who refuses", by, max_bytes=MAX_NAME_BYTES)
        questions = self._session.questions
        question = await questions.get(question_id)
        return questions.shown(
            await self._committed(lambda decision: questions.refuse(decision, question, by=by, reason=reason))
        )

"""Questions to a person: a tool call waits durably for the answer, which fits the form that the agent asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from ai_whisperer.core.forms import fitted_answer, form_of
from ai_whisperer.core.paging import can_be_id
from ai_whisperer.core.questions import answer_text, answered, beginning_of, refusal_text, refused, timeout_text
from ai_whisperer.core.text import check_text
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.notifications.questions import (
    QuestionAnswered,
    QuestionAsked,
    QuestionRefused,
    QuestionWithdrawn,
)
from ai_whisperer.domain.questions import QuestionRecord, QuestionState
from ai_whisperer.domain.tasks import StepRecord, TaskRecord
from ai_whisperer.domain.waits import WaitKind, WaitRecord
from ai_whisperer.errors import DeadlineError, InvalidInputError, TaskTimeError, UnknownQuestionError
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.reads import Overlay
from ai_whisperer.runtime.session.roles import Roster
from ai_whisperer.runtime.waiting.waits import Waits

Bounded = Callable[[str, str, str], str]
"""Cuts what a task of an agent is told to the agent's limit."""


class Questions:
    """What people of one session are asked. In memory are those that wait for an answer.

    Each ends once, in one unit with the result of the call: with an answer, with a refusal, when its time is over, or
    with its task.
    """

    def __init__(self, kernel: Kernel, roster: Roster, waits: Waits, *, bounded: Bounded) -> None:
        self._kernel = kernel
        self._roster = roster
        self._waits = waits
        self._bounded = bounded
        self._pending: dict[str, QuestionRecord] = {}
        self._leaving: Overlay[str, QuestionRecord] = Overlay()
        waits.on_expiry(WaitKind.QUESTION, self._give_up)

    def restore(self, questions: Iterable[QuestionRecord]) -> None:
        self._pending.update((question.id, question) for question in questions)

    def ask(
        self,
        decision: Decision,
        task: TaskRecord,
        step: StepRecord,
        *,
        question: str,
        schema: Any,
        timeout_seconds: float | None,
    ) -> QuestionRecord:
        """Let the step wait for a person's answer. Raises, having changed nothing, if that cannot be asked."""
        check_text("question", question, max_bytes=self._most(task.agent_id))
        if not question.strip():
            raise InvalidInputError("The question is empty; nobody was asked. Say what you want to know.")
        form = form_of(schema)
        deadline_at = self._waits.patience(task, timeout_seconds, now=decision.at)
        record = QuestionRecord(
            session_id=task.session_id,
            id=step.id,
            agent_id=task.agent_id,
            task_id=task.id,
            question=question,
            schema=form,
            asked_at=decision.at,
            deadline_at=deadline_at,
        )
        wait = WaitRecord(
            session_id=task.session_id,
            id=step.id,
            kind=WaitKind.QUESTION,
            agent_id=task.agent_id,
            task_id=task.id,
            target=step.id,
            target_agent="",
            arrival=self._kernel.next_arrival(),
            deadline_at=math.inf if deadline_at is None else deadline_at,
            created_at=decision.at,
        )
        decision.unit.put_question(record)
        self._pending[record.id] = record
        self._waits.begin(decision, wait)
        decision.tell(
            QuestionAsked(
                agent_id=task.agent_id,
                task_id=task.id,
                question_id=record.id,
                question=beginning_of(question),
                deadline_at=self.shown(record).deadline_at,
            )
        )
        return record

    def shown(self, question: QuestionRecord) -> QuestionRecord:
        """The question as people see it: its time by what the wall clock shows then."""
        due_at = question.deadline_at
        if due_at is None or question.state is not QuestionState.PENDING:
            return question
        return replace(question, deadline_at=self._kernel.clock.shown(due_at))

    def pending(self) -> list[QuestionRecord]:
        """Those that wait for an answer, the oldest first."""
        return sorted(self._pending.values(), key=lambda each: (each.asked_at, each.id))

    async def get(self, question_id: str) -> QuestionRecord:
        """The question as it is now; raises `UnknownQuestionError`."""
        if can_be_id(question_id):
            found = self._in_memory(question_id)
            if found is None:
                stored = await self._kernel.reads.question(question_id)
                found = self._in_memory(question_id) or stored
            if found is not None:
                return found
        raise UnknownQuestionError(
            f"There is no question {question_id!r} in session '{self._kernel.session_id}'. Use an id that the list of "
            "questions shows."
        )

    def answer(self, decision: Decision, question: QuestionRecord, answer: Any, *, by: str) -> QuestionRecord:
        """Let the answer be the result of the call.

        Raises, having changed nothing, `AnswerError` if it does not fit and `StateError` if nobody waits for it.
        """
        fitting = fitted_answer(question.schema, answer)
        for value in fitting.values():
            if isinstance(value, str):
                check_text("answer", value, max_bytes=self._most(question.agent_id))
        record = answered(question, fitting, at=decision.at, by=by)
        if record is not question:
            content = self._bounded(record.agent_id, record.task_id, answer_text(record))
            decision.tell(QuestionAnswered.of(record))
            self._end(decision, record, content)
        return record

    def refuse(self, decision: Decision, question: QuestionRecord, *, by: str, reason: str) -> QuestionRecord:
        """Let the call end without an answer, and its model be told so. Raises `StateError` like `answer`."""
        record = refused(question, at=decision.at, by=by, reason=reason)
        if record is not question:
            decision.tell(QuestionRefused.of(record))
            self._end(decision, record, refusal_text(record))
        return record

    def task_ended(self, decision: Decision, task: TaskRecord) -> None:
        """Nobody needs to answer any more."""
        for wait in self._waits.of_task(task.id):
            if wait.kind is not WaitKind.QUESTION:
                continue
            late = task.error is not None and task.error.code in (DeadlineError.code, TaskTimeError.code)
            record = replace(
                self._pending[wait.id],
                state=QuestionState.EXPIRED if late else QuestionState.WITHDRAWN,
                decided_at=decision.at,
                reason="" if task.error is None else task.error.message,
            )
            self._waits.forget(decision, wait)
            self._put(decision, record)
            decision.tell(QuestionWithdrawn.of(record))

    def _give_up(self, decision: Decision, wait: WaitRecord) -> None:
        """Its time is over: that is the result of the call."""
        record = replace(self._pending[wait.id], state=QuestionState.EXPIRED, decided_at=decision.at)
        decision.tell(QuestionWithdrawn.of(record))
        self._end(decision, record, timeout_text(decision.at - wait.created_at))

    def _end(self, decision: Decision, record: QuestionRecord, content: str) -> None:
        wait = self._waits.graph.waits_for(WaitKind.QUESTION, record.id)[0]
        self._put(decision, record)
        self._waits.end(decision, wait, ToolResult(content=content))

    def _put(self, decision: Decision, record: QuestionRecord) -> None:
        """Keep what became of it, in memory until it is read from the store as it is now."""
        decision.unit.put_question(record)
        del self._pending[record.id]
        self._leaving.keep(record.id, record, until=decision.when_readable)

    def _in_memory(self, question_id: str) -> QuestionRecord | None:
        return self._pending.get(question_id) or self._leaving.get(question_id)

    def _most(self, agent_id: str) -> int:
        return self._roster.agents[agent_id].limits.max_mail_bytes

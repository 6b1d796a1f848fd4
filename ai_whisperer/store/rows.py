"""Records to rows and back. Nested values are JSON text."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from ai_whisperer.domain.agents import AgentRecord, AgentState, SleepPlan
from ai_whisperer.domain.conversation import Answer, ChannelResponse, ToolCall, ToolResult, Usage
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.mail import MailRecord, MailState
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import (
    Failure,
    Origin,
    Priority,
    StepKind,
    StepRecord,
    StepState,
    TaskKind,
    TaskRecord,
    TaskState,
)
from ai_whisperer.domain.timers import TimerKind, TimerRecord

Row = tuple[Any, ...]
_Member = TypeVar("_Member", bound=StrEnum)

_encode = msgspec.json.Encoder().encode


class _Members(dict[str, _Member]):
    """The members of an enum by their values, found sooner than by a call of the enum."""

    def __init__(self, kind: type[_Member]) -> None:
        super().__init__((member.value, member) for member in kind)
        self._kind = kind

    def __missing__(self, value: str) -> _Member:
        return self._kind(value)  # raises ValueError


_AGENT_STATES = _Members(AgentState)
_TASK_KINDS = _Members(TaskKind)
_TASK_STATES = _Members(TaskState)
_STEP_KINDS = _Members(StepKind)
_STEP_STATES = _Members(StepState)
_MAIL_STATES = _Members(MailState)
_PRIORITIES = _Members(Priority)
_TIMER_KINDS = _Members(TimerKind)


def text_of(value: Any) -> str:
    """The value as JSON text."""
    return _encode(value).decode()


_definition = msgspec.json.Decoder(AgentDefinition).decode
_sleep = msgspec.json.Decoder(SleepPlan).decode
_origin = msgspec.json.Decoder(Origin).decode
_usage = msgspec.json.Decoder(Usage).decode
_response = msgspec.json.Decoder(ChannelResponse).decode
_failure = msgspec.json.Decoder(Failure).decode
_call = msgspec.json.Decoder(ToolCall).decode
_answer = msgspec.json.Decoder(Answer).decode
_result = msgspec.json.Decoder(ToolResult).decode
_names = msgspec.json.Decoder(tuple[str, ...]).decode
_params = msgspec.json.Decoder(dict[str, Any]).decode


def agent_row(agent: AgentRecord) -> Row:
    return (
        agent.session_id,
        agent.id,
        text_of(agent.definition),
        agent.state,
        agent.started,
        None if agent.sleep is None else text_of(agent.sleep),
        agent.reason,
        text_of(agent.own_tools),
        agent.created_at,
        agent.started_at,
        agent.paused_limit,
    )


def agent_changes(agent: AgentRecord) -> Row:
    return (
        agent.state,
        agent.started,
        None if agent.sleep is None else text_of(agent.sleep),
        agent.reason,
        agent.started_at,
        agent.paused_limit,
        agent.session_id,
        agent.id,
    )


def definition_change(agent: AgentRecord) -> Row:
    return (text_of(agent.definition), text_of(agent.own_tools), agent.session_id, agent.id)


def agent_reader() -> Callable[[Row], AgentRecord]:
    """Reads the agents of a session. Those whose definitions are equal share one: many are made of one template."""
    definitions: dict[str, AgentDefinition] = {}

    def read(row: Row) -> AgentRecord:
        text = row[2]
        definition = definitions.get(text)
        if definition is None:
            definition = definitions[text] = _definition(text)
        return _agent_from(row, definition)

    return read


def _agent_from(row: Row, definition: AgentDefinition) -> AgentRecord:
    session_id, agent_id, _, state, started, sleep, reason, own_tools, created_at, started_at, paused_limit, _ = row
    return AgentRecord(
        session_id=session_id,
        id=agent_id,
        definition=definition,
        state=_AGENT_STATES[state],
        started=bool(started),
        sleep=_sleep(sleep) if sleep else None,
        reason=reason,
        own_tools=_names(own_tools),
        created_at=created_at,
        started_at=started_at,
        paused_limit=paused_limit,
    )


def task_row(task: TaskRecord) -> Row:
    return (
        task.id,
        task.session_id,
        task.agent_id,
        task.thread_id,
        task.kind,
        task.prompt,
        task.arrival,
        task.cause,
        task.priority,
        task.state,
        task.mail_id,
        task.parent_id,
        task.continuation,
        task.attempts,
        task.progress_percent,
        task.progress_note,
        None if task.result is None else text_of(task.result),
        None if task.error is None else text_of(task.error),
        text_of(task.usage),
        task.created_at,
        task.started_at,
        task.finished_at,
        None if task.origin is None else task.origin.root_id,
        None if task.origin is None else text_of(task.origin),
        task.not_before,
        task.restarts,
    )


def task_changes(task: TaskRecord) -> Row:
    return (
        task.state,
        task.attempts,
        task.progress_percent,
        task.progress_note,
        None if task.result is None else text_of(task.result),
        None if task.error is None else text_of(task.error),
        text_of(task.usage),
        task.started_at,
        task.finished_at,
        task.not_before,
        task.restarts,
        task.session_id,
        task.id,
    )


def dismissal(task: TaskRecord) -> Row:
    return (task.dismissed_at, task.session_id, task.id)


def task_from(row: Row) -> TaskRecord:
    return TaskRecord(
        id=row[0],
        session_id=row[1],
        agent_id=row[2],
        thread_id=row[3],
        kind=_TASK_KINDS[row[4]],
        prompt=row[5],
        arrival=row[6],
        cause=row[7],
        priority=_PRIORITIES[row[8]],
        state=_TASK_STATES[row[9]],
        mail_id=row[10],
        parent_id=row[11],
        continuation=row[12],
        attempts=row[13],
        progress_percent=row[14],
        progress_note=row[15],
        result=_response(row[16]) if row[16] else None,
        error=_failure(row[17]) if row[17] else None,
        usage=_usage(row[18]),
        created_at=row[19],
        started_at=row[20],
        finished_at=row[21],
        origin=_origin(row[23]) if row[23] else None,
        not_before=row[24],
        restarts=row[25],
        dismissed_at=row[26],
    )


def step_row(step: StepRecord) -> Row:
    return (
        step.session_id,
        step.task_id,
        step.number,
        step.kind,
        step.state,
        step.attempt,
        step.failures,
        None if step.call is None else text_of(step.call),
        None if step.answer is None else text_of(step.answer),
        None if step.result is None else text_of(step.result),
        None if step.error is None else text_of(step.error),
        step.retry_at,
        step.started_at,
        step.finished_at,
        step.requests,
        step.request_seconds,
        step.outage_seconds,
    )


def step_from(row: Row) -> StepRecord:
    return StepRecord(
        session_id=row[0],
        task_id=row[1],
        number=row[2],
        kind=_STEP_KINDS[row[3]],
        state=_STEP_STATES[row[4]],
        attempt=row[5],
        failures=row[6],
        call=_call(row[7]) if row[7] else None,
        answer=_answer(row[8]) if row[8] else None,
        result=_result(row[9]) if row[9] else None,
        error=_failure(row[10]) if row[10] else None,
        retry_at=row[11],
        started_at=row[12],
        finished_at=row[13],
        requests=row[14],
        request_seconds=row[15],
        outage_seconds=row[16],
    )


def mail_row(mail: MailRecord) -> Row:
    return (
        mail.id,
        mail.session_id,
        mail.thread_id,
        mail.sender,
        mail.sequence,
        mail.recipient,
        mail.subject,
        mail.body,
        mail.arrival,
        mail.cause,
        mail.priority,
        mail.reply_to,
        mail.state,
        mail.task_id,
        mail.created_at,
        mail.read_at,
        mail.awaited,
        None if mail.origin is None else text_of(mail.origin),
    )


def mail_changes(mail: MailRecord) -> Row:
    return (mail.state, mail.task_id, mail.read_at, mail.session_id, mail.id)


def mail_from(row: Row) -> MailRecord:
    return MailRecord(
        id=row[0],
        session_id=row[1],
        thread_id=row[2],
        sender=row[3],
        sequence=row[4],
        recipient=row[5],
        subject=row[6],
        body=row[7],
        arrival=row[8],
        cause=row[9],
        priority=_PRIORITIES[row[10]],
        reply_to=row[11],
        state=_MAIL_STATES[row[12]],
        task_id=row[13],
        created_at=row[14],
        read_at=row[15],
        awaited=bool(row[16]),
        origin=_origin(row[17]) if row[17] else None,
    )


def timer_row(timer: TimerRecord) -> Row:
    return (timer.session_id, timer.id, timer.agent_id, timer.kind, timer.due_at)


def timer_from(row: Row) -> TimerRecord:
    session_id, timer_id, agent_id, kind, due_at = row
    return TimerRecord(session_id=session_id, id=timer_id, agent_id=agent_id, kind=_TIMER_KINDS[kind], due_at=due_at)


def notification_from(session_id: str, row: Row) -> Notification:
    seq, name, cause, at, params = row
    return Notification(seq=seq, session_id=session_id, name=name, cause=cause, at=at, params=_params(params))

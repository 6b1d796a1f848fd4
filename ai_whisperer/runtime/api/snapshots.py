"""A session in memory as one record. Nothing here waits: it is all of one moment."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator

from ai_whisperer.core.questions import beginning_of
from ai_whisperer.core.tasks import base_id, summary_of
from ai_whisperer.domain.locks import LockRecord
from ai_whisperer.domain.questions import QuestionRecord
from ai_whisperer.domain.schedules import ScheduleRecord
from ai_whisperer.domain.snapshot import (
    HeldLock,
    InboxMail,
    OpenStep,
    OpenTask,
    OpenWait,
    PendingApproval,
    PendingQuestion,
    RoomState,
    ScheduleState,
    Snapshot,
)
from ai_whisperer.domain.tasks import StepRecord, StepState, TaskRecord, TaskState
from ai_whisperer.domain.waits import WaitKind, WaitRecord
from ai_whisperer.runtime.agents.status import last_step_at, retry_of, statuses_of
from ai_whisperer.runtime.life.open_session import OpenSession
from ai_whisperer.runtime.messaging.rooms import turn_of
from ai_whisperer.runtime.waiting.lock_waits import ClientWait


def snapshot_of(session: OpenSession, stored_inbox: list[InboxMail]) -> Snapshot:
    """The session as it is in memory, part of which may still be on its way to the disk.

    `stored_inbox` is what was just read of the mails of the user.
    """
    last_seq, at = session.kernel.log.position()
    tasks = list(_open_tasks(session))
    return Snapshot(
        last_seq=last_seq,
        first_seq=session.kernel.log.first_seq,
        at=at,
        clock_offset_seconds=session.kernel.clock.offset,
        agents=tuple(statuses_of(session)),
        tasks=tuple(_task(session, task, steps) for task, steps in tasks),
        waits=tuple(_waits(session)),
        rooms=tuple(_rooms(session, [task for task, _ in tasks])),
        links=session.counters.links(),
        inbox=tuple(session.mail.inbox(stored_inbox)),
        locks=tuple(_lock(session.locks.book.shown(lock)) for lock in session.locks.book.held()),
        approvals=tuple(
            PendingApproval(
                approval_id=each.id,
                agent_id=each.agent_id,
                task_id=each.task_id,
                tool=each.tool,
                digest=each.digest,
                at=each.requested_at,
            )
            for each in session.approvals.pending()
        ),
        questions=tuple(_question(each) for each in session.questions.pending()),
        schedules=tuple(_schedule(session.schedules.shown(record)) for record in session.schedules.of_agent(None)),
        dead_tasks=session.counters.dead_tasks.total(),
        dead_mails=session.counters.dead_mails,
    )


def _open_tasks(session: OpenSession) -> Iterator[tuple[TaskRecord, list[StepRecord]]]:
    """The tasks that have not ended; those that run with their journals."""
    for agent in session.roster.agents.values():
        for loop in agent.work.loops.values():
            yield loop.task, loop.running.journal.steps
        if agent.work.size:
            for item in agent.work.waiting:
                if isinstance(item, TaskRecord):
                    yield item, []
    for task in session.roster.returning.values():
        yield task, []


def _task(session: OpenSession, task: TaskRecord, steps: list[StepRecord]) -> OpenTask:
    runs = task.state is TaskState.RUNNING
    return OpenTask(
        task_id=task.id,
        agent_id=task.agent_id,
        thread_id=task.thread_id,
        kind=task.kind,
        priority=task.priority,
        summary=summary_of(task),
        state=task.state,
        attempt=task.restarts + 1 if runs else 0,
        mail_id=task.mail_id,
        progress_percent=task.progress_percent,
        progress_note=task.progress_note,
        queued_at=task.created_at,
        started_at=task.started_at,
        last_step_at=last_step_at(task, steps) if runs else None,
        steps=tuple(_step(session, step) for step in steps if _is_under_way(step, task)),
    )


def _is_under_way(step: StepRecord, task: TaskRecord) -> bool:
    """Whether the step has begun; that of a task which was retried is to be begun again, and nobody was told of it."""
    return step.state is StepState.STARTED and step.started_at >= (task.started_at or 0.0)


def _step(session: OpenSession, step: StepRecord) -> OpenStep:
    retry_at, retry_reason = retry_of(session, step)
    return OpenStep(
        step_id=step.id,
        kind=step.kind,
        tool=None if step.call is None else step.call.name,
        started_at=step.started_at,
        retry_at=retry_at,
        retry_reason=retry_reason,
    )


def _waits(session: OpenSession) -> Iterator[OpenWait]:
    """In the order in which they began. People stand where their turn at the lock is."""
    people = deque(sorted(session.locks.book.people_waiting(), key=lambda person: person.arrival))
    for wait in session.waits.all():
        while people and wait.kind is WaitKind.LOCK and people[0].arrival < wait.arrival:
            yield _person(session, people.popleft())
        yield _call(session, wait)
    for person in people:
        yield _person(session, person)


def _person(session: OpenSession, wait: ClientWait) -> OpenWait:
    return OpenWait(
        wait_id=wait.id,
        kind=WaitKind.LOCK,
        agent_id=None,
        task_id=None,
        waiter=wait.waiter,
        target=wait.name,
        targets=(wait.name,),
        holders=_holders(session, wait.name),
        since=wait.created_at,
        deadline_at=session.kernel.clock.shown(wait.deadline_at),
    )


def _call(session: OpenSession, wait: WaitRecord) -> OpenWait:
    targets: tuple[str, ...]
    holders: tuple[str, ...]
    match wait.kind:
        case WaitKind.REPLY:
            targets = holders = (wait.target_agent,)
        case WaitKind.LOCK:
            targets, holders = (wait.target,), _holders(session, wait.target)
        case WaitKind.APPROVAL | WaitKind.QUESTION:
            targets, holders = (wait.target,), ()
        case WaitKind.RESOURCE:
            targets, holders = session.turns.waited_for_at(wait.id)
    return OpenWait(
        wait_id=wait.id,
        kind=wait.kind,
        agent_id=wait.agent_id,
        task_id=wait.task_id,
        waiter=wait.agent_id,
        target=", ".join(targets),
        targets=targets,
        holders=holders,
        since=wait.created_at,
        deadline_at=None if wait.deadline_at == math.inf else session.kernel.clock.shown(wait.deadline_at),
    )


def _holders(session: OpenSession, lock: str) -> tuple[str, ...]:
    holder = session.locks.book.holder_of(lock)
    return () if holder is None else (holder,)


def _rooms(session: OpenSession, tasks: Iterable[TaskRecord]) -> Iterator[RoomState]:
    answering: dict[str, dict[str, str]] = {}
    for task in tasks:
        turn = turn_of(task)
        if turn is not None:
            answering.setdefault(turn.room_id, {})[base_id(task)] = task.agent_id
    for room in session.rooms.all_rooms():
        yield RoomState(
            room_id=room.id,
            kind=room.kind,
            title=room.title,
            members=room.members,
            hop_limit=room.hop_limit,
            last_number=room.last_number,
            last_at=session.rooms.last_at(room),
            answering=answering.get(room.id, {}),
        )


def _lock(lock: LockRecord) -> HeldLock:
    return HeldLock(
        name=lock.name,
        holder=lock.holder or "",
        agent_id=lock.agent_id,
        task_id=lock.task_id,
        token=lock.token,
        acquired_at=lock.acquired_at or 0.0,
        expires_at=lock.expires_at or 0.0,
    )


def _question(question: QuestionRecord) -> PendingQuestion:
    return PendingQuestion(
        question_id=question.id,
        agent_id=question.agent_id,
        task_id=question.task_id,
        question=beginning_of(question.question),
        at=question.asked_at,
    )


def _schedule(record: ScheduleRecord) -> ScheduleState:
    definition = record.definition
    return ScheduleState(
        schedule_id=record.id,
        agent_id=record.agent_id,
        cron=definition.cron,
        interval_seconds=definition.interval_seconds,
        zone=definition.zone,
        prompt=definition.prompt,
        event=definition.event,
        wake=definition.wake,
        paused=record.paused,
        next_at=record.next_at,
        last_at=record.last_at,
        fired=record.fired,
    )

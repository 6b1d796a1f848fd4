"""Records of what agents do with each other and with people to rows and back. Nested values are JSON text."""

from __future__ import annotations

from typing import Any

import msgspec

from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.locks import LockRecord
from ai_whisperer.domain.mail import MailState
from ai_whisperer.domain.rooms import MessageRecord, RoomKind, RoomRecord
from ai_whisperer.domain.schedules import ScheduleDefinition, ScheduleRecord
from ai_whisperer.domain.sessions import SessionRecord, SessionSummary
from ai_whisperer.domain.snapshot import InboxMail, Link, LinkKind
from ai_whisperer.domain.tasks import Priority
from ai_whisperer.domain.waits import WaitKind, WaitRecord
from ai_whisperer.store.rows import Row

_encode = msgspec.json.Encoder().encode
_any = msgspec.json.Decoder().decode
_schedule = msgspec.json.Decoder(ScheduleDefinition).decode
_names = msgspec.json.Decoder(tuple[str, ...]).decode
_texts = msgspec.json.Decoder(dict[str, str]).decode
_limits = msgspec.json.Decoder(SessionLimits).decode
_numbers = msgspec.json.Decoder(dict[str, int]).decode


def _text(value: Any) -> str:
    return _encode(value).decode()


def session_row(session: SessionRecord) -> Row:
    return (session.id, session.title, session.owner, session.created_at)


def session_from(row: Row) -> SessionRecord:
    return SessionRecord(id=row[0], title=row[1], owner=row[2], created_at=row[3])


def session_summary_from(row: Row) -> SessionSummary:
    return SessionSummary(id=row[0], title=row[1], owner=row[2], created_at=row[3], agents=row[4])


def limits_row(session_id: str, limits: SessionLimits) -> Row:
    return (session_id, _text(limits))


def limits_from(row: Row) -> SessionLimits:
    return _limits(row[0])


def wait_row(wait: WaitRecord) -> Row:
    return msgspec.structs.astuple(wait)


def wait_from(row: Row) -> WaitRecord:
    return WaitRecord(
        session_id=row[0],
        id=row[1],
        kind=WaitKind(row[2]),
        agent_id=row[3],
        task_id=row[4],
        target=row[5],
        target_agent=row[6],
        arrival=row[7],
        deadline_at=row[8],
        ttl_seconds=row[9],
        created_at=row[10],
    )


def approval_row(approval: ApprovalRecord) -> Row:
    return msgspec.structs.astuple(approval)


def approval_from(row: Row) -> ApprovalRecord:
    return ApprovalRecord(
        session_id=row[0],
        id=row[1],
        agent_id=row[2],
        task_id=row[3],
        tool=row[4],
        arguments=row[5],
        digest=row[6],
        state=ApprovalState(row[7]),
        requested_at=row[8],
        decided_at=row[9],
        decided_by=row[10],
        reason=row[11],
    )


def lock_row(lock: LockRecord) -> Row:
    return msgspec.structs.astuple(lock)


def lock_from(row: Row) -> LockRecord:
    return LockRecord(
        session_id=row[0],
        name=row[1],
        token=row[2],
        agent_id=row[3],
        task_id=row[4],
        acquired_at=row[5],
        expires_at=row[6],
        holder=row[7],
    )


def event_row(event: EventRecord) -> Row:
    return (
        event.session_id,
        event.id,
        event.name,
        event.sender,
        event.cause,
        _text(event.data),
        event.woken,
        event.notified,
        event.created_at,
    )


def event_from(row: Row) -> EventRecord:
    return EventRecord(
        session_id=row[0],
        id=row[1],
        name=row[2],
        sender=row[3],
        cause=row[4],
        data=_any(row[5]),
        woken=row[6],
        notified=row[7],
        created_at=row[8],
    )


def schedule_row(schedule: ScheduleRecord) -> Row:
    return (
        schedule.session_id,
        schedule.id,
        _text(schedule.definition),
        schedule.agent_id,
        schedule.paused,
        schedule.next_at,
        schedule.last_at,
        schedule.fired,
        schedule.cause,
        schedule.created_at,
    )


def schedule_from(row: Row) -> ScheduleRecord:
    return ScheduleRecord(
        session_id=row[0],
        id=row[1],
        definition=_schedule(row[2]),
        agent_id=row[3],
        paused=bool(row[4]),
        next_at=row[5],
        last_at=row[6],
        fired=row[7],
        cause=row[8],
        created_at=row[9],
    )


def room_row(room: RoomRecord) -> Row:
    return (
        room.session_id,
        room.id,
        room.kind,
        room.title,
        _text(room.members),
        room.hop_limit,
        room.last_number,
        _text(room.seen),
        room.created_at,
    )


def room_from(row: Row) -> RoomRecord:
    return RoomRecord(
        session_id=row[0],
        id=row[1],
        kind=RoomKind(row[2]),
        title=row[3],
        members=_names(row[4]),
        hop_limit=row[5],
        last_number=row[6],
        seen=_numbers(row[7]),
        created_at=row[8],
    )


def message_row(message: MessageRecord) -> Row:
    return (
        message.session_id,
        message.id,
        message.room_id,
        message.number,
        message.sender,
        message.text,
        _text(message.mentions),
        _text(message.asked),
        message.task_id,
        message.hops,
        message.cause,
        message.created_at,
    )


def message_from(row: Row) -> MessageRecord:
    return MessageRecord(
        session_id=row[0],
        id=row[1],
        room_id=row[2],
        number=row[3],
        sender=row[4],
        text=row[5],
        mentions=_names(row[6]),
        asked=_texts(row[7]),
        task_id=row[8],
        hops=row[9],
        cause=row[10],
        created_at=row[11],
    )


def link_row(session_id: str, link: Link) -> Row:
    return (session_id, link.kind, link.sender, link.recipient, link.count, link.last_at)


def link_from(row: Row) -> Link:
    kind, sender, recipient, count, last_at = row
    return Link(kind=LinkKind(kind), sender=sender, recipient=recipient, count=count, last_at=last_at)


def inbox_from(row: Row) -> InboxMail:
    return InboxMail(
        mail_id=row[0],
        thread_id=row[1],
        sender=row[2],
        subject=row[3],
        priority=Priority(row[4]),
        is_read=row[5] != MailState.QUEUED,
        at=row[6],
        arrival=row[7],
    )

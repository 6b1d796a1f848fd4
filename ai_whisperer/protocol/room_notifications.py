"""The params of the notifications about rooms: who is in them, and what is said there."""

from __future__ import annotations

from ai_whisperer.domain.rooms import RoomKind
from ai_whisperer.domain.tasks import Failure
from ai_whisperer.protocol.notification_base import NotificationParams, OfAgent, OfTask


class RoomCreated(NotificationParams, frozen=True, kw_only=True):
    room_id: str
    kind: RoomKind
    title: str
    members: list[str]
    hop_limit: int


class RoomMember(OfAgent, frozen=True, kw_only=True):
    room_id: str


class RoomMessage(NotificationParams, frozen=True, kw_only=True):
    room_id: str
    number: int
    message_id: str
    sender: str
    text: str
    mentions: list[str]
    hops: int
    task_id: str | None


class RoomAnswer(OfTask, frozen=True, kw_only=True):
    room_id: str
    number: int


class RoomUnanswered(RoomAnswer, frozen=True, kw_only=True):
    error: Failure


class RoomAbsent(RoomMember, frozen=True, kw_only=True):
    number: int
    reason: str


class RoomHopLimit(RoomMember, frozen=True, kw_only=True):
    number: int
    mentions: list[str]
    hop_limit: int

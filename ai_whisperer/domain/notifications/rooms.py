"""Notifications about rooms: who is in them, and what is said there."""

from __future__ import annotations

from typing import Self

import msgspec
from msgspec import UNSET, UnsetType

from ai_whisperer.domain.attachments import Attachment
from ai_whisperer.domain.notifications.base import OfAgent, OfTask, Told, notification
from ai_whisperer.domain.rooms import MessageRecord, RoomKind, RoomRecord
from ai_whisperer.domain.tasks import Failure


@notification("room.created", "was opened with {@members}", watched=False)
class RoomCreated(Told, frozen=True, kw_only=True):
    """A room was opened."""

    who = "[The room {title}|A chat]"
    room_id: str
    kind: RoomKind
    title: str
    members: list[str]
    hop_limit: int

    @classmethod
    def of(cls, room: RoomRecord) -> Self:
        return cls(
            room_id=room.id, kind=room.kind, title=room.title, members=list(room.members), hop_limit=room.hop_limit
        )


@notification("room.deleted", "was deleted", watched=False)
class RoomDeleted(Told, frozen=True, kw_only=True):
    """A room was deleted with all that was said in it."""

    who = "The room {roomId}"
    room_id: str


class RoomMember(OfAgent, frozen=True, kw_only=True):
    room_id: str


@notification("room.member_added", "joined the room {roomId}", watched=False)
class RoomMemberAdded(RoomMember, frozen=True, kw_only=True):
    """An agent joined a room."""


@notification("room.member_removed", "left the room {roomId}", watched=False)
class RoomMemberRemoved(RoomMember, frozen=True, kw_only=True):
    """An agent left a room."""


class MessagePart(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """An image or a file that came with a message, see `Attachment`."""

    digest: str
    media_type: str
    size: int
    name: str
    tokens: int

    @classmethod
    def of(cls, part: Attachment) -> Self:
        return cls(digest=part.digest, media_type=part.media_type, size=part.size, name=part.name, tokens=part.tokens)


@notification("room.message", "said: {text}")
class RoomMessage(Told, frozen=True, kw_only=True):
    """Something was said in a room."""

    who = "{@sender}"
    room_id: str
    number: int
    message_id: str
    sender: str
    text: str
    mentions: list[str]
    hops: int
    task_id: str | None
    parts: list[MessagePart] | UnsetType = UNSET

    @classmethod
    def of(cls, message: MessageRecord) -> Self:
        return cls(
            room_id=message.room_id,
            number=message.number,
            message_id=message.id,
            sender=message.sender,
            text=message.text,
            mentions=list(message.mentions),
            hops=message.hops,
            task_id=message.task_id,
            parts=UNSET if message.parts is None else [MessagePart.of(part) for part in message.parts],
        )


class RoomAnswer(OfTask, frozen=True, kw_only=True):
    room_id: str
    number: int


@notification("room.answering", "is about to answer message {number}", watched=False)
class RoomAnswering(RoomAnswer, frozen=True, kw_only=True):
    """A member was asked and answers in a task."""


@notification("room.passed", "passed on message {number}")
class RoomPassed(RoomAnswer, frozen=True, kw_only=True):
    """A member passed."""


@notification("room.joined", "takes message {number} into the answer that it is at")
class RoomJoined(RoomAnswer, frozen=True, kw_only=True):
    """A member hears a message while it is at the answer to an earlier one: that answer is for both."""


@notification("room.unanswered", "did not answer message {number}: {error.message}", level="warning")
class RoomUnanswered(RoomAnswer, frozen=True, kw_only=True):
    """A member did not answer."""

    error: Failure


@notification("room.absent", "was not asked about message {number}: it is {reason}")
class RoomAbsent(RoomMember, frozen=True, kw_only=True):
    """A member was not asked."""

    number: int
    reason: str


@notification(
    "room.hop_limit",
    "asked {@mentions} without effect: agents may ask each other {hopLimit} times in a row",
    level="warning",
    watched=False,
)
class RoomHopLimit(RoomMember, frozen=True, kw_only=True):
    """An answer asked nobody, because agents had reached the limit of asking each other."""

    number: int
    mentions: list[str]
    hop_limit: int

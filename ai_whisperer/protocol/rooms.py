"""The methods `room.*`: talking with one agent or several."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.rooms import MessageRecord, RoomRecord
from ai_whisperer.domain.tasks import Deliver
from ai_whisperer.protocol.attachments import FilePart
from ai_whisperer.protocol.method import Effect, InSession, Method, OfAgent


class RoomList(msgspec.Struct, frozen=True):
    """Rooms, the oldest first."""

    rooms: list[RoomRecord]


class MessageList(msgspec.Struct, frozen=True):
    """Messages of a room, in order."""

    messages: list[MessageRecord]


# Params of a method that acts on a room.
class OfRoom(InSession, frozen=True, kw_only=True):
    room_id: str


class CreateRoom(InSession, frozen=True, kw_only=True):
    """Open a group. An answer that mentions members asks them in turn, up to `hopLimit` times in a row."""

    members: tuple[str, ...]
    title: str = ""
    hop_limit: int = 4
    room_id: str | None = None


class GetRoom(OfRoom, frozen=True, kw_only=True):
    """The room as it is now."""


class OfMember(OfRoom, frozen=True, kw_only=True):
    agent_id: str


class PostMessage(OfRoom, frozen=True, kw_only=True):
    """Say something in a room; `asked` of the answer leads from members to the tasks in which they answer.

    In a group `@name` asks that member and `@all` all of them; without a mention all may answer or pass. With `deliver`
    `next_step` members that are about to answer in the room hear it before their next step.
    """

    text: str
    message_id: str | None = None
    parts: tuple[FilePart, ...] = ()
    deliver: Deliver = Deliver.IN_TURN


class ListMessages(OfRoom, frozen=True, kw_only=True):
    after: int = 0
    limit: int = 100


CREATE_ROOM = Method("room.create", CreateRoom, RoomRecord, "create_room", once="room_id")
OPEN_CHAT = Method("room.openChat", OfAgent, RoomRecord, "open_chat", Effect.REPEATS)
LIST_ROOMS = Method("room.list", InSession, RoomList, "list_rooms", Effect.READS)
GET_ROOM = Method("room.get", GetRoom, RoomRecord, "get_room", Effect.READS)
ADD_MEMBER = Method("room.addMember", OfMember, RoomRecord, "add_member")
REMOVE_MEMBER = Method("room.removeMember", OfMember, RoomRecord, "remove_member")
POST_MESSAGE = Method("room.post", PostMessage, MessageRecord, "post_message", once="message_id")
LIST_MESSAGES = Method("room.messages", ListMessages, MessageList, "room_messages", Effect.READS)

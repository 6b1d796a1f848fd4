"""The methods `room.*`: talking with one agent or several."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.rooms import MessageRecord, RoomRecord
from ai_whisperer.protocol.method import Effect, InSession, Method, OfAgent


class RoomList(msgspec.Struct, frozen=True):
    """Rooms, the oldest first."""

    rooms: list[RoomRecord]


class MessageList(msgspec.Struct, frozen=True):
    """Messages of a room, in order."""

    messages: list[MessageRecord]


class OfRoom(InSession, frozen=True, kw_only=True):
    """Params of a method that acts on a room."""

    room_id: str


class CreateRoom(InSession, frozen=True, kw_only=True):
    """Open a group. An answer that mentions members asks them in turn, up to `hopLimit` times in a row."""

    members: tuple[str, ...]
    title: str = ""
    hop_limit: int = 4
    room_id: str | None = None


class OpenChat(OfAgent, frozen=True, kw_only=True):
    """The 1-1 room of an agent. It is made when it is asked for the first time."""


class ListRooms(InSession, frozen=True, kw_only=True):
    """All rooms, the oldest first."""


class GetRoom(OfRoom, frozen=True, kw_only=True):
    """The room as it is now."""


class AddMember(OfRoom, frozen=True, kw_only=True):
    """Let an agent into a group; it can see what was said before."""

    agent_id: str


class RemoveMember(OfRoom, frozen=True, kw_only=True):
    """Take an agent out of a group. What it is about to answer is no longer posted."""

    agent_id: str


class PostMessage(OfRoom, frozen=True, kw_only=True):
    """Say something in a room; `asked` of the answer leads from members to the tasks in which they answer.

    In a group `@name` asks that member and `@all` all of them; without a mention all may answer or pass.
    """

    text: str
    message_id: str | None = None


class ListMessages(OfRoom, frozen=True, kw_only=True):
    """A page of the room's transcript: the messages after this number, in order."""

    after: int = 0
    limit: int = 100


CREATE_ROOM = Method("room.create", CreateRoom, RoomRecord, "create_room", once="room_id")
OPEN_CHAT = Method("room.openChat", OpenChat, RoomRecord, "open_chat", Effect.REPEATS)
LIST_ROOMS = Method("room.list", ListRooms, RoomList, "list_rooms", Effect.READS)
GET_ROOM = Method("room.get", GetRoom, RoomRecord, "get_room", Effect.READS)
ADD_MEMBER = Method("room.addMember", AddMember, RoomRecord, "add_member")
REMOVE_MEMBER = Method("room.removeMember", RemoveMember, RoomRecord, "remove_member")
POST_MESSAGE = Method("room.post", PostMessage, MessageRecord, "post_message", once="message_id")
LIST_MESSAGES = Method("room.messages", ListMessages, MessageList, "room_messages", Effect.READS)

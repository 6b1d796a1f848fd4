"""The methods `mail.*` and `room.*`: writing to agents and talking with them."""

from __future__ import annotations

from typing import Any

import msgspec

from ai_whisperer.coordination import MessageRecord, RoomRecord
from ai_whisperer.protocol.method import InSession, Method, OfAgent
from ai_whisperer.records import USER, MailRecord, MailState, Priority


class MailList(msgspec.Struct, frozen=True):
    """Mails, the newest first."""

    mails: list[MailRecord]


class SendMail(InSession, frozen=True, kw_only=True):
    """Send mail from the user to an agent. When this is answered the mail is on disk.

    A caller that gives a `mailId` may call again with the same content: the mail is sent once.
    """

    to: str
    subject: str
    body: str
    priority: Priority = Priority.NORMAL
    thread_id: str | None = None
    mail_id: str | None = None


class ReplyMail(InSession, frozen=True, kw_only=True):
    """Answer a mail in the user's inbox."""

    mail_id: str
    body: str
    priority: Priority = Priority.NORMAL


class ListMail(InSession, frozen=True, kw_only=True):
    """The mails of an agent or, by default, of the user, the newest first."""

    owner: str = USER
    limit: int = 100


class MarkMail(InSession, frozen=True, kw_only=True):
    """Mark a mail in the user's inbox as `read` or `archived`."""

    mail_id: str
    state: MailState


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
    """Take an agent out of a group. What it is about to answer is not posted any more."""

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


SEND_MAIL = Method("mail.send", SendMail, MailRecord)
REPLY_MAIL = Method("mail.reply", ReplyMail, MailRecord)
LIST_MAIL = Method("mail.list", ListMail, MailList)
MARK_MAIL = Method("mail.mark", MarkMail, MailRecord)
CREATE_ROOM = Method("room.create", CreateRoom, RoomRecord)
OPEN_CHAT = Method("room.openChat", OpenChat, RoomRecord)
LIST_ROOMS = Method("room.list", ListRooms, RoomList)
GET_ROOM = Method("room.get", GetRoom, RoomRecord)
ADD_MEMBER = Method("room.addMember", AddMember, RoomRecord)
REMOVE_MEMBER = Method("room.removeMember", RemoveMember, RoomRecord)
POST_MESSAGE = Method("room.post", PostMessage, MessageRecord)
LIST_MESSAGES = Method("room.messages", ListMessages, MessageList)

METHODS: tuple[Method[Any, Any], ...] = (
    SEND_MAIL,
    REPLY_MAIL,
    LIST_MAIL,
    MARK_MAIL,
    CREATE_ROOM,
    OPEN_CHAT,
    LIST_ROOMS,
    GET_ROOM,
    ADD_MEMBER,
    REMOVE_MEMBER,
    POST_MESSAGE,
    LIST_MESSAGES,
)

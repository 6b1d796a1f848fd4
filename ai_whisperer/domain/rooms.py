"""Rooms: chats of several agents, or of one, with the person."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ai_whisperer.domain.attachments import Attachment
from ai_whisperer.domain.record import Record


class RoomKind(StrEnum):
    """`direct`: the user and one agent. `group`: the user and several."""

    DIRECT = "direct"
    GROUP = "group"


class RoomRecord(Record, frozen=True, kw_only=True):
    """A chat of the user with one agent or several. `seen` is the last message that each member was shown.

    Messages up to the number `erased_until` no longer have a text. A room that was deleted (`deleted_at`) is
    kept for its numbers alone: one of the same id continues with them.
    """

    session_id: str
    id: str
    kind: RoomKind
    title: str
    members: tuple[str, ...]
    hop_limit: int
    last_number: int = 0
    seen: Mapping[str, int] = {}
    created_at: float = 0.0
    erased_until: int = 0
    deleted_at: float | None = None

    @property
    def room_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id


class MessageRecord(Record, frozen=True, kw_only=True):
    """One message of a room. `task_id` is the task whose answer it is; `hops` counts the agents before it in a row.

    `mentions` are the members that it addresses by name; `asked` leads from those who were asked for an answer to the
    tasks in which they give it. `parts` are the images and files that came with it. One with `erased_at` no longer has
    a text.
    """

    session_id: str
    id: str
    room_id: str
    number: int
    sender: str
    text: str
    mentions: tuple[str, ...] = ()
    asked: Mapping[str, str] = {}
    task_id: str | None = None
    hops: int = 0
    cause: str = ""
    created_at: float = 0.0
    parts: tuple[Attachment, ...] | None = None
    erased_at: float | None = None

    @property
    def message_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id

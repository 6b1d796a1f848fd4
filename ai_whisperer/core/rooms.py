"""The rules of rooms: what may be said, who is asked, what a member is shown, when it passes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ai_whisperer.core.attachments import MAX_PARTS, described
from ai_whisperer.core.marks import quoted, said
from ai_whisperer.core.mentions import Mentions
from ai_whisperer.core.tasks import inherited
from ai_whisperer.core.text import check_text, shortened
from ai_whisperer.domain.attachments import Attachment
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.rooms import MessageRecord, RoomKind, RoomRecord
from ai_whisperer.domain.tasks import Deliver, Origin, RoomTurn, TaskKind, TaskRecord
from ai_whisperer.errors import InvalidInputError, StateError, TooLargeError, UnknownMemberError

RoomRef = str | RoomRecord
"""A room: its record, as it is or was, or its id."""

MAX_MESSAGE_BYTES = 256 << 10
MAX_MEMBERS = 100
MAX_HOP_LIMIT = 100
MAX_TITLE_CHARACTERS = 200
MAX_MESSAGES_SHOWN = 200
MAX_WAITING_TURNS = 5
"""So many turns of one member may wait in a room before agents that mention it are not passed on any more."""

_PASS = re.compile(r"[\W_]*\[\s*pass\s*\][\W_]*", re.IGNORECASE)
_LONGEST_PASS = 40


def room_id_of(room: RoomRef) -> str:
    """The id of the room that is meant; raises `InvalidInputError`."""
    if not isinstance(room, str | RoomRecord):
        raise InvalidInputError(f"Name a room by its id or its record, not by {type(room).__name__}.")
    return room if isinstance(room, str) else room.id


def thread_of(room_id: str) -> str:
    """The thread in which each member keeps its history of the room. Callers cannot give threads with this sign."""
    return f"room~{room_id}"


def chat_id(agent_id: str) -> str:
    """The id of the 1-1 room of an agent. Callers cannot give ids with this sign."""
    return f"chat~{agent_id}"


def answer_id(task: TaskRecord) -> str:
    """The id of the message that the task's answer becomes: a task answers once."""
    return f"{task.id}~answer"


def check_message_text(text: str) -> None:
    """Raise unless the text can be a message of a room."""
    check_text("message", text, max_bytes=MAX_MESSAGE_BYTES)
    if not text.strip():
        raise InvalidInputError("The message is empty; nothing was posted. Write something.")


def check_title(title: str) -> None:
    check_text("title", title, max_bytes=MAX_MESSAGE_BYTES)
    if not title.isprintable():
        raise InvalidInputError("The title must be one line of printable characters.")
    if len(title) > MAX_TITLE_CHARACTERS:
        raise TooLargeError(
            f"The title has {len(title)} characters, at most {MAX_TITLE_CHARACTERS} are allowed. Shorten it."
        )


def check_members(members: Sequence[str]) -> None:
    """Raise unless these ids can be the members of a group."""
    twice = sorted({member for member in members if members.count(member) > 1})
    if twice:
        raise InvalidInputError(f"These are named more than once: {', '.join(twice)}. Name each member once.")
    if not 1 <= len(members) <= MAX_MEMBERS:
        raise InvalidInputError(f"A room has 1 to {MAX_MEMBERS} agents as members, not {len(members)}.")


def check_hop_limit(hop_limit: int) -> None:
    if isinstance(hop_limit, bool) or not isinstance(hop_limit, int) or not 0 <= hop_limit <= MAX_HOP_LIMIT:
        raise InvalidInputError(f"The hop limit must be a whole number from 0 to {MAX_HOP_LIMIT}, not {hop_limit!r}.")


def check_group(room: RoomRecord) -> None:
    """Raise `StateError` if the members of the room cannot be changed."""
    if room.kind is RoomKind.DIRECT:
        raise StateError(f"'{room.id}' is a 1-1 chat, whose members stay. Open a group instead.")


def check_no_strangers(room: RoomRecord, mentions: Mentions, *, agents: Sequence[str]) -> None:
    """Raise if a message for a group mentions somebody who is not in it; `agents` are those strangers who exist."""
    if not mentions.strangers or room.kind is RoomKind.DIRECT:
        return
    names = " and ".join(f"'@{name}'" for name in mentions.strangers[:3])
    hint = f"Let {agents[0]} into the room first" if agents else "Correct the name"
    raise UnknownMemberError(
        f"Nobody in {_as_known(room)} is called {names}; nothing was posted. {members_of(room)} {hint}, or write "
        "\\@ for an @ that addresses nobody."
    )


def check_presence(room: RoomRecord, mentions: Mentions, *, absent: Sequence[str]) -> None:
    """Raise if somebody whom the user asks for by name is stopped, or everybody in the room is."""
    named = [member for member in mentions.named if member in absent]
    if named and room.kind is RoomKind.GROUP:
        raise StateError(
            f"You mention members that are stopped and cannot answer: {', '.join(named)}; nothing was posted. "
            "Start them first, or leave the mention out."
        )
    if len(absent) == len(room.members):
        raise StateError(
            f"Nobody in {_as_known(room)} can answer, because all are stopped: {', '.join(absent)}; nothing was "
            "posted. Start one of them first."
        )


def _as_known(room: RoomRecord) -> str:
    """The room in words that people know it by: an id that was made up says nothing to them."""
    return f"room '{room.title}'" if room.title else "this room"


def members_of(room: RoomRecord) -> str:
    return f"Members: {', '.join(room.members)}."


def mentioned(room: RoomRecord, mentions: Mentions, *, sender: str) -> tuple[str, ...]:
    """The members that a message addresses by name, whoever sent it left out."""
    if room.kind is RoomKind.DIRECT:
        return ()
    wanted = room.members if mentions.everyone else mentions.named
    return tuple(member for member in wanted if member != sender)


def is_pass(room: RoomRecord, answer: str) -> bool:
    """Whether the answer of a member says that it has nothing to say. In a 1-1 chat only silence does."""
    text = answer.strip()
    if room.kind is RoomKind.DIRECT or not text:
        return not text
    return len(text) <= _LONGEST_PASS and _PASS.fullmatch(text) is not None


def as_lines(message: MessageRecord, *, max_bytes: int = MAX_MESSAGE_BYTES) -> str:
    """The message as a member is shown it: between marks, so that it cannot fake another speaker's."""
    line = f"[{message.number}] {message.sender}: {said(message.sender, shortened(message.text, max_bytes))}"
    return line if message.parts is None else f"{line}\n[with {', '.join(map(described, message.parts))}]"


def prompt_for(
    room: RoomRecord,
    member: str,
    messages: Sequence[MessageRecord],
    *,
    seen: int,
    addressed: bool,
    names: Mapping[str, str],
    max_bytes: int,
) -> str:
    """What a member is told when it may answer: the messages after the one it has `seen`; the last is the occasion.

    Its own messages are left out, since they are in its history. When there is more than `max_bytes` of it, the oldest
    messages are left out too. `names` are the display names of the members.
    """
    unseen = [message for message in messages if message.number > seen]
    shown, left_out = _newest([message for message in unseen if message.sender != member], max_bytes)
    left_out = left_out or unseen[0].number > seen + 1
    if room.kind is RoomKind.DIRECT:
        return "\n\n".join(shortened(message.text, max_bytes) for message in shown)
    titled = f"room {quoted(room.title)}" if room.title else "room"
    return "\n".join(
        [
            f"You are {_called(member, names)} in the {titled} with {_company(room, member, names)}.",
            f"New messages since you last saw the room{' (older ones are left out)' if left_out else ''}:",
            *(as_lines(message, max_bytes=max_bytes) for message in shown),
            "",
            _request(shown[-1], addressed=addressed),
            _manners(room, member),
        ]
    )


def task_for_member(
    prompt: str,
    message: MessageRecord,
    member: str,
    *,
    task_id: str,
    arrival: int,
    seen: int,
    cause: TaskRecord | None,
    parts: tuple[Attachment, ...] | None = None,
    deliver: Deliver = Deliver.IN_TURN,
) -> TaskRecord:
    """The task in which a member answers a message. What an answer causes belongs to the tree of its task."""
    turn = RoomTurn(room_id=message.room_id, number=message.number, seen=seen, hops=message.hops)
    origin = Origin() if cause is None else inherited(cause)
    return TaskRecord(
        session_id=message.session_id,
        id=task_id,
        parts=parts,
        agent_id=member,
        thread_id=thread_of(message.room_id),
        kind=TaskKind.ROOM,
        prompt=prompt,
        arrival=arrival,
        cause=f"message:{message.id}",
        created_at=message.created_at,
        parent_id=None if cause is None else cause.id,
        origin=replace(origin, room=turn, next_step=deliver is Deliver.NEXT_STEP),
    )


def parts_for(messages: Sequence[MessageRecord], *, seen: int) -> tuple[Attachment, ...] | None:
    """The images and files of the messages that a member has not seen, each once, the newest of them."""
    found = {part.digest: part for message in messages if message.number > seen for part in message.parts or ()}
    return tuple(found.values())[-MAX_PARTS:] or None


def _newest(messages: Sequence[MessageRecord], max_bytes: int) -> tuple[list[MessageRecord], bool]:
    """As many of the newest as fit, one at least, and whether some were left out."""
    left = max_bytes
    for index in range(len(messages) - 1, -1, -1):
        left -= len(messages[index].text.encode())
        if left < 0 and index < len(messages) - 1:
            return list(messages[index + 1 :]), True
    return list(messages), False


def _called(member: str, names: Mapping[str, str]) -> str:
    name = " ".join(names.get(member, "").split())
    return member if name in ("", member) else f"{member} ({quoted(name)})"


def _company(room: RoomRecord, member: str, names: Mapping[str, str]) -> str:
    others = [_called(other, names) for other in room.members if other != member]
    return ", ".join([f"{USER} (the person)", *others])


def _request(occasion: MessageRecord, *, addressed: bool) -> str:
    if addressed:
        return f"Message [{occasion.number}] addresses you by name: answer it."
    return (
        f"Message [{occasion.number}] is for everyone. Answer it if you have something to add; "
        "answer with exactly [PASS] if you have nothing to add."
    )


def _manners(room: RoomRecord, member: str) -> str:
    example = next((other for other in room.members if other != member), None)
    manners = "Your answer is posted in the room as it is, without a heading."
    if example is not None:
        manners += f" To ask another member write @ and its name, such as @{example}; without that nobody is asked."
    return manners

"""`whisperer chat`, and `whisperer rooms`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ai_whisperer.cli.arguments import AttachOption, DeliverOption, LimitOption, YesOption, once_option, text_argument
from ai_whisperer.cli.calling import Call, Connected, command, group
from ai_whisperer.cli.confirming import confirmed
from ai_whisperer.cli.connecting import FOLLOWING_SECONDS, AgentName, agent_names
from ai_whisperer.cli.fleet import hindrance
from ai_whisperer.cli.output import Column
from ai_whisperer.cli.short_ids import whole_id
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.rooms import RoomKind, RoomRecord
from ai_whisperer.domain.sessions import IdKind
from ai_whisperer.domain.tasks import Deliver

if TYPE_CHECKING:
    from ai_whisperer.client import Client

RoomId = Annotated[str, typer.Argument(metavar="ROOM", help="The id of the room, or how it begins."), IdKind.ROOM]
Agents = Annotated[
    list[str],
    typer.Argument(metavar="AGENT...", help="Their ids, names or aliases.", autocompletion=agent_names),
]


def register(app: typer.Typer) -> None:
    command(app, chat)
    told = "Show the rooms; open a group, read it, post in it, delete it."
    group(app, "rooms", list_rooms, create, show, post, add, remove, delete, help=told)


async def chat(
    call: Call,
    agents: Annotated[
        list[str] | None,
        typer.Argument(metavar="AGENT", help="Their ids, names or aliases.", autocompletion=agent_names),
    ] = None,
    *,
    room: Annotated[str | None, typer.Option("--room", metavar="ROOM", help="Continue in this room.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Open a new group, even if one with these agents exists.")] = False,
) -> None:
    """Talk with an agent, or with several in a group; Ctrl-D ends it.

    Several agents are talked with in the newest group that they alone are in; where there is none, one is opened.
    Answers come as they are written. Lines can also be piped in: each is sent when the one before was answered. In a
    group `@name` asks one member, without it all may answer or pass. `/help` shows the commands of a chat: `/approve`
    and `/refuse` for a tool call that waits for your approval, `/stop` for the answers under way. What you type while
    an agent is at its answer it hears before its next step; when it asks you something, a line is your answer.
    """
    from ai_whisperer.cli.conversation import Conversation
    from ai_whisperer.cli.deciding import can_ask
    from ai_whisperer.cli.racing import first_of
    from ai_whisperer.cli.talking import ChatCommands, Talk
    from ai_whisperer.cli.typed_lines import typed_lines

    if bool(agents) == (room is not None):
        raise typer.BadParameter("Name either the agents to talk with, or with --room the room to continue in.")
    if new and len(agents or ()) < 2:
        raise typer.BadParameter("--new is for a group: name several agents. With one agent you have one chat.")
    async with call.server(patience_seconds=FOLLOWING_SECONDS) as client:
        record = await _room(client, agents or (), room) if not new else await client.create_room(agents or ())
        if room is None and record.last_number and record.kind is RoomKind.GROUP:
            call.output.note(f"Continuing in room {_named(record)}; --new opens another.")
        for member in record.members:
            waits = hindrance(await client.get_agent_status(member))
            if waits is not None:
                call.output.note(waits)
        if call.output.is_terminal:
            members = ", ".join(record.members)
            call.output.note(f"You talk with {members} in room {record.id}. /help shows commands, Ctrl-D ends it.")
        async with client.events(deltas=not call.output.as_json) as notes:
            conversation = Conversation(client, record, call.output)
            commands = ChatCommands(client, conversation, call.output)
            talk = Talk(conversation, commands, call.output, with_person=can_ask(call.output))
            await first_of(conversation.follow(notes), talk.take(typed_lines(sys.stdin)))


async def _room(client: Client, agents: Sequence[str], room: str | None) -> RoomRecord:
    if room is not None:
        return await client.get_room(await whole_id(client, IdKind.ROOM, room))
    if len(agents) == 1:
        return await client.open_chat(agents[0])
    members = {(await client.get_agent_status(agent)).agent_id for agent in agents}
    groups = [
        each for each in await client.list_rooms() if each.kind is RoomKind.GROUP and set(each.members) == members
    ]
    return groups[-1] if groups else await client.create_room(agents)


def _named(room: RoomRecord) -> str:
    return f"{room.id} ({room.title})" if room.title else room.id


async def list_rooms(call: Connected) -> None:
    """Show the rooms, the oldest first."""
    call.output.table(await call.client.list_rooms(), ROOMS, empty="There are no rooms. Open one: whisperer chat AGENT")


async def create(
    call: Connected,
    agents: Agents,
    *,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="What it is about.")] = "",
    hop_limit: Annotated[
        int, typer.Option("--hop-limit", min=0, help="How often in a row agents may ask each other.")
    ] = 4,
    room_id: Annotated[str | None, once_option("created")] = None,
) -> None:
    """Open a group."""
    room = await call.client.create_room(agents, title=title, hop_limit=hop_limit, room_id=room_id)
    call.output.told(room, f"Created room {room.id}: {', '.join(room.members)}.")


async def show(
    call: Connected,
    room: RoomId,
    *,
    after: Annotated[int | None, typer.Option("--after", min=0, help="Show the messages after this number.")] = None,
    limit: LimitOption = 100,
) -> None:
    """Show what was said last in a room."""
    if after is None:
        after = max(0, (await call.client.get_room(room)).last_number - limit)
    messages = await call.client.room_messages(room, after=after, limit=limit)
    if call.output.as_json:
        call.output.json(messages)
        return
    if not messages:
        call.output.note("There are no messages.")
    for message in messages:
        call.output.text(f"{message.number:4}  {moment(message.created_at)}  {message.sender}: {message.text}")


async def post(
    call: Connected,
    room: RoomId,
    text: Annotated[str, text_argument("TEXT", "The message")],
    *,
    attach: AttachOption = None,
    deliver: DeliverOption = Deliver.IN_TURN,
) -> None:
    """Say something in a room."""
    message = await call.client.post_message(room, text, parts=attach or (), deliver=deliver)
    call.output.told(message, f"Message {message.number} was posted. Asked: {', '.join(message.asked) or 'nobody'}.")


async def add(call: Connected, room: RoomId, agent: AgentName) -> None:
    """Let an agent into a group."""
    _tell_members(call, await call.client.add_member(room, agent))


async def remove(call: Connected, room: RoomId, agent: AgentName) -> None:
    """Take an agent out of a group."""
    _tell_members(call, await call.client.remove_member(room, agent))


async def delete(call: Connected, room: RoomId, *, yes: YesOption = False) -> None:
    """Delete a room with all that was said in it, for good."""
    record = await call.client.get_room(room)
    await confirmed(call, f"Delete room {_named(record)} with {record.last_number} messages, for good?", yes=yes)
    call.output.told(await call.client.delete_room(record.id), f"Deleted room {record.id}.")


def _tell_members(call: Call, room: RoomRecord) -> None:
    call.output.told(room, f"Members of room {room.id}: {', '.join(room.members)}.")


ROOMS: Sequence[Column[RoomRecord]] = (
    Column("ROOM", lambda each: each.id, whole=True),
    Column("KIND", lambda each: each.kind),
    Column("MEMBERS", lambda each: ", ".join(each.members)),
    Column("MESSAGES", lambda each: str(each.last_number), right=True),
    Column("CREATED", lambda each: moment(each.created_at)),
    Column("TITLE", lambda each: each.title),
)

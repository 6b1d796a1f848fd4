"""Talking to agents in rooms, from outside."""

from __future__ import annotations

from collections.abc import Iterable

from ai_whisperer.client.base import AgentRef, ClientBase, agent_name
from ai_whisperer.core.paging import checked_id, checked_limit, checked_position
from ai_whisperer.core.rooms import RoomRef, check_hop_limit, check_message_text, check_title, room_id_of
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.rooms import MessageRecord, RoomRecord
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.protocol import rooms
from ai_whisperer.protocol.agents import AgentDetails


class ClientRooms(ClientBase):
    """The rooms of a session."""

    async def create_room(
        self, members: Iterable[AgentRef], *, title: str = "", hop_limit: int = 4, room_id: str | None = None
    ) -> RoomRecord:
        """Open a group. An answer that mentions members asks them in turn, up to `hop_limit` times in a row.

        A caller that gives an id may call again with the same content: the room is made once.
        """
        if isinstance(members, str | AgentStatus | AgentDetails) or not isinstance(members, Iterable):
            raise InvalidInputError("The members must be a list of agents, even if it is only one.")
        checked = self._new_id() if room_id is None else checked_id(room_id)
        names = tuple(agent_name(member) for member in members)
        check_title(title)
        check_hop_limit(hop_limit)
        params = rooms.CreateRoom(
            session_id=self._session_id, members=names, title=title, hop_limit=hop_limit, room_id=checked
        )
        return await self._ask(rooms.CREATE_ROOM, params)

    async def open_chat(self, agent_id: AgentRef) -> RoomRecord:
        """The 1-1 room of an agent. It is made when it is asked for the first time."""
        params = rooms.OpenChat(session_id=self._session_id, agent_id=agent_name(agent_id))
        return await self._ask(rooms.OPEN_CHAT, params)

    async def list_rooms(self) -> list[RoomRecord]:
        """All rooms, the oldest first."""
        return (await self._ask(rooms.LIST_ROOMS, rooms.ListRooms(session_id=self._session_id))).rooms

    async def get_room(self, room: RoomRef) -> RoomRecord:
        """The room as it is now; raises `UnknownRoomError`."""
        return await self._ask(rooms.GET_ROOM, rooms.GetRoom(session_id=self._session_id, room_id=room_id_of(room)))

    async def add_member(self, room: RoomRef, agent_id: AgentRef) -> RoomRecord:
        """Let an agent into a group; it can see what was said before."""
        params = rooms.AddMember(session_id=self._session_id, room_id=room_id_of(room), agent_id=agent_name(agent_id))
        return await self._do(rooms.ADD_MEMBER, params)

    async def remove_member(self, room: RoomRef, agent_id: AgentRef) -> RoomRecord:
        """Take an agent out of a group. What it is about to answer is no longer posted."""
        params = rooms.RemoveMember(
            session_id=self._session_id, room_id=room_id_of(room), agent_id=agent_name(agent_id)
        )
        return await self._do(rooms.REMOVE_MEMBER, params)

    async def post_message(self, room: RoomRef, text: str, *, message_id: str | None = None) -> MessageRecord:
        """Say something in a room; `asked` of what is returned has the tasks in which members answer.

        In a group `@name` asks that member and `@all` all of them; without a mention all may answer or pass. Answers
        become messages of the room. A caller that gives an id may call again with the same text: it is posted once.
        """
        room_id = room_id_of(room)
        check_message_text(text)
        params = rooms.PostMessage(
            session_id=self._session_id,
            room_id=room_id,
            text=text,
            message_id=self._new_id() if message_id is None else checked_id(message_id),
        )
        return await self._ask(rooms.POST_MESSAGE, params)

    async def room_messages(self, room: RoomRef, *, after: int = 0, limit: int = 100) -> list[MessageRecord]:
        """A page of the room's transcript: the messages after this number, in order."""
        params = rooms.ListMessages(
            session_id=self._session_id,
            room_id=room_id_of(room),
            after=checked_position(after),
            limit=checked_limit(limit),
        )
        return (await self._ask(rooms.LIST_MESSAGES, params)).messages

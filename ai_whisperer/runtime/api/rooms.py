"""Talking to agents in rooms: alone with one of them, or in a group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ai_whisperer.core import rooms as rules
from ai_whisperer.core.paging import checked_id, checked_limit, checked_position
from ai_whisperer.core.rooms import RoomRef
from ai_whisperer.core.tasks import delivery_of
from ai_whisperer.domain.attachments import Attachment, InputPart
from ai_whisperer.domain.rooms import MessageRecord, RoomKind, RoomRecord
from ai_whisperer.domain.tasks import Deliver
from ai_whisperer.errors import DuplicateIdError, InvalidInputError
from ai_whisperer.runtime.api.base import AgentRef
from ai_whisperer.runtime.api.handle import AgentSession
from ai_whisperer.runtime.api.tasks import SessionWork


class SessionRooms(SessionWork):
    """The part of the session manager that has rooms. When a method returns, what it did is on disk."""

    async def create_room(
        self, members: Iterable[AgentRef], *, title: str = "", hop_limit: int = 4, room_id: str | None = None
    ) -> RoomRecord:
        room = self._room(
            self._session.kernel.ids.new() if room_id is None else checked_id(room_id),
            kind=RoomKind.GROUP,
            title=title,
            members=self._members(members),
            hop_limit=hop_limit,
        )
        if self._session.rooms.knows(room.id):
            return await self._same_room(room)
        return await self._create(room)

    async def open_chat(self, agent_id: AgentRef) -> RoomRecord:
        created = self._create_if_missing(agent_id, lambda _: None)
        if created is not None:
            await created.commit()
        member = self._find_agent(agent_id).agent_id
        room_id = rules.chat_id(member)
        if self._session.rooms.knows(room_id):
            await self._session.kernel.flushed()
            return self._session.rooms.find(room_id)
        return await self._create(self._room(room_id, kind=RoomKind.DIRECT, title="", members=(member,), hop_limit=0))

    def list_rooms(self) -> list[RoomRecord]:
        return self._session.rooms.all_rooms()

    def get_room(self, room: RoomRef) -> RoomRecord:
        return self._session.rooms.find(rules.room_id_of(room))

    async def add_member(self, room: RoomRef, agent_id: AgentRef) -> RoomRecord:
        member, rooms = self._find_agent(agent_id).agent_id, self._session.rooms
        return await self._committed(lambda decision: rooms.add_member(decision, self.get_room(room), member))

    async def remove_member(self, room: RoomRef, agent_id: AgentRef) -> RoomRecord:
        member, rooms = self._find_agent(agent_id).agent_id, self._session.rooms
        return await self._committed(lambda decision: rooms.remove_member(decision, self.get_room(room), member))

    async def post_message(
        self,
        room: RoomRef,
        text: str,
        *,
        message_id: str | None = None,
        parts: Sequence[InputPart] = (),
        deliver: Deliver | str = Deliver.IN_TURN,
    ) -> MessageRecord:
        delivery = delivery_of(deliver)
        known_room = self.get_room(room)
        if message_id is not None:
            checked_id(message_id)
        if not parts:
            return await self._post(known_room, text, message_id, None, delivery)
        rules.check_message_text(text)
        most = min(self._max_attachment_bytes(member) for member in known_room.members)
        async with self._attaching:
            kept = await self._keep_parts(parts, max_bytes=most)
            return await self._post(known_room, text, message_id, kept, delivery)

    async def _post(
        self,
        room: RoomRecord,
        text: str,
        message_id: str | None,
        parts: tuple[Attachment, ...] | None,
        delivery: Deliver,
    ) -> MessageRecord:
        kernel, rooms = self._session.kernel, self._session.rooms

        async def same_and_unseen() -> tuple[MessageRecord | None, list[MessageRecord]]:
            same = None if message_id is None else await kernel.reads.message(message_id)
            return same, [] if same is not None else await rooms.stored_unseen(room)

        known, unseen = await kernel.reads.in_turn(same_and_unseen())
        known = known if message_id is None else rooms.transcript.fresh(message_id) or known
        if known is not None:
            return await self._same_message(known, room, text, parts)
        return await self._committed(
            lambda decision: rooms.post(
                decision,
                self.get_room(room.id),
                text,
                message_id=message_id or kernel.ids.new(),
                stored=unseen,
                parts=parts,
                deliver=delivery,
            )
        )

    async def room_messages(self, room: RoomRef, *, after: int = 0, limit: int = 100) -> list[MessageRecord]:
        known = self.get_room(room)
        found = await self._session.kernel.reads.messages(
            known.id, after=checked_position(after), limit=checked_limit(limit)
        )
        return self._session.rooms.shown(known, found)

    def _room(
        self, room_id: str, *, kind: RoomKind, title: str, members: tuple[str, ...], hop_limit: int
    ) -> RoomRecord:
        rules.check_title(title)
        rules.check_hop_limit(hop_limit)
        return RoomRecord(
            session_id=self._session.kernel.session_id,
            id=room_id,
            kind=kind,
            title=title,
            members=members,
            hop_limit=hop_limit,
        )

    def _members(self, given: Iterable[AgentRef]) -> tuple[str, ...]:
        if isinstance(given, str | AgentSession) or not isinstance(given, Iterable):
            raise InvalidInputError("The members must be a list of agents, even if it is only one.")
        members = tuple(self._find_agent(agent).agent_id for agent in given)
        rules.check_members(members)
        return members

    async def _create(self, room: RoomRecord) -> RoomRecord:
        return await self._committed(lambda decision: self._session.rooms.create(decision, room))

    async def _same_room(self, room: RoomRecord) -> RoomRecord:
        """Answer as the first time, once that is durable; raise if the id stands for another room."""
        known = self._session.rooms.find(room.id)
        if (known.title, known.members, known.hop_limit) != (room.title, room.members, room.hop_limit):
            raise DuplicateIdError(f"There is another room '{room.id}'. Choose another id; nothing was changed.")
        await self._session.kernel.flushed()
        return known

    async def _same_message(
        self, known: MessageRecord, room: RoomRecord, text: str, parts: tuple[Attachment, ...] | None
    ) -> MessageRecord:
        """Answer as the first time, once that is durable; raise if the id stood for something else."""
        before, now = ([part.digest for part in each or ()] for each in (known.parts, parts))
        is_same = known.erased_at is not None or (known.text, before) == (text, now)
        if known.room_id != room.id or not is_same:
            raise DuplicateIdError(
                f"The id '{known.id}' was used for something else. Choose another; nothing was posted."
            )
        await self._session.kernel.flushed()
        return known

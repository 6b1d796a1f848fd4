"""The rooms of a session: who is in them, what is said, who is asked to answer.

A message, the tasks of those who are asked, and how far each of them has seen the room are one decision. So are the
end of such a task, the message that its answer becomes, and the tasks that this starts in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ai_whisperer.core import rooms as rules
from ai_whisperer.core.attachments import records_of
from ai_whisperer.core.mentions import Mentions, mentions_in
from ai_whisperer.core.tasks import base_id
from ai_whisperer.core.text import shortened
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.attachments import Attachment
from ai_whisperer.domain.conversation import ChannelResponse
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.notifications.rooms import (
    RoomAbsent,
    RoomAnswering,
    RoomCreated,
    RoomDeleted,
    RoomHopLimit,
    RoomJoined,
    RoomMemberAdded,
    RoomMemberRemoved,
    RoomMessage,
    RoomPassed,
    RoomUnanswered,
)
from ai_whisperer.domain.rooms import MessageRecord, RoomKind, RoomRecord
from ai_whisperer.domain.tasks import Deliver, Failure, RoomTurn, TaskKind, TaskRecord, TaskState
from ai_whisperer.errors import QueueFullError, StateError, UnknownMemberError, UnknownRoomError
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.messaging.continuations import Continuations
from ai_whisperer.runtime.messaging.transcript import Transcript
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Agent, Roster

_ROOMS_LISTED = 50


class Rooms:
    """The rooms of one session. What a method raises, it raises before it has changed anything."""

    def __init__(
        self,
        kernel: Kernel,
        roster: Roster,
        reached: ReachedLimits,
        continuations: Continuations,
        rooms: Iterable[RoomRecord],
        last_at: Mapping[str, float],
    ) -> None:
        """`last_at` is when something was said last in each of those rooms in which something was."""
        self._kernel = kernel
        self._roster = roster
        self._reached = reached
        self._continuations = continuations
        kept = list(rooms)
        self._rooms = {room.id: room for room in kept if room.deleted_at is None}
        self._gone = {room.id: room for room in kept if room.deleted_at is not None}
        self._last_at = dict(last_at)
        self.transcript = Transcript()

    def all_rooms(self) -> list[RoomRecord]:
        return list(self._rooms.values())

    def last_at(self, room: RoomRecord) -> float:
        """When something was said last, or the room was opened."""
        return self._last_at.get(room.id, room.created_at)

    def knows(self, room_id: str) -> bool:
        return room_id in self._rooms

    def find(self, room_id: str) -> RoomRecord:
        """The room as it is now; raises `UnknownRoomError` with the ids that there are."""
        found = self._rooms.get(room_id)
        if found is None:
            shown = ", ".join(sorted(self._rooms)[:_ROOMS_LISTED]) or "none yet"
            more = f" and {len(self._rooms) - _ROOMS_LISTED} more" if len(self._rooms) > _ROOMS_LISTED else ""
            raise UnknownRoomError(f"There is no room '{room_id}'. Rooms: {shown}{more}.")
        return found

    def create(self, decision: Decision, room: RoomRecord) -> RoomRecord:
        """Open a room whose id is free. If there was one before, its numbers go on."""
        gone = self._gone.pop(room.id, None)
        before = 0 if gone is None else gone.last_number
        room = replace(room, created_at=decision.at, last_number=before, erased_until=before)
        self._put(decision, room)
        decision.tell(RoomCreated.of(room))
        return room

    def add_member(self, decision: Decision, room: RoomRecord, agent_id: str) -> RoomRecord:
        """Let an agent into a group. It is shown what was said before when it is asked for the first time."""
        rules.check_group(room)
        if agent_id in room.members:
            raise StateError(f"'{agent_id}' is a member of room '{room.id}' already.")
        rules.check_members((*room.members, agent_id))
        changed = replace(room, members=(*room.members, agent_id))
        self._put(decision, changed)
        decision.tell(RoomMemberAdded(room_id=room.id, agent_id=agent_id))
        return changed

    def remove_member(self, decision: Decision, room: RoomRecord, agent_id: str) -> RoomRecord:
        """Take an agent out of a group. Answers that it is about to give are no longer posted."""
        rules.check_group(room)
        if agent_id not in room.members:
            raise UnknownMemberError(f"'{agent_id}' is not a member of room '{room.id}'. {rules.members_of(room)}")
        if len(room.members) == 1:
            raise StateError(f"'{agent_id}' is the last member of room '{room.id}'. Add another before it goes.")
        changed = replace(room, members=tuple(member for member in room.members if member != agent_id))
        self._put(decision, changed)
        decision.tell(RoomMemberRemoved(room_id=room.id, agent_id=agent_id))
        return changed

    def delete(self, decision: Decision, room: RoomRecord) -> RoomRecord:
        """Let the room be gone with all that was said in it. Answers that are about to be given are not posted."""
        gone = replace(
            room, title="", members=(), seen={}, erased_until=room.last_number, deleted_at=decision.at, hop_limit=0
        )
        del self._rooms[room.id]
        self._gone[room.id] = gone
        decision.unit.put_room(gone)
        told_until = self._kernel.log.position()[0]
        self._kernel.erasing.mark(decision, "", room.id, last=room.last_number, told_until=told_until)
        for member in {*room.members, *room.seen} & self._roster.agents.keys():
            self._kernel.erasing.mark(
                decision,
                member,
                rules.thread_of(room.id),
                last=self._kernel.last_arrival,
                told_until=told_until,
            )
        decision.tell(RoomDeleted(room_id=room.id))
        return gone

    def shown(self, room: RoomRecord, messages: Iterable[MessageRecord]) -> list[MessageRecord]:
        """The messages as they are, without the text of those that are being erased."""
        return [
            replace(each, text="", erased_at=each.erased_at or each.created_at)
            if each.number <= room.erased_until
            else each
            for each in messages
        ]

    async def stored_unseen(self, room: RoomRecord) -> list[MessageRecord]:
        """What some member has not seen, as far as it can be shown and the store has it."""
        while True:
            after = _first_unseen(room)
            found = await self._kernel.reads.messages(room.id, after=after, limit=rules.MAX_MESSAGES_SHOWN)
            room = self.find(room.id)
            if _first_unseen(room) >= after:  # else a member came meanwhile that has seen less
                return [each for each in self.shown(room, found) if each.erased_at is None]

    def asks_others(self, task: TaskRecord, response: ChannelResponse) -> bool:
        """Whether this answer of a task is a message that others may be asked to answer: see `unseen_by_others`."""
        turn = turn_of(task)
        room = None if turn is None else self._rooms.get(turn.room_id)
        if room is None or task.agent_id not in room.members:
            return False
        text = self._continuations.answer_of(replace(task, result=response))
        return not rules.is_pass(room, text) and bool(self._mentioned(room, task, _posted(text)))

    async def unseen_by_others(self, task: TaskRecord) -> list[MessageRecord]:
        """What those have not seen, as far as the store has it, who may be asked by the answer of the task."""
        turn = turn_of(task)
        room = None if turn is None else self._rooms.get(turn.room_id)
        try:
            return [] if room is None else await self.stored_unseen(room)
        except UnknownRoomError:  # it was deleted meanwhile
            return []

    def post(
        self,
        decision: Decision,
        room: RoomRecord,
        text: str,
        *,
        message_id: str,
        stored: list[MessageRecord],
        parts: tuple[Attachment, ...] | None = None,
        deliver: Deliver = Deliver.IN_TURN,
    ) -> MessageRecord:
        """Post a message of the user and ask those whom it is for; `stored` is what `stored_unseen` has just read."""
        rules.check_message_text(text)
        mentions = self._mentions(room, text)
        rules.check_no_strangers(room, mentions, agents=list(filter(self._roster.book.knows, mentions.strangers)))
        named = rules.mentioned(room, mentions, sender=USER)
        absent = [member for member in named or room.members if self._is_stopped(member)]
        rules.check_presence(room, mentions, absent=absent)
        asked = [self._agent(member) for member in named or room.members if member not in absent]
        for agent in asked:
            most = agent.limits.max_prompt_bytes
            self._reached.check_prompt("message", text, agent.agent_id, most=most)
            agent.work.check_room()
        message = self._message(decision, room, sender=USER, text=text, message_id=message_id, mentions=named)
        if parts is not None:
            message = replace(message, parts=parts)
            owner = f"message:{message.id}"
            for record in records_of(parts, session_id=message.session_id, owner=owner, now=decision.at):
                decision.unit.insert_attachment(record)
        message = self._add(decision, room, message, asked=asked, stored=stored, cause=None, deliver=deliver)
        for member in absent:
            self._tell_absent(decision, message, member, "stopped")
        return message

    def task_completed(self, decision: Decision, task: TaskRecord, unseen: Sequence[MessageRecord]) -> None:
        """Let what a member said in a task become a message, in the decision that completes the task.

        `unseen` is what `unseen_by_others` has read, if the answer `asks_others`. Whatever the answer says, nothing is
        refused: it is too late for an error, so what cannot be is announced.
        """
        turn = turn_of(task)
        room = None if turn is None else self._rooms.get(turn.room_id)
        if turn is None or room is None:
            return
        if task.agent_id not in room.members:
            failure = Failure(code="not_a_member", message=f"'{task.agent_id}' left the room before it answered.")
            self._tell_unanswered(decision, task, turn, failure)
        elif rules.is_pass(room, text := self._continuations.answer_of(task)):
            decision.tell(
                RoomPassed(room_id=room.id, number=turn.number, agent_id=task.agent_id, task_id=base_id(task))
            )
        else:
            self._post_answer(decision, room, task, text=text, hops=turn.hops + 1, unseen=unseen)

    def task_ended(self, decision: Decision, task: TaskRecord) -> None:
        """Announce that a task in which a member was to say something ended without an answer, if it did."""
        turn = turn_of(task)
        room = None if turn is None else self._rooms.get(turn.room_id)
        if turn is None or room is None:
            return
        if task.state is TaskState.JOINED:
            decision.tell(
                RoomJoined(room_id=room.id, number=turn.number, agent_id=task.agent_id, task_id=base_id(task))
            )
        elif task.state is not TaskState.COMPLETED:
            failure = task.error or Failure(code="unanswered", message="The task ended without an answer.")
            self._tell_unanswered(decision, task, turn, failure)
            self._unsee(decision, room, task, turn)

    def task_taken_up(self, decision: Decision, task: TaskRecord) -> None:
        """A task that ended without an answer may answer after all."""
        turn = turn_of(task)
        if turn is not None and turn.room_id in self._rooms:
            decision.tell(
                RoomAnswering(room_id=turn.room_id, number=turn.number, agent_id=task.agent_id, task_id=base_id(task))
            )

    def _post_answer(
        self,
        decision: Decision,
        room: RoomRecord,
        task: TaskRecord,
        *,
        text: str,
        hops: int,
        unseen: Sequence[MessageRecord],
    ) -> None:
        text = _posted(text)
        named = self._mentioned(room, task, text)
        absent = {member: reason for member in named if (reason := self._why_absent(room, member))}
        message = self._message(
            decision, room, sender=task.agent_id, text=text, message_id=rules.answer_id(task), mentions=named
        )
        message = replace(message, task_id=base_id(task), hops=hops)
        if hops > room.hop_limit:
            message = self._add(decision, room, message, asked=(), stored=(), cause=task)
            if named:
                decision.tell(
                    RoomHopLimit(
                        room_id=room.id,
                        number=message.number,
                        agent_id=task.agent_id,
                        mentions=list(named),
                        hop_limit=room.hop_limit,
                    )
                )
            return
        asked = [self._agent(member) for member in named if member not in absent]
        message = self._add(decision, room, message, asked=asked, stored=unseen, cause=task)
        for member, reason in absent.items():
            self._tell_absent(decision, message, member, reason)

    def _message(
        self,
        decision: Decision,
        room: RoomRecord,
        *,
        sender: str,
        text: str,
        message_id: str,
        mentions: tuple[str, ...],
    ) -> MessageRecord:
        """The next message of the room."""
        return MessageRecord(
            session_id=room.session_id,
            id=message_id,
            room_id=room.id,
            number=room.last_number + 1,
            sender=sender,
            text=text,
            mentions=mentions,
            cause=decision.cause,
            created_at=decision.at,
        )

    def _add(
        self,
        decision: Decision,
        room: RoomRecord,
        message: MessageRecord,
        *,
        asked: Sequence[Agent],
        stored: Iterable[MessageRecord],
        cause: TaskRecord | None,
        deliver: Deliver = Deliver.IN_TURN,
    ) -> MessageRecord:
        """Put a message into the room and give those who are asked their tasks."""
        shown = [*self._unseen(room, asked, stored), message]
        names = {member: self._agent(member).record.definition.name for member in room.members}
        tasks = [self._task(room, shown, agent, names=names, cause=cause, deliver=deliver) for agent in asked]
        message = replace(message, asked={task.agent_id: task.id for task in tasks})
        self.transcript.add(decision, message)
        seen = {**room.seen, **{agent.agent_id: message.number for agent in asked}}
        self._put(decision, replace(room, last_number=message.number, seen=seen))
        self._last_at[room.id] = decision.at
        decision.tell(RoomMessage.of(message))
        for agent, task in zip(asked, tasks, strict=True):
            decision.tell(
                RoomAnswering(room_id=room.id, number=message.number, agent_id=agent.agent_id, task_id=task.id)
            )
            agent.work.accept_task(decision, task)
        return message

    def _unseen(self, room: RoomRecord, asked: Sequence[Agent], stored: Iterable[MessageRecord]) -> list[MessageRecord]:
        """What some of those who are asked have not seen, as far as it can be shown, with what was looked up."""
        if not asked:
            return []
        seen = min(room.seen.get(agent.agent_id, 0) for agent in asked)
        after = max(seen, room.last_number - rules.MAX_MESSAGES_SHOWN)
        return self.transcript.with_fresh(room, after, stored)

    def _task(
        self,
        room: RoomRecord,
        messages: Sequence[MessageRecord],
        agent: Agent,
        *,
        names: Mapping[str, str],
        cause: TaskRecord | None,
        deliver: Deliver,
    ) -> TaskRecord:
        message, member = messages[-1], agent.agent_id
        seen = room.seen.get(member, 0)
        addressed = room.kind is RoomKind.DIRECT or member in message.mentions
        prompt = rules.prompt_for(
            room,
            member,
            messages,
            seen=seen,
            addressed=addressed,
            names=names,
            max_bytes=agent.limits.max_prompt_bytes,
        )
        return rules.task_for_member(
            prompt,
            message,
            member,
            task_id=self._kernel.ids.new(),
            arrival=self._kernel.next_arrival(),
            seen=seen,
            cause=cause,
            parts=rules.parts_for(messages, seen=seen),
            deliver=deliver,
        )

    def _unsee(self, decision: Decision, room: RoomRecord, task: TaskRecord, turn: RoomTurn) -> None:
        """A task that never began has shown its messages to nobody: the next one shows them."""
        begun = task.started_at is not None or task.continuation
        if not begun and room.seen.get(task.agent_id, 0) > turn.seen:
            self._put(decision, replace(room, seen={**room.seen, task.agent_id: turn.seen}))

    def _put(self, decision: Decision, room: RoomRecord) -> None:
        decision.unit.put_room(room)
        self._rooms[room.id] = room

    def _agent(self, agent_id: str) -> Agent:
        return self._roster.agents[agent_id]

    def _is_stopped(self, agent_id: str) -> bool:
        return self._agent(agent_id).state is AgentState.STOPPED

    def _why_absent(self, room: RoomRecord, agent_id: str) -> str | None:
        """Why a member that an agent mentions is not asked; a few agents that all mention all would never end."""
        if self._is_stopped(agent_id):
            return "stopped"
        turns = sum(item.thread_id == rules.thread_of(room.id) for item in self._agent(agent_id).work.queue)
        if turns >= rules.MAX_WAITING_TURNS:
            return "busy"
        try:
            self._agent(agent_id).work.check_room()
        except QueueFullError as error:
            return error.code
        return None

    def _mentions(self, room: RoomRecord, text: str) -> Mentions:
        names: dict[str, str] = {}
        for member in room.members:
            definition = self._agent(member).record.definition
            names |= dict.fromkeys((member, definition.name, *definition.aliases), member)
        return mentions_in(text, names)

    def _mentioned(self, room: RoomRecord, task: TaskRecord, text: str) -> tuple[str, ...]:
        """Whom a message that is the answer of the task names."""
        return rules.mentioned(room, self._mentions(room, text), sender=task.agent_id)

    def _tell_absent(self, decision: Decision, message: MessageRecord, member: str, reason: str) -> None:
        decision.tell(RoomAbsent(room_id=message.room_id, number=message.number, agent_id=member, reason=reason))

    def _tell_unanswered(self, decision: Decision, task: TaskRecord, turn: RoomTurn, failure: Failure) -> None:
        decision.tell(
            RoomUnanswered(
                room_id=turn.room_id,
                number=turn.number,
                agent_id=task.agent_id,
                task_id=base_id(task),
                error=failure,
            )
        )


def _first_unseen(room: RoomRecord) -> int:
    """The number after which there is something that a member has not seen, as far as it can be shown."""
    return max(min(room.seen.get(member, 0) for member in room.members), room.last_number - rules.MAX_MESSAGES_SHOWN)


def _posted(text: str) -> str:
    """An answer as it is posted."""
    return shortened(text, rules.MAX_MESSAGE_BYTES)


def turn_of(task: TaskRecord) -> RoomTurn | None:
    """What of a room the task answers, if it does."""
    if task.origin is None or task.kind not in (TaskKind.ROOM, TaskKind.CONTINUATION):
        return None
    return task.origin.room

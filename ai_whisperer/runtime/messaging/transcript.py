"""The messages of a session's rooms: those on disk, and those on their way there."""

from __future__ import annotations

from ai_whisperer.domain.rooms import MessageRecord
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel


class Transcript:
    """Reads what was decided, durable or not. Only what is not durable yet is kept in memory."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._fresh: dict[str, MessageRecord] = {}
        self._fresh_of_room: dict[str, dict[int, MessageRecord]] = {}

    def add(self, decision: Decision, message: MessageRecord) -> None:
        """Write a message as part of a decision."""
        decision.unit.insert_message(message)
        self._fresh[message.id] = message
        self._fresh_of_room.setdefault(message.room_id, {})[message.number] = message
        decision.when_durable(lambda: self._forget(message))

    def find(self, message_id: str) -> MessageRecord | None:
        """The message with this id, whatever its room."""
        return self._fresh.get(message_id) or self._kernel.store.message(self._kernel.session_id, message_id)

    def after(self, room_id: str, number: int, *, limit: int) -> list[MessageRecord]:
        """The messages of a room after this number, in order."""
        stored = self._kernel.store.messages(self._kernel.session_id, room_id, after=number, limit=limit)
        known = {message.number: message for message in stored}
        known |= {fresh: each for fresh, each in self._fresh_of_room.get(room_id, {}).items() if fresh > number}
        return [known[number] for number in sorted(known)][:limit]

    def _forget(self, message: MessageRecord) -> None:
        del self._fresh[message.id]
        of_room = self._fresh_of_room[message.room_id]
        del of_room[message.number]
        if not of_room:
            del self._fresh_of_room[message.room_id]

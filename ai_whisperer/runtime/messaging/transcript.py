"""The messages of a session's rooms: those on disk, and those on their way there."""

from __future__ import annotations

from collections.abc import Iterable

from ai_whisperer.domain.rooms import MessageRecord
from ai_whisperer.runtime.session.decision import Decision


class Transcript:
    """Keeps messages in memory until whoever reads the store finds them there."""

    def __init__(self) -> None:
        self._fresh: dict[str, MessageRecord] = {}
        self._fresh_of_room: dict[str, dict[int, MessageRecord]] = {}

    def add(self, decision: Decision, message: MessageRecord) -> None:
        """Write a message as part of a decision."""
        decision.unit.insert_message(message)
        self._fresh[message.id] = message
        self._fresh_of_room.setdefault(message.room_id, {})[message.number] = message
        decision.when_readable(lambda: self._forget(message))

    def fresh(self, message_id: str) -> MessageRecord | None:
        """The message with this id, whatever its room, if it is on its way to the disk."""
        return self._fresh.get(message_id)

    def with_fresh(self, room_id: str, number: int, stored: Iterable[MessageRecord]) -> list[MessageRecord]:
        """The messages of a room after this number, in order: those read, and those on their way to the disk."""
        known = {message.number: message for message in stored}
        known |= {fresh: each for fresh, each in self._fresh_of_room.get(room_id, {}).items() if fresh > number}
        return [known[number] for number in sorted(known)]

    def _forget(self, message: MessageRecord) -> None:
        del self._fresh[message.id]
        of_room = self._fresh_of_room[message.room_id]
        del of_room[message.number]
        if not of_room:
            del self._fresh_of_room[message.room_id]

"""The messages of a session's rooms: those on disk, and those on their way there."""

from __future__ import annotations

from collections.abc import Iterable

from ai_whisperer.domain.rooms import MessageRecord, RoomRecord
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.reads import Overlay


class Transcript:
    """Keeps messages in memory until whoever reads the store finds them there."""

    def __init__(self) -> None:
        self._by_id: Overlay[str, MessageRecord] = Overlay()
        self._by_number: Overlay[tuple[str, int], MessageRecord] = Overlay()

    def add(self, decision: Decision, message: MessageRecord) -> None:
        """Write a message as part of a decision."""
        decision.unit.insert_message(message)
        self._by_id.keep(message.id, message, until=decision.when_readable)
        self._by_number.keep((message.room_id, message.number), message, until=decision.when_readable)

    def fresh(self, message_id: str) -> MessageRecord | None:
        """The message with this id, whatever its room, if it is on its way to the disk."""
        return self._by_id.get(message_id)

    def with_fresh(self, room: RoomRecord, after: int, stored: Iterable[MessageRecord]) -> list[MessageRecord]:
        """The messages of a room after this number, in order: those read, and those on their way to the disk."""
        known = {message.number: message for message in stored}
        numbers = range(after + 1, room.last_number + 1)
        return [each for number in numbers if (each := self._by_number.get((room.id, number)) or known.get(number))]

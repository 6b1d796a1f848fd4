"""Named signals that are broadcast in a session."""

from __future__ import annotations

from typing import Any

from ai_whisperer.coordination import EventRecord
from ai_whisperer.records import Origin
from ai_whisperer.runtime.workspace import Decision, Workspace


class Events:
    """The events of one session."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def broadcast(
        self, decision: Decision, *, name: str, data: Any, sender: str, origin: Origin | None = None
    ) -> EventRecord:
        """Broadcast an event as part of a decision."""
        del origin
        event = EventRecord(
            session_id=self._workspace.session_id,
            id=self._workspace.ids.new(),
            name=name,
            sender=sender,
            cause=decision.cause,
            data=data,
            created_at=decision.at,
        )
        decision.unit.insert_event(event)
        decision.tell("event.broadcast", {"eventId": event.id, "name": name, "sender": sender, "data": data})
        return event

"""Events that are broadcast to agents."""

from __future__ import annotations

from typing import Any

from ai_whisperer.domain.record import Record


class EventRecord(Record, frozen=True, kw_only=True):
    """A named signal that was broadcast. `woken` and `notified` count the agents it woke and gave a task.

    One with `erased_at` no longer has data.
    """

    session_id: str
    id: str
    name: str
    sender: str
    cause: str
    data: Any = None
    woken: int = 0
    notified: int = 0
    created_at: float = 0.0
    erased_at: float | None = None

    @property
    def event_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id

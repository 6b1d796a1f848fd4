"""Sessions, and what can be looked for in one."""

from __future__ import annotations

from enum import StrEnum

from ai_whisperer.domain.record import Record


class SessionRecord(Record, frozen=True, kw_only=True):
    """A session that a server keeps. `owner` is the principal to whom it belongs.

    `needs` are tags: only nodes that have them all take it.
    """

    id: str
    title: str
    owner: str
    created_at: float = 0.0
    needs: tuple[str, ...] = ()

    @property
    def session_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id


class SessionSummary(SessionRecord, frozen=True, kw_only=True):
    """A session as it is listed, with the number of its agents."""

    agents: int = 0


class IdKind(StrEnum):
    """What an id is of. Mail is that in the user's inbox."""

    TASK = "task"
    MAIL = "mail"
    APPROVAL = "approval"
    QUESTION = "question"
    ROOM = "room"
    SCHEDULE = "schedule"

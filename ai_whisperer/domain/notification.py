"""A notification as the log of a session has it. What can be told is in `domain.notifications`."""

from __future__ import annotations

from typing import Any

import msgspec

from ai_whisperer.domain.notifications.base import Told


class Notification(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One entry of a session's numbered log. `seq` is 0 for what is not kept: the deltas of a stream."""

    seq: int
    session_id: str
    name: str
    cause: str
    at: float
    params: dict[str, Any]

    @classmethod
    def unnumbered(cls, told: Told, *, session_id: str, cause: str, at: float) -> Notification:
        """One that is not kept."""
        return cls(seq=0, session_id=session_id, name=told.wire_name, cause=cause, at=at, params=told.params())


class LogEntries(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of a log; `next` is where the ones after them begin."""

    entries: list[dict[str, Any]]
    next: int

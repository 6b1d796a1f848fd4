"""What is due at a time and outlives the process."""

from __future__ import annotations

from enum import StrEnum

from ai_whisperer.domain.record import Record


class TimerKind(StrEnum):
    """`wake`: due by the session's time. `wake_at`: due when the wall clock shows it. `start`: a stop is over."""

    WAKE = "wake"
    TRIAL = "trial"
    WAKE_AT = "wake_at"
    START = "start"


class TimerRecord(Record, frozen=True, kw_only=True):
    """Something that is due at a time."""

    session_id: str
    id: str
    agent_id: str
    kind: TimerKind
    due_at: float

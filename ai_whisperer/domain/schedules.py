"""Schedules: when an agent gets a task or an event is broadcast by itself."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from ai_whisperer.domain.record import Record


class MissedRuns(StrEnum):
    """What becomes of due times that passed while nothing could fire: none fires, the last one does, or all do."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


class ScheduleDefinition(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True
):
    """When something fires, by `cron` or `interval_seconds`, and what: a `prompt` for the agent, or an `event`.

    With `wake` the prompt wakes the agent if it sleeps; without, it waits until the agent is awake. An event wakes
    those that sleep until it.
    """

    cron: str | None = None
    interval_seconds: float | None = None
    zone: str = "UTC"
    prompt: str | None = None
    event: str | None = None
    data: Any = None
    missed: MissedRuns = MissedRuns.ONCE
    wake: bool = False

    @property
    def by_wall_clock(self) -> bool:
        """Whether it names what the wall clock shows; an interval is counted, however that clock is set."""
        return self.cron is not None


class ScheduleRecord(Record, frozen=True, kw_only=True):
    """A schedule and where it stands. `next_at` is the due instant that fires next; `last_at` the one that fired last.

    `agent_id` is the agent that a prompt goes to and that the schedule belongs to; None for an event of the session.
    """

    session_id: str
    id: str
    definition: ScheduleDefinition
    agent_id: str | None = None
    paused: bool = False
    next_at: float | None = None
    last_at: float | None = None
    fired: int = 0
    cause: str = ""
    created_at: float = 0.0

    @property
    def schedule_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id

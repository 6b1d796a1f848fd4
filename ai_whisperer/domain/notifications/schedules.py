"""Notifications about schedules."""

from __future__ import annotations

from typing import Any, Self

from msgspec import UNSET, UnsetType

from ai_whisperer.domain.notifications.base import Told, notification
from ai_whisperer.domain.schedules import MissedRuns, ScheduleRecord


class OfSchedule(Told, frozen=True, kw_only=True):
    who = "The schedule {scheduleId}"

    schedule_id: str
    agent_id: str | None


@notification("schedule.created", "was created: [{cron}|every {intervalSeconds:duration}|once]", watched=False)
class ScheduleCreated(OfSchedule, frozen=True, kw_only=True):
    """A schedule was created."""

    cron: str | None
    interval_seconds: float | None
    zone: str
    prompt: str | None
    event: str | None
    data: Any
    missed: MissedRuns
    wake: bool | UnsetType = UNSET
    next_at: float | None

    @classmethod
    def of(cls, record: ScheduleRecord) -> Self:
        definition = record.definition
        return cls(
            schedule_id=record.id,
            agent_id=record.agent_id,
            cron=definition.cron,
            interval_seconds=definition.interval_seconds,
            zone=definition.zone,
            prompt=definition.prompt,
            event=definition.event,
            data=definition.data,
            missed=definition.missed,
            wake=True if definition.wake else UNSET,
            next_at=record.next_at,
        )


@notification("schedule.changed", "was [paused?paused|resumed][: {reason}]", watched=False)
class ScheduleChanged(OfSchedule, frozen=True, kw_only=True):
    """A schedule was paused or resumed."""

    paused: bool
    next_at: float | None
    reason: str | UnsetType = UNSET

    @classmethod
    def of(cls, record: ScheduleRecord, reason: str = "") -> Self:
        return cls(
            schedule_id=record.id,
            agent_id=record.agent_id,
            paused=record.paused,
            next_at=record.next_at,
            reason=reason or UNSET,
        )


@notification("schedule.deleted", "was deleted", watched=False)
class ScheduleDeleted(OfSchedule, frozen=True, kw_only=True):
    """A schedule was deleted."""


@notification("schedule.fired", "fired[ for {@agentId}][; next at {nextAt:time}|, for the last time]")
class ScheduleFired(OfSchedule, frozen=True, kw_only=True):
    """A schedule fired."""

    due_at: float
    next_at: float | None
    event_id: str | UnsetType = UNSET
    task_id: str | UnsetType = UNSET


@notification("schedule.missed", "missed {count:count} due times[ for {@agentId}][: {reason:words}]", level="warning")
class ScheduleMissed(OfSchedule, frozen=True, kw_only=True):
    """Due times of a schedule do not fire."""

    count: int
    policy: MissedRuns
    reason: str
    next_at: float | None

    @classmethod
    def of(cls, record: ScheduleRecord, *, count: int, reason: str) -> Self:
        return cls(
            schedule_id=record.id,
            agent_id=record.agent_id,
            count=count,
            policy=record.definition.missed,
            reason=reason,
            next_at=record.next_at,
        )

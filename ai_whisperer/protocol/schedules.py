"""The methods `schedule.*`: what happens by the clock."""

from __future__ import annotations

from typing import Any

import msgspec

from ai_whisperer.domain.schedules import MissedRuns, ScheduleRecord
from ai_whisperer.protocol.method import Effect, InSession, Method


class ScheduleList(msgspec.Struct, frozen=True):
    """Schedules, the oldest first."""

    schedules: list[ScheduleRecord]


class CreateSchedule(InSession, frozen=True, kw_only=True):
    """Give the agent a prompt, or broadcast an event, at every time that `cron` or `intervalSeconds` names.

    `cron` has five fields and is read in the time zone `zone`. `missed` says what becomes of due times that passed
    while nothing could fire: `skip`, `once` or `all`. With `wake` a prompt wakes its agent if it sleeps.
    """

    agent_id: str | None = None
    cron: str | None = None
    interval_seconds: float | None = None
    zone: str = "UTC"
    prompt: str | None = None
    event: str | None = None
    data: Any = None
    missed: MissedRuns = MissedRuns.ONCE
    wake: bool = False
    schedule_id: str | None = None


class ListSchedules(InSession, frozen=True, kw_only=True):
    agent_id: str | None = None


# Params of a method that acts on a schedule.
class OfSchedule(InSession, frozen=True, kw_only=True):
    schedule_id: str


class GetSchedule(OfSchedule, frozen=True, kw_only=True):
    """The schedule as it is now."""


class ResumeSchedule(OfSchedule, frozen=True, kw_only=True):
    """Let a paused schedule resume from now: what passed while it was paused does not fire."""


class DeleteSchedule(OfSchedule, frozen=True, kw_only=True):
    """Remove the schedule. Tasks that it has fired already stay."""


CREATE_SCHEDULE = Method("schedule.create", CreateSchedule, ScheduleRecord, "create_schedule", once="schedule_id")
LIST_SCHEDULES = Method("schedule.list", ListSchedules, ScheduleList, "list_schedules", Effect.READS)
GET_SCHEDULE = Method("schedule.get", GetSchedule, ScheduleRecord, "get_schedule", Effect.READS)
PAUSE_SCHEDULE = Method("schedule.pause", OfSchedule, ScheduleRecord, "pause_schedule")
RESUME_SCHEDULE = Method("schedule.resume", ResumeSchedule, ScheduleRecord, "resume_schedule")
DELETE_SCHEDULE = Method("schedule.delete", DeleteSchedule, ScheduleRecord, "delete_schedule")

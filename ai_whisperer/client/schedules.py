"""Schedules from outside."""

from __future__ import annotations

from typing import Any

from ai_whisperer.client.base import ANY_SIZE, AgentRef, ClientBase, agent_name
from ai_whisperer.core.paging import checked_id
from ai_whisperer.core.schedules import ScheduleRef, check_schedule, schedule_from, schedule_id_of
from ai_whisperer.domain.schedules import MissedRuns, ScheduleRecord
from ai_whisperer.protocol import schedules


class ClientSchedules(ClientBase):
    """The schedules of a session."""

    async def create_schedule(
        self,
        agent_id: AgentRef | None = None,
        *,
        cron: str | None = None,
        interval_seconds: float | None = None,
        zone: str = "UTC",
        prompt: str | None = None,
        event: str | None = None,
        data: Any = None,
        missed: MissedRuns | str = MissedRuns.ONCE,
        wake: bool = False,
        schedule_id: str | None = None,
    ) -> ScheduleRecord:
        """Give the agent a prompt, or broadcast an event, at every time that `cron` or `interval_seconds` names.

        `cron` has five fields and is read in the time zone `zone`; intervals are counted from now on. `missed` says
        what becomes of due times that passed while nothing could fire: `skip`, `once` or `all`. With `wake` a prompt
        wakes its agent if it sleeps. The same call again with the same `schedule_id` returns the schedule that is
        there. Raises `ScheduleError` that names the field.
        """
        name = None if agent_id is None else agent_name(agent_id)
        definition = schedule_from(
            cron=cron,
            interval_seconds=interval_seconds,
            zone=zone,
            prompt=prompt,
            event=event,
            data=data,
            missed=missed,
            wake=wake,
        )
        check_schedule(definition, agent_id=name, max_prompt_bytes=ANY_SIZE)
        params = schedules.CreateSchedule(
            session_id=self._session_id,
            agent_id=name,
            cron=definition.cron,
            interval_seconds=definition.interval_seconds,
            zone=definition.zone,
            prompt=definition.prompt,
            event=definition.event,
            data=definition.data,
            missed=definition.missed,
            wake=definition.wake,
            schedule_id=self._new_id() if schedule_id is None else checked_id(schedule_id),
        )
        return await self._ask(schedules.CREATE_SCHEDULE, params)

    async def list_schedules(self, agent_id: AgentRef | None = None) -> list[ScheduleRecord]:
        """The schedules of an agent, or of the whole session, the oldest first."""
        name = None if agent_id is None else agent_name(agent_id)
        params = schedules.ListSchedules(session_id=self._session_id, agent_id=name)
        return (await self._ask(schedules.LIST_SCHEDULES, params)).schedules

    async def get_schedule(self, schedule: ScheduleRef) -> ScheduleRecord:
        """The schedule as it is now; raises `UnknownScheduleError`."""
        params = schedules.GetSchedule(session_id=self._session_id, schedule_id=schedule_id_of(schedule))
        return await self._ask(schedules.GET_SCHEDULE, params)

    async def pause_schedule(self, schedule: ScheduleRef) -> ScheduleRecord:
        """Let the schedule no longer fire until it is resumed."""
        params = schedules.PauseSchedule(session_id=self._session_id, schedule_id=schedule_id_of(schedule))
        return await self._do(schedules.PAUSE_SCHEDULE, params)

    async def resume_schedule(self, schedule: ScheduleRef) -> ScheduleRecord:
        """Let a paused schedule resume from now: what passed while it was paused does not fire and is not missed."""
        params = schedules.ResumeSchedule(session_id=self._session_id, schedule_id=schedule_id_of(schedule))
        return await self._do(schedules.RESUME_SCHEDULE, params)

    async def delete_schedule(self, schedule: ScheduleRef) -> ScheduleRecord:
        """Remove the schedule and return it as it was. Tasks that it has fired already stay."""
        params = schedules.DeleteSchedule(session_id=self._session_id, schedule_id=schedule_id_of(schedule))
        return await self._do(schedules.DELETE_SCHEDULE, params)

"""Answers to `schedule.*`."""

from __future__ import annotations

from ai_whisperer.domain.schedules import ScheduleRecord
from ai_whisperer.protocol import schedules
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.calls import Caller, answers, reads


@answers(schedules.CREATE_SCHEDULE)
async def create_schedule(caller: Caller, params: schedules.CreateSchedule) -> ScheduleRecord:
    session = await caller.session(params.session_id)
    return await session.create_schedule(
        params.agent_id,
        cron=params.cron,
        interval_seconds=params.interval_seconds,
        zone=params.zone,
        prompt=params.prompt,
        event=params.event,
        data=params.data,
        missed=params.missed,
        wake=params.wake,
        schedule_id=params.schedule_id,
    )


@reads(schedules.LIST_SCHEDULES)
def list_schedules(session: AsyncAgentSessionManager, params: schedules.ListSchedules) -> schedules.ScheduleList:
    return schedules.ScheduleList(session.list_schedules(params.agent_id))


@reads(schedules.GET_SCHEDULE)
def get_schedule(session: AsyncAgentSessionManager, params: schedules.GetSchedule) -> ScheduleRecord:
    return session.get_schedule(params.schedule_id)


@answers(schedules.PAUSE_SCHEDULE)
async def pause_schedule(caller: Caller, params: schedules.PauseSchedule) -> ScheduleRecord:
    return await (await caller.session(params.session_id)).pause_schedule(params.schedule_id)


@answers(schedules.RESUME_SCHEDULE)
async def resume_schedule(caller: Caller, params: schedules.ResumeSchedule) -> ScheduleRecord:
    return await (await caller.session(params.session_id)).resume_schedule(params.schedule_id)


@answers(schedules.DELETE_SCHEDULE)
async def delete_schedule(caller: Caller, params: schedules.DeleteSchedule) -> ScheduleRecord:
    return await (await caller.session(params.session_id)).delete_schedule(params.schedule_id)

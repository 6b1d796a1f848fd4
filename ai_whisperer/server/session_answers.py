"""Answers to what concerns sessions as a whole, their log and the server itself."""

from __future__ import annotations

import asyncio
from functools import reduce
from typing import Any

from msgspec.structs import replace

from ai_whisperer.coordination import ScheduleRecord, SessionSummary
from ai_whisperer.core.paging import checked_limit
from ai_whisperer.protocol import openrpc, sessions
from ai_whisperer.records import Usage
from ai_whisperer.server.calls import Caller, answers
from ai_whisperer.server.log_reading import read_log


@answers(sessions.CREATE_SESSION)
async def create_session(caller: Caller, params: sessions.CreateSession) -> SessionSummary:
    return await caller.host.create(caller.principal, params.session_id, title=params.title)


@answers(sessions.LIST_SESSIONS)
async def list_sessions(caller: Caller, params: sessions.ListSessions) -> sessions.SessionList:
    await caller.host.flushed()
    await caller.peer.ready()
    return sessions.SessionList(caller.host.list(caller.principal, limit=checked_limit(params.limit)))


@answers(sessions.GET_SESSION)
async def get_session(caller: Caller, params: sessions.GetSession) -> SessionSummary:
    record = caller.host.get(caller.principal, params.session_id)
    session = await caller.reading(params.session_id)
    return SessionSummary(
        id=record.id,
        title=record.title,
        owner=record.owner,
        created_at=record.created_at,
        agents=len(session.active_sessions),
    )


@answers(sessions.DELETE_SESSION)
async def delete_session(caller: Caller, params: sessions.DeleteSession) -> SessionSummary:
    return await caller.host.delete(caller.principal, params.session_id)


@answers(sessions.CREATE_SCHEDULE)
async def create_schedule(caller: Caller, params: sessions.CreateSchedule) -> ScheduleRecord:
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
        schedule_id=params.schedule_id,
    )


@answers(sessions.LIST_SCHEDULES)
async def list_schedules(caller: Caller, params: sessions.ListSchedules) -> sessions.ScheduleList:
    return sessions.ScheduleList((await caller.reading(params.session_id)).list_schedules(params.agent_id))


@answers(sessions.GET_SCHEDULE)
async def get_schedule(caller: Caller, params: sessions.GetSchedule) -> ScheduleRecord:
    return (await caller.reading(params.session_id)).get_schedule(params.schedule_id)


@answers(sessions.PAUSE_SCHEDULE)
async def pause_schedule(caller: Caller, params: sessions.PauseSchedule) -> ScheduleRecord:
    return await (await caller.session(params.session_id)).pause_schedule(params.schedule_id)


@answers(sessions.RESUME_SCHEDULE)
async def resume_schedule(caller: Caller, params: sessions.ResumeSchedule) -> ScheduleRecord:
    return await (await caller.session(params.session_id)).resume_schedule(params.schedule_id)


@answers(sessions.DELETE_SCHEDULE)
async def delete_schedule(caller: Caller, params: sessions.DeleteSchedule) -> ScheduleRecord:
    return await (await caller.session(params.session_id)).delete_schedule(params.schedule_id)


@answers(sessions.LIST_TEMPLATES)
async def list_templates(caller: Caller, _: sessions.ListTemplates) -> sessions.TemplateList:
    return sessions.TemplateList(await asyncio.to_thread(caller.host.templates.list))


@answers(sessions.GET_TEMPLATE)
async def get_template(caller: Caller, params: sessions.GetTemplate) -> sessions.TemplateDetails:
    found = await asyncio.to_thread(caller.host.templates.get, params.name)
    return sessions.TemplateDetails(name=found.name, source=found.source, definition=found.definition)


@answers(sessions.LIST_LOCKS)
async def list_locks(caller: Caller, params: sessions.ListLocks) -> sessions.LockList:
    return sessions.LockList((await caller.reading(params.session_id)).list_locks())


@answers(sessions.GET_USAGE)
async def get_usage(caller: Caller, params: sessions.GetUsage) -> sessions.UsageReport:
    statuses = (await caller.reading(params.session_id)).list_agents()
    return sessions.UsageReport(
        agents={each.agent_id: sessions.AgentTotals(tasks=each.tasks, usage=each.usage) for each in statuses},
        total=sessions.AgentTotals(
            tasks=sum(each.tasks for each in statuses),
            usage=reduce(lambda total, each: total + each.usage, statuses, Usage()),
        ),
    )


@answers(sessions.READ_LOG)
async def read_agent_log(caller: Caller, params: sessions.ReadLog) -> sessions.LogEntries:
    session = await caller.reading(params.session_id)
    agent_id = session.get_agent_status(params.agent_id).agent_id
    page = await asyncio.to_thread(
        read_log,
        caller.facts.data,
        params.session_id,
        agent_id,
        after=params.after,
        limit=checked_limit(params.limit),
    )
    return sessions.LogEntries(entries=page.entries, next=page.next)


@answers(sessions.SUBSCRIBE)
async def subscribe(caller: Caller, params: sessions.Subscribe) -> sessions.Subscribed:
    session = await caller.session(params.session_id)
    record = caller.host.get(caller.principal, params.session_id)
    return replace(caller.peer.subscribe(session, params), created_at=record.created_at)


@answers(sessions.UNSUBSCRIBE)
async def unsubscribe(caller: Caller, params: sessions.Unsubscribe) -> sessions.Subscribed:
    session = await caller.session(params.session_id)
    record = caller.host.get(caller.principal, params.session_id)
    return replace(caller.peer.unsubscribe(session), created_at=record.created_at)


@answers(sessions.LIST_NOTIFICATIONS)
async def list_notifications(caller: Caller, params: sessions.ListNotifications) -> sessions.NotificationList:
    session = await caller.reading(params.session_id)
    notes = session.notifications(after=params.after, limit=params.limit)
    return sessions.NotificationList(notifications=notes, last_seq=session.last_seq)


@answers(sessions.GET_SERVER_INFO)
async def get_server_info(caller: Caller, _: sessions.GetServerInfo) -> sessions.ServerInfo:
    return sessions.ServerInfo(
        version=caller.facts.version,
        principal=caller.principal,
        model=caller.host.model,
        max_frame_bytes=caller.facts.max_frame_bytes,
        started_at=caller.facts.started_at,
    )


@answers(sessions.DISCOVER)
async def discover(caller: Caller, _: sessions.Discover) -> dict[str, Any]:
    await caller.peer.ready()
    return openrpc.document(caller.facts.version)

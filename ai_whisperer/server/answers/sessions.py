"""Answers to what concerns sessions as a whole, and the server itself."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from ai_whisperer.core.paging import checked_limit
from ai_whisperer.domain.notification import LogEntries
from ai_whisperer.domain.sessions import SessionSummary
from ai_whisperer.domain.snapshot import Snapshot
from ai_whisperer.protocol import openrpc, sessions
from ai_whisperer.runtime.agents.defining import granted_by, ignored_in
from ai_whisperer.server.calls import Caller, answers, tells


@answers(sessions.CREATE_SESSION)
async def create_session(caller: Caller, params: sessions.CreateSession) -> SessionSummary:
    return await caller.host.create(caller.principal, params.session_id, title=params.title, limits=params.limits)


@answers(sessions.LIST_SESSIONS)
async def list_sessions(caller: Caller, params: sessions.ListSessions) -> sessions.SessionList:
    await caller.host.flushed()
    await caller.peer.ready()
    return sessions.SessionList(await caller.host.list(caller.principal, limit=checked_limit(params.limit)))


@answers(sessions.GET_SESSION)
async def get_session(caller: Caller, params: sessions.GetSession) -> SessionSummary:
    record = await caller.host.get(caller.principal, params.session_id)
    session = await caller.reading(params.session_id)
    return SessionSummary(
        id=record.id,
        title=record.title,
        owner=record.owner,
        created_at=record.created_at,
        agents=len(session.active_sessions),
    )


@answers(sessions.GET_SNAPSHOT)
async def get_snapshot(caller: Caller, params: sessions.GetSnapshot) -> Snapshot:
    async with caller.peer.one_by_one:  # each is large, and waits for the disk after it was taken
        return await (await caller.reading(params.session_id)).snapshot()


@answers(sessions.DELETE_SESSION)
async def delete_session(caller: Caller, params: sessions.DeleteSession) -> SessionSummary:
    return await caller.host.delete(caller.principal, params.session_id)


@answers(sessions.LIST_TEMPLATES)
async def list_templates(caller: Caller, _: sessions.ListTemplates) -> sessions.TemplateList:
    return sessions.TemplateList(await asyncio.to_thread(caller.host.templates.list))


@answers(sessions.GET_TEMPLATE)
async def get_template(caller: Caller, params: sessions.GetTemplate) -> sessions.TemplateDetails:
    found = await asyncio.to_thread(caller.host.templates.get, params.name)
    offered, servers = caller.host.toolbox.tools, caller.host.mcp_servers
    return sessions.TemplateDetails(
        name=found.name,
        source=found.source,
        definition=replace(found.definition, tools=granted_by(found, offered, servers)),
        ignored=ignored_in(found, offered, servers),
    )


@answers(sessions.READ_LOG)
async def read_agent_log(caller: Caller, params: sessions.ReadLog) -> LogEntries:
    async with caller.peer.one_by_one:  # each may have to look far back
        session = await caller.reading(params.session_id)
        level = caller.facts.log_level if params.level is None else params.level
        return await session.read_log(params.agent_id, after=params.after, limit=params.limit, level=level)


@tells(sessions.GET_SERVER_INFO)
def get_server_info(caller: Caller, _: sessions.GetServerInfo) -> sessions.ServerInfo:
    return sessions.ServerInfo(
        version=caller.facts.version,
        principal=caller.principal,
        model=caller.host.model,
        sandbox=caller.host.sandbox_name,
        max_frame_bytes=caller.facts.max_frame_bytes,
        started_at=caller.facts.started_at,
    )


@answers(sessions.DISCOVER)
async def discover(caller: Caller, _: sessions.Discover) -> dict[str, Any]:
    await caller.peer.ready()
    return openrpc.document(caller.facts.version)

"""Which function answers which method: here those with something of their own to do, in the order of the protocol.

All other methods are calls of a session, passed on as they come.
"""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import asdict

from ai_whisperer.core.paging import checked_limit
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.domain.cluster import ClusterStatus, PlacedSession
from ai_whisperer.domain.forks import Comparison, ForkReport
from ai_whisperer.domain.limits import LimitScope, LimitsReport
from ai_whisperer.domain.notification import LogEntries
from ai_whisperer.domain.questions import QuestionRecord
from ai_whisperer.domain.rooms import MessageRecord
from ai_whisperer.domain.sessions import SessionSummary
from ai_whisperer.domain.snapshot import Snapshot
from ai_whisperer.domain.tasks import Budget, TaskRecord
from ai_whisperer.errors import ForbiddenError, InvalidInputError
from ai_whisperer.protocol import (
    agents,
    approvals,
    cluster,
    limits,
    openrpc,
    questions,
    rooms,
    sessions,
    subscriptions,
    tasks,
    tools,
)
from ai_whisperer.protocol.catalog import METHODS
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.calls import ANSWERS, Caller, Fact, Read, answers, passed_on
from ai_whisperer.server.forking import compared, forked
from ai_whisperer.server.template_details import details_of
from ai_whisperer.server.work_folder import work_folder
from ai_whisperer.settings import LOCAL
from ai_whisperer.version import __version__

_LONGEST_WAIT_SECONDS = 24 * 3600.0
_MOVE_SECONDS = 5.0
"""So long a session may take to another node beside the grace of its steps."""


def _check_local(caller: Caller, what: str, instead: str = "") -> None:
    if caller.principal != LOCAL:
        raise ForbiddenError(
            f"Only the principal '{LOCAL}' may {what}, and you are '{caller.principal}'; nothing was changed.{instead}"
        )


@answers(agents.CREATE_AGENT)
async def create_agent(caller: Caller, params: agents.CreateAgent) -> AgentStatus:
    session = await caller.session(params.session_id)
    agent = await session.create_agent(
        params.agent_id, params.config, template=params.template, auto_start=params.auto_start
    )
    return session.get_agent_status(agent)


@answers(agents.SEND_TASK)
async def send_task(caller: Caller, params: agents.SendTask) -> TaskRecord:
    session = await caller.session(params.session_id)
    budget = params.budget
    return await session.send_task(
        params.agent_id,
        params.prompt,
        priority=params.priority,
        thread_id=params.thread_id,
        task_id=params.task_id,
        timeout_seconds=params.timeout_seconds,
        budget=None if budget is None else Budget(max_tokens=budget.max_tokens, max_cost_usd=budget.max_cost_usd),
        output=params.output_schema,
        parts=[part.file for part in params.parts],
        deliver=params.deliver,
    )


@answers(agents.GET_AGENT_STATES)
@Read
def get_agent_states(session: AsyncAgentSessionManager, _: agents.GetAgentStates) -> agents.AgentStates:
    return agents.AgentStates(
        agents={status.agent_id: status for status in session.list_agents()}, last_seq=session.last_seq
    )


@answers(agents.GET_AGENT)
@Read
def get_agent(session: AsyncAgentSessionManager, params: agents.GetAgent) -> agents.AgentDetails:
    status = session.get_agent_status(params.agent_id)
    agent = session.active_sessions[status.agent_id]
    record = agent.record
    return agents.AgentDetails(
        agent_id=record.id,
        status=status,
        definition=record.definition,
        own_tools=agent.own_tools,
        created_at=record.created_at,
        started_at=record.started_at,
    )


@answers(tasks.WAIT_TASK)
async def wait_task(caller: Caller, params: tasks.WaitTask) -> TaskRecord:
    session = await caller.reading(params.session_id)
    if not 0 <= params.timeout_seconds <= _LONGEST_WAIT_SECONDS:
        raise InvalidInputError(f"timeoutSeconds must be 0 to {_LONGEST_WAIT_SECONDS:g}.")
    try:
        async with asyncio.timeout(params.timeout_seconds):
            return await session.wait_task(params.task_id)
    except TimeoutError:
        await session.flushed()
        return await session.get_task(params.task_id)


@answers(rooms.POST_MESSAGE)
async def post_message(caller: Caller, params: rooms.PostMessage) -> MessageRecord:
    session = await caller.session(params.session_id)
    parts = [part.file for part in params.parts]
    return await session.post_message(
        params.room_id, params.text, message_id=params.message_id, parts=parts, deliver=params.deliver
    )


@answers(subscriptions.SUBSCRIBE)
async def subscribe(caller: Caller, params: subscriptions.Subscribe) -> subscriptions.Subscribed:
    session = await caller.session(params.session_id)
    record = await caller.host.get(caller.principal, params.session_id)
    return caller.feeds.subscribe(
        session, caller.outbox, after=params.after, deltas=params.deltas, created_at=record.created_at
    )


@answers(subscriptions.UNSUBSCRIBE)
async def unsubscribe(caller: Caller, params: subscriptions.Unsubscribe) -> subscriptions.Subscribed:
    session = await caller.session(params.session_id)
    record = await caller.host.get(caller.principal, params.session_id)
    return caller.feeds.unsubscribe(session, created_at=record.created_at)


@answers(subscriptions.LIST_NOTIFICATIONS)
@Read
async def list_notifications(
    session: AsyncAgentSessionManager, params: subscriptions.ListNotifications
) -> subscriptions.NotificationList:
    notes = await session.notifications(after=params.after, limit=params.limit)
    return subscriptions.NotificationList(notifications=notes, last_seq=session.last_seq)


# Whoever decides or answers is written down: the principal whose session it is.
@answers(approvals.APPROVE)
async def approve(caller: Caller, params: approvals.Approve) -> ApprovalRecord:
    session = await caller.session(params.session_id)
    return await session.approve(params.approval_id, digest=params.digest, reason=params.reason, by=caller.principal)


@answers(approvals.REFUSE)
async def refuse(caller: Caller, params: approvals.Refuse) -> ApprovalRecord:
    session = await caller.session(params.session_id)
    return await session.refuse(params.approval_id, reason=params.reason, by=caller.principal)


@answers(questions.ANSWER_QUESTION)
async def answer_question(caller: Caller, params: questions.AnswerQuestion) -> QuestionRecord:
    session = await caller.session(params.session_id)
    return await session.answer_question(params.question_id, params.answer, by=caller.principal)


@answers(questions.REFUSE_QUESTION)
async def refuse_question(caller: Caller, params: questions.RefuseQuestion) -> QuestionRecord:
    session = await caller.session(params.session_id)
    return await session.refuse_question(params.question_id, reason=params.reason, by=caller.principal)


@answers(tools.LIST_TOOLS)
async def list_tools(caller: Caller, _: tools.ListTools) -> tools.ToolList:
    await caller.outbox.ready()
    return tools.ToolList(caller.host.toolbox.entries())


@answers(limits.SET_LIMITS)
async def set_limits(caller: Caller, params: limits.SetLimits) -> LimitsReport:
    session = await caller.session(params.session_id)
    scope = params.scope or (LimitScope.SESSION if params.agent_id is None else LimitScope.AGENT)
    if scope is LimitScope.TREE or (scope is LimitScope.AGENT) != (params.agent_id is not None):
        raise InvalidInputError(
            "Limits are set for an agent (scope 'agent' with its agentId), for the session or for the server (without "
            "an agentId); nothing was changed."
        )
    if scope is not LimitScope.SERVER:
        return await session.set_limits(params.limits, agent_id=params.agent_id)
    _check_local(caller, "change the limits of the server", " Change those of your session.")
    await caller.host.set_limits(params.limits)
    return session.get_limits()


@answers(sessions.CREATE_SESSION)
async def create_session(caller: Caller, params: sessions.CreateSession) -> SessionSummary:
    return await caller.host.create(
        caller.principal, params.session_id, title=params.title, limits=params.limits, needs=params.needs
    )


@answers(sessions.SET_NEEDS)
async def set_needs(caller: Caller, params: sessions.SetNeeds) -> SessionSummary:
    return await caller.host.set_needs(caller.principal, params.session_id, params.needs)


@answers(sessions.LIST_SESSIONS)
async def list_sessions(caller: Caller, params: sessions.ListSessions) -> sessions.SessionList:
    await caller.host.flushed()
    await caller.outbox.ready()
    return sessions.SessionList(await caller.host.list(caller.principal, limit=checked_limit(params.limit)))


@answers(sessions.GET_SESSION)
async def get_session(caller: Caller, params: sessions.GetSession) -> SessionSummary:
    record = await caller.host.get(caller.principal, params.session_id)
    session = await caller.reading(params.session_id)
    return SessionSummary(**asdict(record), agents=len(session.active_sessions))


@answers(sessions.GET_SNAPSHOT)
async def get_snapshot(caller: Caller, params: sessions.GetSnapshot) -> Snapshot:
    async with caller.one_by_one:  # each is large, and waits for the disk after it was taken
        return await (await caller.reading(params.session_id)).snapshot()


@answers(sessions.IMPORT_SESSION)
async def import_session(caller: Caller, params: sessions.ImportSession) -> sessions.ImportedSession:
    _check_local(caller, "import from a file of the server's machine")
    report = await caller.host.import_session(
        caller.principal, params.file, session_id=params.session_id, data=work_folder(caller.settings)
    )
    await caller.host.take_up(caller.principal, [report.session_id])
    return sessions.ImportedSession(**asdict(report))


@answers(sessions.DELETE_SESSION)
async def delete_session(caller: Caller, params: sessions.DeleteSession) -> SessionSummary:
    return await caller.host.delete(caller.principal, params.session_id)


@answers(sessions.FORK_SESSION)
async def fork_session(caller: Caller, params: sessions.ForkSession) -> ForkReport:
    return await forked(caller, await caller.reading(params.session_id), params)


@answers(sessions.COMPARE_SESSIONS)
async def compare_sessions(caller: Caller, params: sessions.CompareSessions) -> Comparison:
    await caller.reading(params.session_id)
    return await compared(caller, params.session_id, params.other_session_id)


@answers(sessions.LIST_TEMPLATES)
async def list_templates(caller: Caller, _: sessions.ListTemplates) -> sessions.TemplateList:
    return sessions.TemplateList(await asyncio.to_thread(caller.host.templates.list))


@answers(sessions.GET_TEMPLATE)
async def get_template(caller: Caller, params: sessions.GetTemplate) -> sessions.TemplateDetails:
    found = await asyncio.to_thread(caller.host.templates.get, params.name)
    host = caller.host
    return details_of(found, offered=host.toolbox.tools, servers=host.mcp_servers, claude_folder=host.claude_folder)


@answers(sessions.READ_LOG)
async def read_agent_log(caller: Caller, params: sessions.ReadLog) -> LogEntries:
    async with caller.one_by_one:  # each may have to look far back
        session = await caller.reading(params.session_id)
        level = caller.settings.log_level if params.level is None else params.level
        return await session.read_log(params.agent_id, after=params.after, limit=params.limit, level=level)


@answers(sessions.GET_SERVER_INFO)
@Fact
def get_server_info(caller: Caller, _: sessions.GetServerInfo) -> sessions.ServerInfo:
    return sessions.ServerInfo(
        version=__version__,
        principal=caller.principal,
        model=caller.host.model,
        sandbox=caller.host.sandbox_name,
        max_frame_bytes=caller.settings.max_frame_bytes,
        started_at=caller.host.started_at,
    )


@answers(cluster.GET_CLUSTER_STATUS)
async def get_cluster_status(caller: Caller, _: cluster.GetClusterStatus) -> ClusterStatus:
    return await caller.host.membership.status()


@answers(cluster.DRAIN_NODE)
async def drain_node(caller: Caller, params: cluster.DrainNode) -> ClusterStatus:
    _check_local(caller, "drain nodes")
    return await caller.host.membership.drain(params.node, force=params.force)


@answers(cluster.MOVE_SESSION)
async def move_session(caller: Caller, params: cluster.MoveSession) -> PlacedSession:
    if caller.principal != LOCAL:
        await caller.host.get(caller.principal, params.session_id)  # that of somebody else does not exist
    _check_local(caller, "move sessions")
    await caller.host.check_there(params.session_id)
    patience = caller.settings.shutdown_grace_seconds + _MOVE_SECONDS
    return await caller.host.membership.move(params.session_id, params.node, patience_seconds=patience)


@answers(sessions.DISCOVER)
async def discover(caller: Caller, _: sessions.Discover) -> dict[str, Any]:
    await caller.outbox.ready()
    return openrpc.document(__version__)


for _method in METHODS.values():
    if _method.name not in ANSWERS:
        ANSWERS[_method.name] = passed_on(_method)

"""Answers to `async.*` and `agent.*`."""

from __future__ import annotations

from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.tasks import Budget, TaskRecord
from ai_whisperer.protocol import agents
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.calls import Caller, answers, reads


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
    )


@reads(agents.GET_AGENT_STATES)
def get_agent_states(session: AsyncAgentSessionManager, _: agents.GetAgentStates) -> agents.AgentStates:
    return agents.AgentStates(
        agents={status.agent_id: status for status in session.list_agents()}, last_seq=session.last_seq
    )


@reads(agents.GET_AGENT)
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

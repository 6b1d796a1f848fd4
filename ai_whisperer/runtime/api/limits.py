"""The limits of a session and of its agents: what holds, what is used of it, and how it is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ai_whisperer.core.limits import AGENT_LIMITS, SESSION_LIMITS, Stated, limits_from, source_of
from ai_whisperer.domain.limits import Limits, LimitScope, LimitsReport, LimitState, SessionLimits
from ai_whisperer.runtime.agents.agent import LiveAgent
from ai_whisperer.runtime.api.base import AgentRef
from ai_whisperer.runtime.api.reading import SessionReader
from ai_whisperer.runtime.life.open_session import OpenSession


class SessionLimiting(SessionReader):
    """The part of the session manager that has limits."""

    def get_limits(self, agent_id: AgentRef | None = None) -> LimitsReport:
        session = self._session
        if agent_id is not None:
            found = self._find_agent(agent_id)
            return LimitsReport(
                scope=LimitScope.AGENT,
                agent_id=found.agent_id,
                limits=_states(session, found.record.definition.limits, found.limits, _used_by(found), found),
            )
        whole = _states(session, None, session.stated.whole, _used_by_session(session), None)
        defaults = _states(session, None, session.stated.for_agent(Limits()), {}, None)
        return LimitsReport(scope=LimitScope.SESSION, limits=(*whole, *defaults))

    @property
    def limits_reached(self) -> Counter[str]:
        """How often each limit was reached since the session was opened."""
        return self._session.reached.totals()

    async def set_limits(self, limits: Stated, *, agent_id: AgentRef | None = None) -> LimitsReport:
        changes = self._session.limit_changes
        if agent_id is None:
            await self._committed(lambda decision: changes.change_session(decision, limits))
        else:
            agent = self._find_agent(agent_id)
            await self._committed(lambda decision: changes.change_agent(decision, agent, limits))
        return self.get_limits(agent_id)

    async def take_server_limits(self, limits: Stated) -> None:
        """Take over what the server states for all its sessions. The server keeps it; here it is not kept."""
        stated = limits_from(limits, SessionLimits)
        await self._committed(lambda decision: self._session.limit_changes.take_server(decision, stated))


def _states(
    session: OpenSession, stated: Limits | None, holding: object, used: Mapping[str, float], agent: LiveAgent | None
) -> tuple[LimitState, ...]:
    names = [name for name in (*SESSION_LIMITS, *AGENT_LIMITS) if hasattr(holding, name)]
    layers = session.stated.layers(stated)
    return tuple(
        LimitState(
            name=name,
            value=getattr(holding, name),
            source=source_of(name, layers),
            used=used.get(name),
            reached=session.reached.count(name, None if agent is None else agent.agent_id),
        )
        for name in names
    )


def _used_by_session(session: OpenSession) -> dict[str, float]:
    usage = session.spending.session_usage
    return {
        "max_started_agents": session.started.count,
        "max_created_agents": len(session.roster.agents),
        "max_concurrent_loops": session.slots.used,
        "max_requests_per_account": max((each.under_way for each in session.gates.accounts()), default=0),
        "max_tokens": usage.input_tokens + usage.output_tokens,
        "max_cost_usd": usage.cost_usd or 0.0,
    }


def _used_by(agent: LiveAgent) -> dict[str, float]:
    now = agent.parts.kernel.clock.now()
    usage = agent.work.used.usage
    used: dict[str, Any] = {
        "max_concurrent_tasks": len(agent.work.loops),
        "max_queue_length": len(agent.work.queue),
        "max_steps_per_task": max((len(loop.running.journal.steps) for loop in agent.work.loops.values()), default=0),
        "max_task_seconds": max(
            (now - (loop.task.started_at or now) for loop in agent.work.loops.values()), default=0.0
        ),
        "max_continuations": max((loop.task.continuation for loop in agent.work.loops.values()), default=0),
        "max_tokens_per_agent": usage.input_tokens + usage.output_tokens,
        "max_cost_usd_per_agent": usage.cost_usd or 0.0,
        "max_context_bytes": agent.work.context_bytes,
    }
    return used

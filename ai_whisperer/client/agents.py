"""Agents from outside: creating them, their lifecycle, what they are doing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ai_whisperer.client.base import AgentRef, ClientBase, agent_name
from ai_whisperer.core.addresses import check_agent_id
from ai_whisperer.core.definitions import Config, definition_from
from ai_whisperer.core.sleeping import Time, seconds_of, sleep_plan
from ai_whisperer.core.text import check_reason
from ai_whisperer.domain.agents import AgentState, AgentStatus
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.protocol import agents
from ai_whisperer.protocol.agents import AgentDetails, AgentStates


class ClientAgents(ClientBase):
    """The agents of a session."""

    async def create_agent(
        self, agent_id: str, config: Config = None, *, template: str | None = None, auto_start: bool = True
    ) -> AgentStatus:
        """Create an agent and, unless told otherwise, start it.

        `config` overrides the fields of `template`; without a template it is the whole definition. With neither, the
        template that is called like the agent is used, if there is one.
        """
        check_agent_id(agent_id)
        _check_template(template)
        params = agents.CreateAgent(
            session_id=self._session_id,
            agent_id=agent_id,
            config=_written(config),
            template=template,
            auto_start=auto_start,
        )
        return await self._do(agents.CREATE_AGENT, params)

    async def start_agent(
        self, agent_id: AgentRef, config: Config = None, *, template: str | None = None
    ) -> AgentStatus:
        """Start an agent; one that does not exist yet is created as `create_agent` does.

        A given config or template, or both as for `create_agent`, replaces the definition of an agent that is not
        started.
        """
        _check_template(template)
        params = agents.StartAgent(
            session_id=self._session_id, agent_id=agent_name(agent_id), config=_written(config), template=template
        )
        return await self._do(agents.START_AGENT, params)

    async def pause_agent(self, agent_id: AgentRef, *, reason: str = "") -> AgentStatus:
        """Let no new step begin. The step under way runs to its end, mail keeps arriving."""
        check_reason(reason)
        params = agents.PauseAgent(session_id=self._session_id, agent_id=agent_name(agent_id), reason=reason)
        return await self._do(agents.PAUSE_AGENT, params)

    async def interrupt_agent(self, agent_id: AgentRef, *, reason: str = "") -> AgentStatus:
        """Pause at once, also one that is being paused: the request in flight is cancelled, and repeated later."""
        check_reason(reason)
        params = agents.InterruptAgent(session_id=self._session_id, agent_id=agent_name(agent_id), reason=reason)
        return await self._do(agents.INTERRUPT_AGENT, params)

    async def resume_agent(self, agent_id: AgentRef) -> AgentStatus:
        """Resume where the agent was paused."""
        params = agents.ResumeAgent(session_id=self._session_id, agent_id=agent_name(agent_id))
        return await self._do(agents.RESUME_AGENT, params)

    async def stop_agent(self, agent_id: AgentRef, *, reason: str = "") -> AgentStatus:
        """Cancel what runs and free everything. When this returns, tools have ended; mail and queue are kept."""
        check_reason(reason)
        params = agents.StopAgent(session_id=self._session_id, agent_id=agent_name(agent_id), reason=reason)
        return await self._do(agents.STOP_AGENT, params)

    async def sleep_agent(
        self,
        agent_id: AgentRef,
        *,
        duration_seconds: float | None = None,
        until: Time | None = None,
        wake_events: Sequence[str] = (),
        reason: str = "",
    ) -> AgentStatus:
        """Let the agent sleep for a time, until a time or until an event, whichever comes first.

        `until` is in seconds since the epoch, a datetime with its zone, or ISO 8601 text with its zone.
        """
        until = None if until is None else seconds_of(until)
        now = until if until is not None else 0.0  # whether it is to come, the server's clock says
        sleep_plan(now, wall=now, duration_seconds=duration_seconds, until=until, wake_events=wake_events)
        check_reason(reason)
        params = agents.SleepAgent(
            session_id=self._session_id,
            agent_id=agent_name(agent_id),
            duration_seconds=duration_seconds,
            until=until,
            wake_events=tuple(wake_events),
            reason=reason,
        )
        return await self._do(agents.SLEEP_AGENT, params)

    async def wake_agent(self, agent_id: AgentRef, *, reason: str = "woken by the user") -> AgentStatus:
        """End the agent's sleep; it is told the reason."""
        check_reason(reason)
        params = agents.WakeAgent(session_id=self._session_id, agent_id=agent_name(agent_id), reason=reason)
        return await self._do(agents.WAKE_AGENT, params)

    async def get_agent(self, agent_id: AgentRef) -> AgentDetails:
        """What one agent is doing, and its definition."""
        params = agents.GetAgent(session_id=self._session_id, agent_id=agent_name(agent_id))
        return await self._ask(agents.GET_AGENT, params)

    async def get_agent_status(self, agent_id: AgentRef) -> AgentStatus:
        """What one agent is doing."""
        return (await self.get_agent(agent_id)).status

    async def get_agent_states(self) -> AgentStates:
        """What all agents are doing, by id, as they are after the notification `last_seq`."""
        return await self._ask(agents.GET_AGENT_STATES, agents.GetAgentStates(session_id=self._session_id))

    async def agent_threads(self) -> dict[str, Sequence[str]]:
        """The agents that are started by id, each with the ids of the tasks that it runs now, in loops of their own."""
        return {status.agent_id: status.running_tasks for status in await self.list_agents() if status.started}

    async def list_agents(self) -> list[AgentStatus]:
        """What all agents are doing."""
        return list((await self.get_agent_states()).agents.values())


def is_busy(status: AgentStatus) -> bool:
    """Whether the agent works, or is about to without anybody's help.

    One that sleeps and is asked by an agent that waits for it is about to work too, but then that one is busy.
    """
    if status.missing_tools:
        return False
    if status.state is AgentState.ACTIVE:
        return True
    return status.state is AgentState.IDLE and status.started and status.queue_size > 0


def _check_template(template: str | None) -> None:
    if template is not None and not isinstance(template, str):
        raise InvalidInputError(f"Give a template's name, not {type(template).__name__}.")


def _written(config: Config) -> dict[str, Any] | None:
    """The definition as it is sent; raises `DefinitionError` that names the field."""
    if config is None:
        return None
    definition = definition_from(config)
    stated = definition if isinstance(config, AgentDefinition) else dict(config)
    plain: dict[str, Any] = msgspec.to_builtins(stated)
    return plain

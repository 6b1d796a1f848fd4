"""An agent as programs hold it."""

from __future__ import annotations

from ai_whisperer.domain.agents import AgentRecord, AgentState
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.runtime.agents.agent import LiveAgent


class AgentSession:
    """A view of one agent. What is done to it is done through the manager, which takes this as well as the id."""

    __slots__ = ("_agent",)

    def __init__(self, agent: LiveAgent) -> None:
        self._agent = agent

    def __repr__(self) -> str:
        return f"<AgentSession {self.agent_id!r} {self.state}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AgentSession) and self._agent is other._agent

    def __hash__(self) -> int:
        return hash(self._agent)

    @property
    def agent_id(self) -> str:
        return self._agent.agent_id

    @property
    def state(self) -> AgentState:
        return self._agent.state

    @property
    def record(self) -> AgentRecord:
        """The agent as the store has it, with its definition."""
        return self._agent.record

    @property
    def limits(self) -> EffectiveLimits:
        """The limits that hold for the agent."""
        return self._agent.limits

    @property
    def own_tools(self) -> tuple[str, ...]:
        """The names of the functions that were provided for it alone."""
        return tuple(tool.name for tool in self._agent.toolkit.own_tools)

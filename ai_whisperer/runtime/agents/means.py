"""Who a live agent is, and what it may use: limits, tools, a model, a part of the machine."""

from __future__ import annotations

from collections.abc import Iterable

from ai_whisperer.domain.agents import AgentRecord, AgentState
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.models.base import Model
from ai_whisperer.runtime.agents.toolkit import Equipment
from ai_whisperer.runtime.session.workspace import Workspace
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.registry import ToolRegistry
from ai_whisperer.tools.workplace import Workplace


class AgentMeans:
    """An agent as its record describes it. What follows from that is made when it is first needed."""

    __slots__ = ("_limits", "_workplace", "equipment", "record", "workspace")

    def __init__(self, workspace: Workspace, record: AgentRecord, own_tools: Iterable[Tool]) -> None:
        self.workspace = workspace
        self.record = record
        self.equipment = Equipment(workspace, own_tools)
        self._limits: EffectiveLimits | None = None
        self._workplace: Workplace | None = None

    @property
    def agent_id(self) -> str:
        return self.record.id

    @property
    def state(self) -> AgentState:
        return self.record.state

    @property
    def limits(self) -> EffectiveLimits:
        """The limits that hold for the agent."""
        if self._limits is None:
            self._limits = self.workspace.limits.for_agent(self.record.definition.limits)
        return self._limits

    def forget_limits(self) -> None:
        """They have changed, or what they follow from has."""
        self._limits = None
        self._workplace = None

    @property
    def workplace(self) -> Workplace:
        """What of the machine the agent's tools may use."""
        if self._workplace is None:
            self._workplace = self.workspace.workplaces.of(self.agent_id, self.record.definition, self.limits)
        return self._workplace

    @property
    def registry(self) -> ToolRegistry:
        return self.equipment.registry(self.record)

    @property
    def model(self) -> Model:
        return self.equipment.model(self.record)

"""What agents are supplied with: models, tools, and a part of the machine."""

from __future__ import annotations

from collections.abc import Iterable

from ai_whisperer.models.base import ModelFactory
from ai_whisperer.runtime.agents.folders import Folders
from ai_whisperer.runtime.agents.stall import StallWatch
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.mcp.servers import McpServers
from ai_whisperer.tools.registry import ToolRegistry


class Supplies:
    """What the agents of one session share to work with."""

    def __init__(
        self,
        *,
        model_factory: ModelFactory,
        default_model: str,
        tools: Iterable[Tool],
        mcp: McpServers,
        folders: Folders,
        stalls: StallWatch,
    ) -> None:
        self.model_factory = model_factory
        self.default_model = default_model
        self.tools = tuple(tools)
        self.mcp = mcp
        self.folders = folders
        self.stalls = stalls
        self._registries: dict[tuple[str, ...] | None, ToolRegistry] = {}
        self._names: tuple[str, ...] = ()

    def shared_names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The same names as one object for all agents that are made after each other with the same."""
        if names != self._names:
            self._names = names
        return self._names

    def registry(self, granted: tuple[str, ...] | None, own: Iterable[Tool]) -> ToolRegistry:
        """The tools of an agent. Agents with the same grants and none of their own share one."""
        own = tuple(own)
        if own:
            return ToolRegistry((*self.tools, *own), granted=granted, mcp=self.mcp.granted(granted))
        if granted not in self._registries:
            self._registries[granted] = ToolRegistry(self.tools, granted=granted, mcp=self.mcp.granted(granted))
        return self._registries[granted]

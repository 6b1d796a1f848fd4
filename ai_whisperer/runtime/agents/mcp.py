"""What agents are granted of the session's MCP servers, and what is told of these."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.notifications.mcp import McpServerTold, McpToolsMissing
from ai_whisperer.errors import DefinitionError
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.runtime.agents.supplies import Supplies
from ai_whisperer.runtime.agents.task import RunningTask
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.tools.mcp.names import server_of
from ai_whisperer.tools.mcp.server import Tell


def check_mcp_grants(supplies: Supplies, agent_id: str, definition: AgentDefinition) -> None:
    """Raise `DefinitionError` if the definition grants tools of a server that the session does not have."""
    names = supplies.mcp.names
    offered = {tool.name for tool in supplies.tools}
    granted = (grant for grant in definition.tools or () if grant not in offered)
    missing = dict.fromkeys(server for grant in granted if (server := server_of(grant)) not in (None, *names))
    if missing:
        known = ", ".join(names) or "none"
        raise DefinitionError(
            f"'{agent_id}' is granted tools of MCP servers that the session does not have: "
            f"{', '.join(map(str, missing))}. It has: {known}. Name another, or add it to the setting mcp."
        )


def teller_of(kernel: Kernel) -> Tell:
    """Announces what happens to servers."""

    def tell(told: McpServerTold) -> None:
        if kernel.log.failure is None:
            decision = kernel.decide(f"mcp:{told.name}")
            decision.tell(told)
            decision.submit()

    return tell


class WaitingLoop(Protocol):
    """The loop that needs the tools."""

    is_waiting: bool

    @property
    def running(self) -> RunningTask: ...
    def without_place(self) -> AbstractAsyncContextManager[None]: ...


async def prepare_mcp(agent: Owner, loop: WaitingLoop) -> None:
    """Have the servers of the agent list their tools, and announce what is granted and not there.

    While a server that is required is waited for, others work in the place of the loop.
    """
    grants = agent.registry.mcp
    if grants is None:
        return
    if grants.lack_required:
        loop.running.settled()
        loop.is_waiting = True
        try:
            async with loop.without_place():
                await grants.prepare()
        finally:
            loop.is_waiting = False
    else:
        await grants.prepare()
    missing = agent.parts.supplies.mcp.untold(agent.agent_id, grants.unknown())
    if missing:
        decision = agent.parts.kernel.decide(f"agent:{agent.agent_id}")
        decision.tell(McpToolsMissing(agent_id=agent.agent_id, tools=missing))
        decision.submit()

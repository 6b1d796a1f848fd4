"""What agents are granted of the session's MCP servers, and what is told of these."""

from __future__ import annotations

from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.notifications.mcp import McpServerTold, McpToolsMissing
from ai_whisperer.errors import DefinitionError
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.runtime.agents.supplies import Supplies
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


async def prepare_mcp(agent: Owner) -> None:
    """Have the servers of the agent list their tools, and announce what is granted and not there."""
    grants = agent.registry.mcp
    if grants is None:
        return
    await grants.prepare()
    missing = agent.parts.supplies.mcp.untold(agent.agent_id, grants.unknown())
    if missing:
        decision = agent.parts.kernel.decide(f"agent:{agent.agent_id}")
        decision.tell(McpToolsMissing(agent_id=agent.agent_id, tools=missing))
        decision.submit()

"""The tools that work inside the session: those that every agent has, and those that have to be granted by name."""

from __future__ import annotations

from collections.abc import Mapping

from ai_whisperer.tools.desk import CoordinationTool
from ai_whisperer.tools.mail_tools import MAIL_TOOLS
from ai_whisperer.tools.team_tools import CREATE_AGENT_TOOL, TEAM_TOOLS

COORDINATION_TOOLS: Mapping[str, CoordinationTool] = {each.name: each for each in (*MAIL_TOOLS, *TEAM_TOOLS)}

CREATE_AGENT = CREATE_AGENT_TOOL.name

NAMED_TOOLS: Mapping[str, CoordinationTool] = {CREATE_AGENT: CREATE_AGENT_TOOL}
"""Those that an agent has only if its definition names them."""

"""The tools that every agent can be granted beside those of its own."""

from __future__ import annotations

from collections.abc import Mapping

from ai_whisperer.tools.desk import CoordinationTool
from ai_whisperer.tools.mail_tools import MAIL_TOOLS
from ai_whisperer.tools.team_tools import TEAM_TOOLS

COORDINATION_TOOLS: Mapping[str, CoordinationTool] = {each.name: each for each in (*MAIL_TOOLS, *TEAM_TOOLS)}

"""The built-in tools that reach the machine or the network: an agent has those that its definition names."""

from __future__ import annotations

from ai_whisperer.tools.commands import COMMAND_TOOLS
from ai_whisperer.tools.fetching.fetch_tool import fetch_url
from ai_whisperer.tools.files import FILE_TOOLS
from ai_whisperer.tools.function import Tool

MACHINE_TOOLS: dict[str, Tool] = {each.name: each for each in (*FILE_TOOLS, *COMMAND_TOOLS, fetch_url)}

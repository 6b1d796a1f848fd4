"""The built-in tools that reach the machine or the network: an agent has those that its definition names."""

from __future__ import annotations

from ai_whisperer.tools.commands import COMMAND_TOOLS
from ai_whisperer.tools.fetching.fetch_tool import fetch_url
from ai_whisperer.tools.files.changing import edit_file, write_file
from ai_whisperer.tools.files.listing import list_directory
from ai_whisperer.tools.files.reading import read_file
from ai_whisperer.tools.files.remembering import memory
from ai_whisperer.tools.files.searching import search_files
from ai_whisperer.tools.function import Tool

FILE_TOOLS = (read_file, write_file, edit_file, list_directory, search_files, memory)
MACHINE_TOOLS: dict[str, Tool] = {each.name: each for each in (*FILE_TOOLS, *COMMAND_TOOLS, fetch_url)}

"""Answers to `tool.*`."""

from __future__ import annotations

from ai_whisperer.protocol import tools
from ai_whisperer.server.calls import Caller, answers


@answers(tools.LIST_TOOLS)
async def list_tools(caller: Caller, _: tools.ListTools) -> tools.ToolList:
    await caller.peer.ready()
    return tools.ToolList(caller.host.toolbox.entries())

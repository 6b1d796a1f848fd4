"""The method `tool.list`: what agents of the server can be granted."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.tools import ToolEntry
from ai_whisperer.protocol.method import Effect, Method, Params


class ToolList(msgspec.Struct, frozen=True):
    """The tools that there are, and the tool files that cannot be used."""

    tools: list[ToolEntry]


class ListTools(Params, frozen=True, kw_only=True):
    """The tools that agents can be granted, and the tool files that cannot be used, each with its error."""


LIST_TOOLS = Method("tool.list", ListTools, ToolList, effect=Effect.READS)

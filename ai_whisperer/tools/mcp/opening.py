"""Opens connections to MCP servers. The library is loaded here, when the first one is needed."""

from __future__ import annotations

import asyncio
import importlib
import logging
from typing import TYPE_CHECKING

from ai_whisperer.errors import McpError
from ai_whisperer.mcp_config import McpServerConfig

if TYPE_CHECKING:
    from ai_whisperer.tools.mcp.connection import Connection, Listener


async def open_connection(name: str, config: McpServerConfig, listener: Listener) -> Connection:
    """Begin a connection; raises `McpError` if the library is not installed."""
    try:
        await asyncio.to_thread(_load)
    except ImportError as error:
        raise McpError(
            f"The MCP server '{name}' cannot be used: the package mcp is missing ({error}). Install it: "
            "pip install 'ai-whisperer[mcp]'"
        ) from error
    from ai_whisperer.tools.mcp.connection import Connection

    return Connection(name, config, listener)


def _load() -> None:
    importlib.import_module("ai_whisperer.tools.mcp.connection")
    # It logs what servers say, with tracebacks: what matters of that is announced, the rest would flood the log.
    for logger in ("mcp", "client"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)

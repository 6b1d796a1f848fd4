"""How a server introduces itself to the others that share its database."""

from __future__ import annotations

import hashlib
import socket

import msgspec

from ai_whisperer.domain.nodes import NodeCard
from ai_whisperer.sandbox.levels import strength_of
from ai_whisperer.server.gate import own_url
from ai_whisperer.server.work_folder import mark_of
from ai_whisperer.settings import Settings
from ai_whisperer.tools.toolbox import ToolBox
from ai_whisperer.version import __version__

_IN_COMMON = ("model", "create_missing", "claude_folder", "limits", "session", "prune_older_than", "token", "tokens")
"""A session that moves to another node should find these as they were. Of folders and servers the names count."""


def card_of(settings: Settings, *, port: int, tools: ToolBox, sandbox: str) -> NodeCard:
    """The card of a server with these settings that listens on the port; `sandbox` is what holds programs there."""
    return NodeCard(
        name=settings.node or f"{socket.gethostname()}:{port}",
        address=(settings.advertise or own_url(settings, port)).rstrip("/"),
        version=__version__,
        settings=_digest(settings, tools, sandbox),
        sandbox=sandbox,
        strength=strength_of(sandbox),
        serves=True,
        tags=tuple(sorted(set(settings.tags))),
    )


def _digest(settings: Settings, tools: ToolBox, sandbox: str) -> str:
    """Differs where what is to be in common does; tells nothing of it."""
    common: dict[str, object] = {name: getattr(settings, name) for name in _IN_COMMON}
    common |= {"folders": sorted(settings.folders), "mcp": sorted(settings.mcp)}
    common |= {"work": mark_of(settings), "sandbox": sandbox}
    common["tools"] = sorted(each.name for each in tools.tools)
    return hashlib.sha256(msgspec.json.encode(common, order="deterministic", enc_hook=str)).hexdigest()[:16]

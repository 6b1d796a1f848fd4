"""All methods, by name. Add one in the module of its concept; here only the modules are named."""

from __future__ import annotations

import difflib
from typing import Any

from ai_whisperer.protocol import (
    agents,
    approvals,
    attachments,
    cluster,
    context,
    limits,
    locks,
    mail,
    mcp,
    memory,
    providers,
    questions,
    resources,
    retention,
    rooms,
    schedules,
    sessions,
    subscriptions,
    tasks,
    tools,
)
from ai_whisperer.protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from ai_whisperer.protocol.method import Method

_PARTS = (
    agents,
    tasks,
    context,
    mail,
    rooms,
    schedules,
    locks,
    resources,
    subscriptions,
    mcp,
    memory,
    attachments,
    providers,
    approvals,
    questions,
    tools,
    limits,
    retention,
    sessions,
    cluster,
)

METHODS: dict[str, Method[Any, Any]] = {
    each.name: each for part in _PARTS for each in vars(part).values() if isinstance(each, Method)
}
"""As they stand in the modules, one after the other."""


def method_named(name: str) -> Method[Any, Any]:
    """The method; raises `RpcError` that names what is near."""
    method = METHODS.get(name)
    if method is None:
        near = difflib.get_close_matches(name, METHODS, n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise RpcError(
            METHOD_NOT_FOUND,
            f"There is no method {name[:100]!r}.{hint} rpc.discover lists all {len(METHODS)} methods.",
            {"near": near},
        )
    return method

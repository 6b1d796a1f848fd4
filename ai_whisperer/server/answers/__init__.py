"""Which function answers which method: one module for each of those of the protocol. Importing them registers them."""

from ai_whisperer.server.answers import (
    agents,
    approvals,
    limits,
    locks,
    mail,
    mcp,
    resources,
    rooms,
    schedules,
    sessions,
    subscriptions,
    tasks,
    tools,
)

__all__ = [
    "agents",
    "approvals",
    "limits",
    "locks",
    "mail",
    "mcp",
    "resources",
    "rooms",
    "schedules",
    "sessions",
    "subscriptions",
    "tasks",
    "tools",
]

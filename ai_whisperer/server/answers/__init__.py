"""Which function answers which method. The modules have those with something of their own to do, one module for each of
the protocol; importing them registers them. All other methods are calls of a session, passed on as they come.
"""

from ai_whisperer.protocol.catalog import METHODS
from ai_whisperer.server.answers import agents, approvals, limits, sessions, subscriptions, tasks, tools
from ai_whisperer.server.calls import ANSWERS, passed_on

__all__ = ["agents", "approvals", "limits", "sessions", "subscriptions", "tasks", "tools"]

for _method in METHODS.values():
    if _method.name not in ANSWERS:
        ANSWERS[_method.name] = passed_on(_method)

"""The client: what `AsyncAgentSessionManager` offers in a process, over a connection to a server.

Requests and notifications never stand in each other's way: each has connections of its own. What becomes of requests
that are under way when a connection breaks is said at `Client`.
"""

from ai_whisperer.client.client import Client
from ai_whisperer.client.events import EventStream

__all__ = ["Client", "EventStream"]

"""The client: what `AsyncAgentSessionManager` offers in a process, over a connection to a server.

Requests and notifications never stand in each other's way: each has connections of its own. After an outage a client
connects again by itself. A request whose answer was lost is repeated if that cannot do harm: one that only reads, and
one that carries the id of what it makes (`send_task`, `send_mail`, `broadcast_event`, `create_room`, `post_message`,
`create_schedule`), which the server takes once under that id. The client gives these an id if the caller did not. All
others, such as `pause_agent` or `reply_mail`, raise `ConnectionLostError`, which says that the outcome is not known.
"""

from ai_whisperer.client.client import Client
from ai_whisperer.client.events import EventStream

__all__ = ["Client", "EventStream"]

"""How a notification looks on the wire."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.notification import Notification
from ai_whisperer.protocol.jsonrpc import notification_frame


def frame_of(note: Notification) -> bytes:
    """The notification as clients get it: its params, and with them what every notification has."""
    head = {"sessionId": note.session_id, "seq": note.seq, "cause": note.cause, "at": note.at}
    return notification_frame(note.name, msgspec.json.encode({**note.params, **head}))

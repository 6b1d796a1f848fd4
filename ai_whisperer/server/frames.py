"""Notifications as frames: made once, however many clients get them."""

from __future__ import annotations

from ai_whisperer.protocol.notifications import frame_of
from ai_whisperer.records import Notification
from ai_whisperer.server.socket import framed

_KEPT = 2_048


class NotificationFrames:
    """Keeps the frames of the latest notifications."""

    def __init__(self) -> None:
        self._frames: dict[tuple[str, int], bytes] = {}

    def of(self, note: Notification) -> bytes:
        """The WebSocket frame of the notification."""
        if not note.seq:
            return framed(frame_of(note))  # the pieces of a stream are joined for each client as it reads
        key = (note.session_id, note.seq)
        known = self._frames.get(key)
        if known is None:
            if len(self._frames) >= _KEPT:
                self._frames.clear()
            known = self._frames[key] = framed(frame_of(note))
        return known

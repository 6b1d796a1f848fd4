"""Notifications as frames: made once, however many clients get them."""

from __future__ import annotations

from collections.abc import Iterable

from ai_whisperer.protocol.notifications import frame_of
from ai_whisperer.records import Notification
from ai_whisperer.server.socket import framed

_KEPT = 2_048
_KEPT_BYTES = 4 << 20


class NotificationFrames:
    """Keeps the frames of the latest notifications, as far as there is room for them."""

    def __init__(self) -> None:
        self._frames: dict[tuple[str, int, float, str], bytes] = {}
        self._bytes = 0

    def joined(self, notes: Iterable[Notification]) -> bytes:
        """The WebSocket frames of the notifications, one after the other."""
        return b"".join([self.of(note) for note in notes])

    def of(self, note: Notification) -> bytes:
        """The WebSocket frame of the notification."""
        if not note.seq:
            return framed(frame_of(note))  # the pieces of a stream are joined for each client as it reads
        # A session that is deleted and made anew has the same numbers again, and may be somebody else's.
        key = (note.session_id, note.seq, note.at, note.cause)
        known = self._frames.get(key)
        if known is None:
            known = framed(frame_of(note))
            if len(self._frames) >= _KEPT or self._bytes + len(known) > _KEPT_BYTES:
                self._frames.clear()
                self._bytes = 0
            self._frames[key] = known
            self._bytes += len(known)
        return known

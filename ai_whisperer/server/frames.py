"""Notifications as frames: made once, however many clients get them."""

from __future__ import annotations

from collections.abc import Sequence

from ai_whisperer.domain.notification import Notification
from ai_whisperer.protocol.subscriptions import frame_of
from ai_whisperer.runtime.session.log import Subscription
from ai_whisperer.server.socket import framed

_KEPT = 2_048
_KEPT_BYTES = 4 << 20
_AT_ONCE_BYTES = 32 << 10


class NotificationFrames:
    """Keeps the frames of the latest notifications, as far as there is room for them."""

    def __init__(self) -> None:
        self._frames: dict[tuple[str, int, float, str], bytes] = {}
        self._bytes = 0

    async def some(self, subscription: Subscription) -> tuple[list[Notification], bytes]:
        """What has come, and its frames one after the other: as much as is written at once. Both empty at the end."""
        first = await subscription.some(at_most=1)
        more, frames = self.rest(subscription, begun=[self.of(note) for note in first])
        return first + more, frames

    def rest(self, subscription: Subscription, *, begun: Sequence[bytes] = ()) -> tuple[list[Notification], bytes]:
        """What is there already, likewise; `begun` are frames that go before."""
        notes: list[Notification] = []
        frames = list(begun)
        size = sum(map(len, frames))
        while size < _AT_ONCE_BYTES and (note := subscription.take(at_most=1)):
            notes += note
            frames.append(self.of(note[0]))
            size += len(frames[-1])
        return notes, b"".join(frames)

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

"""A notification that was just written to the log of a session, and that nobody has read yet."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.base import Told


class Committed(msgspec.Struct, frozen=True, gc=False):
    """An entry of the log that was just written. Its params are made when somebody reads it, which may be never."""

    seq: int
    session_id: str
    name: str
    cause: str
    at: float
    told: Told

    def read(self) -> Notification:
        return Notification(
            seq=self.seq,
            session_id=self.session_id,
            name=self.name,
            cause=self.cause,
            at=self.at,
            params=self.told.params(),
        )

"""A notification on its way into the log of a session, and in it until somebody reads it."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.base import Told


class Note(msgspec.Struct, gc=False):
    """An entry of the log. Its number is 0 until it is written; it is not changed otherwise.

    Its params are made when somebody reads it, which may be never.
    """

    session_id: str
    cause: str
    at: float
    told: Told
    seq: int = 0

    @property
    def name(self) -> str:
        return self.told.wire_name

    def read(self) -> Notification:
        return Notification(
            seq=self.seq,
            session_id=self.session_id,
            name=self.name,
            cause=self.cause,
            at=self.at,
            params=self.told.params(),
        )

"""A notification as the log of a session has it."""

from __future__ import annotations

from typing import Any

import msgspec


class Notification(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One entry of a session's numbered log. `seq` is 0 for what is not kept: the deltas of a stream."""

    seq: int
    session_id: str
    name: str
    cause: str
    at: float
    params: dict[str, Any]

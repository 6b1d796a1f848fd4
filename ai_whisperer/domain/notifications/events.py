"""Notifications about events."""

from __future__ import annotations

from typing import Any

from ai_whisperer.domain.notifications.base import OfAgent, Told, notification


@notification("event.broadcast")
class EventBroadcast(Told, frozen=True, kw_only=True):
    """An event was broadcast."""

    event_id: str
    event: str
    data: Any
    sender: str
    woken: int
    notified: int


@notification("event.not_taken", level="warning")
class EventNotTaken(OfAgent, frozen=True, kw_only=True):
    """A subscriber whose queue is full did not get an event."""

    event_id: str
    event: str

"""Notifications about events."""

from __future__ import annotations

from typing import Any

from ai_whisperer.domain.notifications.base import OfAgent, Told, notification


@notification("event.broadcast", "broadcast the event {event}: {woken:count} woken, {notified:count} told")
class EventBroadcast(Told, frozen=True, kw_only=True):
    """An event was broadcast."""

    who = "{@sender}"
    event_id: str
    event: str
    data: Any
    sender: str
    woken: int
    notified: int


@notification("event.not_taken", "did not get the event {event}: its queue is full", level="warning", watched=False)
class EventNotTaken(OfAgent, frozen=True, kw_only=True):
    """A subscriber whose queue is full did not get an event."""

    event_id: str
    event: str

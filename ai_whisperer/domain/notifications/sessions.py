"""Notifications about the session and its clock."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from ai_whisperer.domain.notifications.base import Told, notification


@notification("session.opened")
class SessionOpened(Told, frozen=True, kw_only=True):
    """The session was opened again: tool calls no longer wait for their turn, nor people for locks.

    `clock_offset_seconds` is there if the wall clock and the session's do not agree: see `clock.changed`.
    """

    clock_offset_seconds: int | UnsetType = UNSET


@notification("clock.changed")
class ClockChanged(Told, frozen=True, kw_only=True):
    """The wall clock was set, or the session has taken its time over: durations are not affected, cron and sleeps until
    a time go by the new one.

    `clock_offset_seconds` is how far the wall clock is ahead of the session's now. All times to come move by what this
    changed, except those that were named by the wall clock.
    """

    clock_offset_seconds: int


@notification("session.closed")
class SessionClosed(Told, frozen=True, kw_only=True):
    """The session was deleted or the server ends: nothing more comes. Not numbered, not kept."""

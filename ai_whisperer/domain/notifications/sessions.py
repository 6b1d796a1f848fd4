"""Notifications about the session and its clock."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from ai_whisperer.domain.notifications.base import Told, notification


class OfSession(Told, frozen=True, kw_only=True):
    who = "The session"


@notification("session.opened", "was opened again", watched=False)
class SessionOpened(OfSession, frozen=True, kw_only=True):
    """The session was opened again: tool calls no longer wait for their turn, nor people for locks.

    `clock_offset_seconds` is there if the wall clock and the session's do not agree: see `clock.changed`.
    """

    clock_offset_seconds: int | UnsetType = UNSET


@notification(
    "clock.changed",
    "[clockOffsetSeconds=0?goes by the wall clock again"
    "|clockOffsetSeconds>0?is {clockOffsetSeconds:duration} behind the wall clock, which was set"
    "|is {clockOffsetSeconds:duration} ahead of the wall clock, which was set]",
    watched=False,
)
class ClockChanged(OfSession, frozen=True, kw_only=True):
    """The wall clock was set, or the session has taken its time over: durations are not affected, cron and sleeps until
    a time go by the new one.

    `clock_offset_seconds` is how far the wall clock is ahead of the session's now. All times to come move by what this
    changed, except those that were named by the wall clock.
    """

    clock_offset_seconds: int


@notification("session.closed", "was closed", watched=False)
class SessionClosed(OfSession, frozen=True, kw_only=True):
    """The session was deleted or the server ends: nothing more comes. Not numbered, not kept."""

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


@notification("session.pruned", "no longer has what ended before {before:time}", watched=False)
class SessionPruned(OfSession, frozen=True, kw_only=True):
    """What ended before a time was erased, and the log begins later: whoever is not past `first_seq` takes a snapshot.

    `threads` is how many conversations were erased.
    """

    before: float
    first_seq: int
    threads: int


@notification("log.erased", "had an entry here, which was erased", watched=False)
class LogErased(OfSession, frozen=True, kw_only=True):
    """What stood here was erased with the agent, the room or the thread that it was about. Its number stays."""


@notification("log.skipped", "no longer has what came before {firstSeq}", watched=False)
class LogSkipped(OfSession, frozen=True, kw_only=True):
    """What came before was pruned, so that a client that was away missed it: the next is `first_seq`.

    The client itself says so, in place of what is missing. Not numbered, not kept: take a snapshot to know what the
    session is like.
    """

    first_seq: int


@notification("session.closed", "was closed", watched=False)
class SessionClosed(OfSession, frozen=True, kw_only=True):
    """The session was deleted or the server ends: nothing more comes. Not numbered, not kept."""

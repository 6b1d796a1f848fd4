"""Notices that the wall clock was set, and says so."""

from __future__ import annotations

from collections.abc import Callable

from ai_whisperer.runtime.session.clock import SessionClock
from ai_whisperer.runtime.session.roles import Roster

_CAUSE = "clock"


class ClockWatch:
    """Compares the clock of one session with the wall clock whenever it looks.

    While the session counts something, its clock goes on evenly, and the difference is announced: what people were told
    about times to come is now off by so much. A session that counts nothing takes the time of the wall clock over, as
    far as that is not before its last decision (`decided_at`): so one that was set back catches up.
    """

    def __init__(self, clock: SessionClock, roster: Roster, *, tell: Callable[[str, int], None]) -> None:
        self._clock = clock
        self._roster = roster
        self._tell = tell
        self.decided_at = clock.now()

    def look(self, *, counts: bool) -> None:
        """Notice a wall clock that was set since the last look.

        `counts`: something is due by the session's time, or what was due is under way.
        """
        clock = self._clock
        if not clock.offset and not clock.is_off(clock.now()):
            return  # as nearly always
        before = clock.offset
        if counts or self._has_work():
            clock.notice()
        else:
            clock.settle(after=self.decided_at)
        if clock.offset != before:
            self._tell(_CAUSE, clock.offset)

    def _has_work(self) -> bool:
        """Whether a loop runs or work waits: either may carry a deadline."""
        return bool(self._roster.running) or any(agent.work.size for agent in self._roster.agents.values())

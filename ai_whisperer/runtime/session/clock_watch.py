"""Notices that the wall clock was set, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ai_whisperer.runtime.session.workspace import Workspace

_CAUSE = "clock"


class ClockWatch:
    """Compares the clock of one session with the wall clock whenever it looks.

    While the session counts something, its clock goes on evenly, and the difference is announced: what people were told
    about times to come is now off by so much. A session that counts nothing takes the time of the wall clock over, as
    far as that is not before its last decision: so one that was set back catches up.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def look(self) -> None:
        """Notice a wall clock that was set since the last look."""
        clock = self._workspace.clock
        if not clock.offset and not clock.is_off:
            return  # as nearly always
        if self._workspace.closing or self._workspace.bus.failure is not None:
            return
        before = clock.offset
        if self._counts_nothing():
            clock.settle(after=self._workspace.decided_at)
        else:
            clock.notice()
        if clock.offset != before:
            self._tell()

    def _counts_nothing(self) -> bool:
        """Whether no duration is under way, nor work that may carry a deadline."""
        workspace = self._workspace
        if workspace.running or workspace.scheduler.counts:
            return False
        return not any(agent.queue_size for agent in workspace.agents.values())

    def _tell(self) -> None:
        decision = self._workspace.decide_at_once(_CAUSE)
        decision.tell("clock.changed", {"clockOffsetSeconds": self._workspace.clock.offset})
        decision.submit()

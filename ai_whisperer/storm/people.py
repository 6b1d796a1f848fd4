"""People of a universe: they outlive the process, do again what was cut off, and know when nothing more can come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ai_whisperer.domain.agents import AgentState, AgentStatus
from ai_whisperer.storm.process import DiedError, UniverseProcess
from ai_whisperer.testing.stuck import StuckError, settled

PATIENCE_SECONDS = 3_600.0
"""So long, in virtual time, people wait for what they want to react to, unless nothing can come any more."""
REST_SECONDS = 7 * 86_400.0
"""So long they wait at the end until the team is at rest; providers may be down for hours."""
LIFETIME_SECONDS = 1e8
"""So long anything may take: faults take as long as they take."""
_LOOK_SECONDS = 0.1
_LONGEST_LOOK_SECONDS = 5.0


class People:
    """What they did not get is in `injection.seen.unmet`."""

    def __init__(self, process: UniverseProcess) -> None:
        self._process = process

    @property
    def session(self) -> Any:
        return self._process.session

    def insist(
        self,
        work: Callable[[], Any],
        *,
        again: Callable[[], Any] | None = None,
        within: float = LIFETIME_SECONDS,
    ) -> None:
        """Do it, and do it again whenever the process dies meanwhile."""
        while True:
            try:
                self._process.do(work(), within=within)
            except DiedError:
                work = again or work
            else:
                return

    def come_to_rest(self) -> None:
        """Wait until nothing happens by itself any more."""
        if not self._process.is_alive:
            self._process.start_again()
        try:
            self.insist(self._rest, within=REST_SECONDS)
        except StuckError:
            return  # somebody waits, and the log tells for what

    async def _rest(self) -> None:
        await settled(self.session)

    async def until(self, condition: Callable[[], Any]) -> bool:
        """Wait until it holds; False if it does not, and nothing more can happen."""
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + PATIENCE_SECONDS, _LOOK_SECONDS
        seq = -1
        while loop.time() < end:
            held = condition()
            if (await held) if asyncio.iscoroutine(held) else held:
                return True
            session = self.session
            if seq == session.last_seq:
                if self._is_over():
                    return False
                pause = min(pause * 1.5, _LONGEST_LOOK_SECONDS)
            else:
                seq, pause = session.last_seq, _LOOK_SECONDS
            await asyncio.sleep(pause)
        return False

    def _is_over(self) -> bool:
        """Whether nobody works, and nobody will by themselves."""
        session = self.session
        statuses: list[AgentStatus] = session.list_agents()
        if any(_is_at_work(each) or each.sleeping_until is not None for each in statuses):
            return False
        return session.is_flushed and not session.list_schedules()


def _is_at_work(status: AgentStatus) -> bool:
    if status.missing_tools:
        return False
    return status.state is AgentState.ACTIVE or (
        status.started and status.state is AgentState.IDLE and status.queue_size > 0
    )

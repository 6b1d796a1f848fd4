"""How many agents are started, and how many may be."""

from __future__ import annotations

from ai_whisperer.domain.agents import AgentRecord
from ai_whisperer.domain.limits import LimitAction, LimitScope
from ai_whisperer.domain.notifications.limits import LimitReached
from ai_whisperer.errors import LimitError
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.limits.stated import StatedLimits


class StartedAgents:
    """Counts the agents of one session that are started: `count`."""

    def __init__(self, stated: StatedLimits, reached: ReachedLimits) -> None:
        self._stated = stated
        self._reached = reached
        self.count = 0

    def changed(self, before: AgentRecord, after: AgentRecord) -> None:
        """An agent may have been started or stopped."""
        self.count += after.started - before.started

    def check(self, agent_id: str) -> None:
        """Raise `LimitError` if no more agents may be started."""
        most = self._stated.whole.max_started_agents
        if self.count < most:
            return
        refused = LimitReached(
            scope=LimitScope.SESSION,
            limit="max_started_agents",
            action=LimitAction.REFUSED,
            used=self.count,
            most=most,
            agent_id=agent_id,
            task_id=None,
        )
        self._reached.tell_alone(refused)
        raise LimitError(
            f"'{agent_id}' cannot be started: {self.count:,} agents are started and {most:,} may be "
            "(max_started_agents); nothing was changed. Stop another agent or raise the limit."
        )

"""Where a session can be forked, and whether agents that are to be otherwise could be so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ai_whisperer.core.changes import changed_definitions
from ai_whisperer.core.fork_points import ForkPoints, nearest_points
from ai_whisperer.core.paging import checked_limit
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.runtime.api.base import SessionBase
from ai_whisperer.tools.registry import INSIDE

_PAGE = 1_000


class SessionForks(SessionBase):
    """The part of the session manager that looks forward to forks. They are made elsewhere, from what is on disk."""

    async def fork_points(self, near: int, *, limit: int = 2) -> list[int]:
        if isinstance(near, bool) or not isinstance(near, int) or near < 0:
            raise InvalidInputError("near must be the number of an entry of the log.")
        checked_limit(limit)
        kernel = self._session.kernel
        await kernel.flushed()
        found, seq = ForkPoints(INSIDE), 0
        while page := await kernel.reads.notifications(after=seq, limit=_PAGE):
            if page[0].seq > seq + 1:
                return []
            found.take(page)
            seq = page[-1].seq
            if found.is_over or found.has_after(near, count=limit):
                break
        else:
            found.end()
        return nearest_points(found.points, near, limit=limit)

    def check_fork(self, changes: Mapping[str, Any]) -> dict[str, list[str]]:
        """Raise what is wrong with changes of agents: `InvalidInputError`, `UnknownAgentError`, a `DefinitionError`.

        Returns the tools that are missing, by the agents that have them and stay as they are.
        """
        agents = self._session.roster.agents
        changed = changed_definitions({name: agent.record.definition for name, agent in agents.items()}, changes)
        for agent_id, definition in changed.items():
            self._session.creation.definition_for(agent_id, definition, None, agents[agent_id].toolkit.own_tools)
        return {
            name: list(agent.missing_tools)
            for name, agent in agents.items()
            if agent.missing_tools and name not in changed
        }

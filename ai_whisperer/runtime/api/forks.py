"""Where a session can be forked, and whether agents that are to be otherwise could be so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ai_whisperer.core.changes import changed_definitions, checked_changes
from ai_whisperer.core.fork_points import ForkPoints, nearest_points
from ai_whisperer.core.paging import checked_limit
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.runtime.api.base import SessionBase
from ai_whisperer.tools.registry import INSIDE

_PAGE = 1_000


class SessionForks(SessionBase):
    """The part of the session manager that looks forward to forks. They are made elsewhere, from what is on disk."""

    async def fork_points(self, near: int, *, limit: int = 2) -> list[int]:
        found = await self._points(_entry("near", near), count=checked_limit(limit))
        return nearest_points(found.points, near, limit=limit)

    async def check_fork(self, at: int, changes: Mapping[str, Any]) -> dict[str, list[str]]:
        """Raise what is wrong with a fork at that entry with these changes of agents.

        That is a `RecordingError` with the nearest numbers that work, an `InvalidInputError`, an `UnknownAgentError` or
        a `DefinitionError`. Returns the tools that are missing, by the agents that have them and stay as they are.
        """
        _entry("at", at)
        agents = self._session.roster.agents
        known = {name: agent.record.definition for name, agent in agents.items()}
        changed = changed_definitions(known, checked_changes(changes))
        for agent_id, definition in changed.items():
            self._session.creation.definition_for(agent_id, definition, None, agents[agent_id].toolkit.own_tools)
        lacking = {
            name: list(agent.missing_tools)
            for name, agent in agents.items()
            if agent.missing_tools and name not in changed
        }
        found = await self._points(at, count=1)
        if at not in found.points:
            raise found.refusal(at)
        return lacking

    async def _points(self, near: int, *, count: int) -> ForkPoints:
        """The points up to an entry, and so many after it."""
        kernel = self._session.kernel
        await kernel.flushed()
        found, seq = ForkPoints(INSIDE), 0
        while page := await kernel.reads.notifications(after=seq, limit=_PAGE):
            found.take(page)
            seq = page[-1].seq
            if (found.is_over and seq >= near) or found.has_after(near, count=count):
                return found
        found.end()
        return found


def _entry(name: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise InvalidInputError(f"{name} must be the number of an entry of the log.")
    return given

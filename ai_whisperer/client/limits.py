"""Limits from outside."""

from __future__ import annotations

from ai_whisperer.client.base import AgentRef, ClientBase, agent_name
from ai_whisperer.core.limits import Stated, changes_by_name
from ai_whisperer.domain.limits import Limits, LimitScope, LimitsReport, SessionLimits
from ai_whisperer.protocol import limits as protocol


class ClientLimits(ClientBase):
    """What the agents of a session, and the session itself, may use."""

    async def get_limits(self, agent_id: AgentRef | None = None) -> LimitsReport:
        """The limits of an agent, or of the session with the defaults of its agents.

        Each with the place where it was stated and, where that can be told, what is used of it now.
        """
        name = None if agent_id is None else agent_name(agent_id)
        return await self._ask(protocol.GET_LIMITS, protocol.GetLimits(session_id=self._session_id, agent_id=name))

    async def set_limits(self, limits: Stated, *, agent_id: AgentRef | None = None) -> LimitsReport:
        """Change limits of an agent, or of the session: numbers by name. It takes effect at once and is kept.

        None in place of a number takes the limit back, so that what the session, the server or the default says holds
        again. Limits that are not named stay as they are. Those of an agent are part of its definition. What waits for
        room resumes when a limit is raised, and so does an agent that was paused for it.
        """
        name = None if agent_id is None else agent_name(agent_id)
        changes = changes_by_name(limits, SessionLimits if agent_id is None else Limits)
        params = protocol.SetLimits(session_id=self._session_id, limits=changes, agent_id=name)
        return await self._ask(protocol.SET_LIMITS, params)

    async def set_server_limits(self, limits: Stated) -> LimitsReport:
        """Change the limits of the server, which hold for all its sessions; only the principal `local` may.

        Returns those of this session as they are now. They override the setting `limits` and survive a restart.
        """
        changes = changes_by_name(limits, SessionLimits)
        params = protocol.SetLimits(session_id=self._session_id, limits=changes, scope=LimitScope.SERVER)
        return await self._ask(protocol.SET_LIMITS, params)

"""What limits are stated where, and what therefore holds."""

from __future__ import annotations

from ai_whisperer.core.limits import Layers, effective, effective_for_session
from ai_whisperer.domain.limits import EffectiveLimits, EffectiveSessionLimits, Limits, LimitSource, SessionLimits


class StatedLimits:
    """What an agent states goes over what the session does, that over the server, that over what it was started with.

    `session` and `server` are what these two state now; `whole` is what holds for the session.
    """

    def __init__(self, *, setting: SessionLimits, server: SessionLimits, session: SessionLimits) -> None:
        self._setting = setting
        self.server = server
        self.session = session
        self._of_agents: dict[Limits, EffectiveLimits] = {}
        self.whole: EffectiveSessionLimits
        self.put_in_force()

    def for_agent(self, stated: Limits) -> EffectiveLimits:
        """The limits of an agent that states these. Agents that state the same share them."""
        known = self._of_agents.get(stated)
        if known is None:
            self._of_agents[stated] = known = effective(stated, self.session, self.server, self._setting)
        return known

    def layers(self, stated: Limits | None) -> Layers:
        """What is stated for an agent, or for the session, the first before the others."""
        own = [] if stated is None else [(LimitSource.AGENT, stated)]
        return [
            *own,
            (LimitSource.SESSION, self.session),
            (LimitSource.SERVER, self.server),
            (LimitSource.SETTING, self._setting),
        ]

    def put_in_force(self) -> None:
        """Let what is stated now hold."""
        self.whole = effective_for_session(self.session, self.server, self._setting)
        self._of_agents.clear()

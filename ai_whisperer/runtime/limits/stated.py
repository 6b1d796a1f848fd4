"""The limits of one session: what is stated where, and what therefore holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ai_whisperer.core.limits import Layers, Stated, changed, effective, effective_for_session
from ai_whisperer.domain.limits import (
    EffectiveLimits,
    EffectiveSessionLimits,
    LimitAction,
    Limits,
    LimitScope,
    LimitSource,
    SessionLimits,
)
from ai_whisperer.errors import LimitError
from ai_whisperer.runtime.limits.reached import Breach

if TYPE_CHECKING:
    from ai_whisperer.runtime.agents.agent import AgentSession
    from ai_whisperer.runtime.session.workspace import Decision, Workspace


class LimitKeeper:
    """What an agent states goes over what the session does, that over the server, that over what it was started with.

    `started` is how many agents are started.
    """

    def __init__(
        self, workspace: Workspace, *, setting: SessionLimits, server: SessionLimits, session: SessionLimits
    ) -> None:
        self._workspace = workspace
        self._setting = setting
        self._server = server
        self._session = session
        self._of_agents: dict[Limits, EffectiveLimits] = {}
        self.whole: EffectiveSessionLimits
        self.started = 0
        self._put_in_force()

    def for_agent(self, stated: Limits) -> EffectiveLimits:
        """The limits of an agent that states these. Agents that state the same share them."""
        if stated not in self._of_agents:
            self._of_agents[stated] = effective(stated, self._session, self._server, self._setting)
        return self._of_agents[stated]

    def layers(self, stated: Limits | None) -> Layers:
        """What is stated for an agent, or for the session, the first before the others."""
        own = [] if stated is None else [(LimitSource.AGENT, stated)]
        return [
            *own,
            (LimitSource.SESSION, self._session),
            (LimitSource.SERVER, self._server),
            (LimitSource.SETTING, self._setting),
        ]

    def check_start(self, agent_id: str) -> None:
        """Raise `LimitError` if no more agents may be started."""
        most = self.whole.max_started_agents
        if self.started < most:
            return
        refused = Breach(
            scope=LimitScope.SESSION,
            limit="max_started_agents",
            action=LimitAction.REFUSED,
            used=self.started,
            most=most,
            agent_id=agent_id,
        )
        self._workspace.breaches.tell_alone(refused)
        raise LimitError(
            f"'{agent_id}' cannot be started: {self.started:,} agents are started and {most:,} may be "
            "(max_started_agents); nothing was changed. Stop another agent or raise the limit."
        )

    def change_session(self, decision: Decision, changes: Stated) -> None:
        """Let the session state these limits; raises, having changed nothing, if they make no sense."""
        before, self._session = self._session, changed(self._session, changes)
        if before == self._session:
            return
        decision.unit.put_limits(self._workspace.session_id, self._session)
        _announce(decision, LimitScope.SESSION, None, before, self._session)
        self._hold_from_now_on(decision, self._workspace.agents.values())

    def change_agent(self, decision: Decision, agent: AgentSession, changes: Stated) -> None:
        """Let the agent state these limits; raises, having changed nothing, if they make no sense."""
        definition = agent.record.definition
        limits = changed(definition.limits, changes)
        if limits == definition.limits:
            return
        agent.redefine(decision, replace(agent.record, definition=replace(definition, limits=limits)))
        _announce(decision, LimitScope.AGENT, agent.agent_id, definition.limits, limits)
        self._hold_from_now_on(decision, [agent])

    def take_server(self, decision: Decision, limits: SessionLimits) -> None:
        """The server states these limits from now on, and has kept them."""
        before, self._server = self._server, limits
        if before == limits:
            return
        _announce(decision, LimitScope.SERVER, None, before, limits)
        self._hold_from_now_on(decision, self._workspace.agents.values())

    def let_go_on(self, decision: Decision, agents: Iterable[AgentSession]) -> None:
        """Resume those of the agents that are paused for a limit which is not reached any more.

        One that is being stopped is left alone: it is asked about again if the stop is given up.
        """
        for agent in agents:
            if agent.record.paused_limit is None or agent.is_being_stopped:
                continue
            if self._workspace.reservations.have_room_for(agent):
                agent.resume(decision)

    def _put_in_force(self) -> None:
        self.whole = effective_for_session(self._session, self._server, self._setting)
        self._of_agents.clear()

    def _hold_from_now_on(self, decision: Decision, agents: Iterable[AgentSession]) -> None:
        """Take effect at once: what waits for room goes on, and so do agents that were paused for want of it."""
        self._put_in_force()
        concerned = list(agents)
        for agent in concerned:
            agent.forget_limits()
        self.let_go_on(decision, concerned)
        decision.then(lambda: self._go_on(concerned))

    def _go_on(self, agents: Iterable[AgentSession]) -> None:
        workspace = self._workspace
        workspace.deadlines.look_again()
        workspace.reservations.look_again()
        workspace.places.look_again()
        for agent in agents:
            agent.dispatch()
            for loop in list(agent.loops.values()):
                loop.take_up()  # one that rests may have more steps behind it than it may by now


def _announce(decision: Decision, scope: LimitScope, agent_id: str | None, before: Limits, after: Limits) -> None:
    now: dict[str, Any] = {
        name: value for name in after.__struct_fields__ if (value := getattr(after, name)) != getattr(before, name)
    }
    decision.tell("limits.changed", {"scope": scope, "agentId": agent_id, "limits": now})

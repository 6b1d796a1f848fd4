"""Limits are changed while the session runs: what follows from that, for those who wait and for those paused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from ai_whisperer.core.limits import Stated, changed
from ai_whisperer.domain.limits import Limits, LimitScope, SessionLimits
from ai_whisperer.domain.notifications.limits import LimitsChanged
from ai_whisperer.runtime.limits.deadlines import Deadlines
from ai_whisperer.runtime.limits.provider_gates import ProviderGates
from ai_whisperer.runtime.limits.slots import LoopSlots
from ai_whisperer.runtime.limits.spending import Spending
from ai_whisperer.runtime.limits.stated import StatedLimits
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Agent, Roster


class LimitChanges:
    """Changes what is stated, and lets it take effect at once."""

    def __init__(
        self,
        kernel: Kernel,
        roster: Roster,
        stated: StatedLimits,
        spending: Spending,
        slots: LoopSlots,
        gates: ProviderGates,
        deadlines: Deadlines,
    ) -> None:
        self._kernel = kernel
        self._roster = roster
        self._stated = stated
        self._spending = spending
        self._slots = slots
        self._gates = gates
        self._deadlines = deadlines

    def change_session(self, decision: Decision, changes: Stated) -> None:
        """Let the session state these limits; raises, having changed nothing, if they make no sense."""
        before, self._stated.session = self._stated.session, changed(self._stated.session, changes)
        if before == self._stated.session:
            return
        decision.unit.put_limits(self._kernel.session_id, self._stated.session)
        _announce(decision, LimitScope.SESSION, None, before, self._stated.session)
        self._hold_from_now_on(decision, self._roster.agents.values())

    def change_agent(self, decision: Decision, agent: Agent, changes: Stated) -> None:
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
        before, self._stated.server = self._stated.server, limits
        if before == limits:
            return
        _announce(decision, LimitScope.SERVER, None, before, limits)
        self._hold_from_now_on(decision, self._roster.agents.values())

    def let_go_on(self, decision: Decision, agents: Iterable[Agent]) -> None:
        """Resume those of the agents that are paused for a limit which is not reached any more.

        One that is being stopped is left alone: it is asked about again if the stop is given up.
        """
        for agent in agents:
            if agent.record.paused_limit is None or agent.is_being_stopped:
                continue
            if self._spending.have_room_for(agent):
                agent.resume(decision)

    def _hold_from_now_on(self, decision: Decision, agents: Iterable[Agent]) -> None:
        """Take effect at once: what waits for room goes on, and so do agents that were paused for want of it."""
        self._stated.put_in_force()
        concerned = list(agents)
        for agent in concerned:
            agent.renew_limits()
        self.let_go_on(decision, concerned)
        decision.then(lambda: self._go_on(concerned))

    def _go_on(self, agents: Iterable[Agent]) -> None:
        self._deadlines.look_again()
        self._spending.look_again()
        self._slots.look_again()
        self._gates.look_again()
        for agent in agents:
            agent.work.dispatch()
            for loop in list(agent.work.loops.values()):
                loop.take_up()  # one that rests may have more steps behind it than it may by now


def _announce(decision: Decision, scope: LimitScope, agent_id: str | None, before: Limits, after: Limits) -> None:
    now: dict[str, Any] = {
        name: value for name in after.__struct_fields__ if (value := getattr(after, name)) != getattr(before, name)
    }
    decision.tell(LimitsChanged(scope=scope, agent_id=agent_id, limits=now))

"""What all parts of the session manager stand on: the open session, its agents by name, and one way to change it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TypeVar

from ai_whisperer.errors import InvalidInputError
from ai_whisperer.runtime.agents.agent import LiveAgent
from ai_whisperer.runtime.api.handle import AgentSession
from ai_whisperer.runtime.life.open_session import OpenSession
from ai_whisperer.runtime.session.cause import by_caller
from ai_whisperer.runtime.session.decision import Decision

T = TypeVar("T")

AgentRef = str | AgentSession
"""An agent: its handle, its id, or any of its names."""


class SessionBase:
    """The base of the session manager."""

    @property
    @abstractmethod
    def _session(self) -> OpenSession:
        """The open session; raises `ClosedError`."""

    async def _committed(self, act: Callable[[Decision], T]) -> T:
        """Decide something in the name of the caller, and wait until it is durable.

        To ask for the open session checks the event loop: what is called from another one changes nothing.
        """
        decision = self._session.kernel.decide(by_caller())
        outcome = act(decision)
        await decision.commit()
        return outcome

    def _find_agent(self, agent: AgentRef) -> LiveAgent:
        if not isinstance(agent, (str, AgentSession)):
            raise InvalidInputError(f"Name an agent by its id or its handle, not by {type(agent).__name__}.")
        name = agent if isinstance(agent, str) else agent.agent_id
        session = self._session
        return session.roster.agents[session.roster.book.resolve(name)]

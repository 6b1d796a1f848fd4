"""All of one open session: what its API works with."""

from __future__ import annotations

from ai_whisperer.runtime.agents.agent import LiveAgent
from ai_whisperer.runtime.agents.creation import AgentCreation
from ai_whisperer.runtime.agents.deletion import PartsOfAll
from ai_whisperer.runtime.agents.loop import AILoop
from ai_whisperer.runtime.life.trial_turn import TrialTurn
from ai_whisperer.runtime.session.roster import LiveRoster


class OpenSession(PartsOfAll, kw_only=True, frozen=True, eq=False):
    """The parts of a session with its agents as they are."""

    roster: LiveRoster[LiveAgent, AILoop]
    creation: AgentCreation
    trial_turn: TrialTurn

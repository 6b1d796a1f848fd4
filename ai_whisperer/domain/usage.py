"""What was used: tokens, money, calls."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.record import Record


class AgentTotals(Record, frozen=True, kw_only=True):
    """What is counted of the tasks of an agent, but for those that run: how many were begun, and what they used.

    `active_at` is when a task of the agent began or ended last, as far as was known when one ended.
    """

    session_id: str
    agent_id: str
    tasks: int = 0
    usage: Usage = Usage()
    active_at: float = 0.0


class UsageTotals(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks were begun, what they used, how many mails came in.

    `context_bytes` is what conversations take in memory now.
    """

    tasks: int
    usage: Usage
    mails_received: int
    context_bytes: int


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was used, by agent and in total. `cost_usd` is null where the price of no model is known.

    The mails that the user was sent count in the total of a session.
    """

    agents: dict[str, UsageTotals]
    total: UsageTotals

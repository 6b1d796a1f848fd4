"""The methods `limits.*`: what agents and sessions may use."""

from __future__ import annotations

from ai_whisperer.domain.limits import LimitScope, LimitsReport
from ai_whisperer.protocol.method import Effect, InSession, Method

Numbers = dict[str, int | float | None]
"""Limits by name; null resets one."""


class GetLimits(InSession, frozen=True, kw_only=True):
    """The limits of an agent, or of the session: each with where it was stated and what is used of it now."""

    agent_id: str | None = None


class SetLimits(InSession, frozen=True, kw_only=True):
    """Change limits by name; null resets one, so that what is stated below holds again. It takes effect at once.

    `scope` is `agent` with an `agentId`, else `session`, unless it is said. Those of the `server` hold for all its
    sessions, and only the principal `local` may change them.
    """

    limits: Numbers
    agent_id: str | None = None
    scope: LimitScope | None = None


GET_LIMITS = Method("limits.get", GetLimits, LimitsReport, "get_limits", Effect.READS)
SET_LIMITS = Method("limits.set", SetLimits, LimitsReport, effect=Effect.REPEATS)

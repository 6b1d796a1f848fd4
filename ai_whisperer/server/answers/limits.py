"""Answers to `limits.*`."""

from __future__ import annotations

from ai_whisperer.domain.limits import LimitScope, LimitsReport
from ai_whisperer.errors import ForbiddenError, InvalidInputError
from ai_whisperer.protocol import limits
from ai_whisperer.server.calls import Caller, answers
from ai_whisperer.settings import LOCAL


@answers(limits.SET_LIMITS)
async def set_limits(caller: Caller, params: limits.SetLimits) -> LimitsReport:
    session = await caller.session(params.session_id)
    scope = params.scope or (LimitScope.SESSION if params.agent_id is None else LimitScope.AGENT)
    if scope is LimitScope.TREE or (scope is LimitScope.AGENT) != (params.agent_id is not None):
        raise InvalidInputError(
            "Limits are set for an agent (scope 'agent' with its agentId), for the session or for the server (without "
            "an agentId); nothing was changed."
        )
    if scope is not LimitScope.SERVER:
        return await session.set_limits(params.limits, agent_id=params.agent_id)
    if caller.principal != LOCAL:
        raise ForbiddenError(
            f"Only the principal '{LOCAL}' may change the limits of the server, and you are '{caller.principal}'; "
            "nothing was changed. Change those of your session."
        )
    await caller.host.set_limits(params.limits)
    return session.get_limits()

"""Notifications about limits."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from ai_whisperer.domain.limits import LimitAction, LimitScope
from ai_whisperer.domain.notifications.base import Told, notification


@notification(
    "limit.reached",
    "reached the limit {limit:words} ({used:count} of {max:count}): {action}[: {account}]",
    watched=False,
)
class LimitReached(Told, frozen=True, kw_only=True):
    """A limit was reached: `used` is what is used or wanted, `max` what there may be.

    For `max_requests_per_account` it says which account, and that of one that nobody may ask has a `max` of 0.
    """

    who = "[{@agentId}|The {scope}]"
    scope: LimitScope
    limit: str
    agent_id: str | None
    task_id: str | None
    used: float
    most: float = msgspec.field(name="max")
    action: LimitAction
    retry_after_seconds: float | UnsetType = UNSET
    account: str | UnsetType = UNSET


@notification("limits.changed", "were changed: {limits:words}", watched=False)
class LimitsChanged(Told, frozen=True, kw_only=True):
    """The limits of an agent, the session or the server were changed; null resets one."""

    who = "The limits of [{@agentId}|the {scope}]"
    scope: LimitScope
    agent_id: str | None
    limits: dict[str, float | None]

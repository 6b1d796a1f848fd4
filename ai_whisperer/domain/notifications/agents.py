"""Notifications about agents: what they are, and whether they work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import msgspec
from msgspec import UNSET, UnsetType

from ai_whisperer.domain.agents import AgentRecord, AgentState
from ai_whisperer.domain.notifications.base import OfAgent, OfTask, notification


@notification("agent.created")
class AgentCreated(OfAgent, frozen=True, kw_only=True):
    """An agent was created."""

    name: str
    description: str
    created_by: str | UnsetType = UNSET


class AgentTold(OfAgent, frozen=True, kw_only=True):
    reason: str


@notification("agent.started")
class AgentStarted(AgentTold, frozen=True, kw_only=True):
    """An agent was started: it takes work."""


@notification("agent.paused")
class AgentPaused(AgentTold, frozen=True, kw_only=True):
    """An agent was paused."""


@notification("agent.resumed")
class AgentResumed(AgentTold, frozen=True, kw_only=True):
    """An agent was resumed."""


@notification("agent.stopped")
class AgentStopped(AgentTold, frozen=True, kw_only=True):
    """An agent was stopped."""


class AgentChanged(OfAgent, frozen=True, kw_only=True):
    before: AgentState = msgspec.field(name="from")
    to: AgentState
    action: str
    reason: str | UnsetType = UNSET
    sleeping_until: float | UnsetType | None = UNSET
    wake_events: list[str] | UnsetType = UNSET
    sleeping_by_wall_clock: bool | UnsetType = UNSET
    paused_limit: str | UnsetType = UNSET

    @classmethod
    def of(cls, before: AgentRecord, after: AgentRecord, action: str, *, sleeping_until: float | None) -> Self:
        """`sleeping_until` is what the wall clock shows when the sleep is over, if there is one."""
        sleep = after.sleep
        return cls(
            agent_id=after.id,
            before=before.state,
            to=after.state,
            action=action,
            reason=after.reason or UNSET,
            sleeping_until=UNSET if sleep is None else sleeping_until,
            wake_events=UNSET if sleep is None else list(sleep.wake_events),
            sleeping_by_wall_clock=UNSET if sleep is None or not sleep.by_wall_clock else True,
            paused_limit=UNSET if after.paused_limit is None else after.paused_limit,
        )


@notification("agent.state_changed")
class AgentStateChanged(AgentChanged, frozen=True, kw_only=True):
    """An agent went `from` one state `to` another."""


@notification("agent.sleep_changed")
class AgentSleepChanged(AgentChanged, frozen=True, kw_only=True):
    """Until when and for what an agent sleeps was changed."""


@notification("agent.redefined")
class AgentRedefined(OfAgent, frozen=True, kw_only=True):
    """An agent has a new definition."""

    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    missing_tools: list[str] | UnsetType = UNSET

    @classmethod
    def of(cls, agent: AgentRecord, missing_tools: Sequence[str]) -> Self:
        return cls(
            agent_id=agent.id,
            name=agent.definition.name or agent.id,
            description=agent.definition.description,
            missing_tools=list(missing_tools),
        )


class ToolsMissing(OfAgent, frozen=True, kw_only=True):
    tools: list[str]


@notification("agent.tools_missing", level="warning")
class AgentToolsMissing(ToolsMissing, frozen=True, kw_only=True):
    """An agent waits for tools that were not provided."""


@notification("agent.failing", level="error")
class AgentFailing(OfTask, frozen=True, kw_only=True):
    """Too many tasks of an agent failed: it is being stopped.

    `restart_at` is when the agent starts again by itself, if the cause is its provider.
    """

    reason: str
    restart_at: float | UnsetType = UNSET

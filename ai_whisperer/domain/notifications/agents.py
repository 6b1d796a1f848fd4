"""Notifications about agents: what they are, and whether they work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import msgspec
from msgspec import UNSET, UnsetType

from ai_whisperer.domain.agents import AgentRecord, AgentState
from ai_whisperer.domain.notifications.base import OfAgent, OfTask, notification

_SLEEP = "[ until {sleepingUntil:time}, for {wakeEvents}| until {sleepingUntil:time}| for {wakeEvents}]"


@notification("agent.created", "was created[: {description}]", watched=False)
class AgentCreated(OfAgent, frozen=True, kw_only=True):
    """An agent was created."""

    name: str
    description: str
    created_by: str | UnsetType = UNSET


@notification("agent.deleted", "was deleted")
class AgentDeleted(OfAgent, frozen=True, kw_only=True):
    """An agent was deleted with its conversations, its mail and its schedules. What it used still counts."""


@notification("thread.deleted", "no longer has the conversation {threadId}", watched=False)
class ThreadDeleted(OfAgent, frozen=True, kw_only=True):
    """A conversation of an agent was erased."""

    thread_id: str


class AgentTold(OfAgent, frozen=True, kw_only=True):
    reason: str


@notification("agent.started", "was started[: {reason}]", watched=False)
class AgentStarted(AgentTold, frozen=True, kw_only=True):
    """An agent was started: it takes work."""


@notification("agent.paused", "was paused[: {reason}]")
class AgentPaused(AgentTold, frozen=True, kw_only=True):
    """An agent was paused."""


@notification("agent.resumed", "was resumed[: {reason}]")
class AgentResumed(AgentTold, frozen=True, kw_only=True):
    """An agent was resumed."""


@notification("agent.stopped", "was stopped[: {reason}]")
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


@notification("agent.state_changed", f"went from {{from}} to {{to}}{_SLEEP}[: {{reason}}]")
class AgentStateChanged(AgentChanged, frozen=True, kw_only=True):
    """An agent went `from` one state `to` another."""


@notification("agent.sleep_changed", f"will sleep{_SLEEP}[: {{reason}}]", watched=False)
class AgentSleepChanged(AgentChanged, frozen=True, kw_only=True):
    """Until when and for what an agent sleeps was changed."""


@notification("agent.redefined", "has a new definition", watched=False)
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


@notification("agent.tools_missing", "waits for tools that were not provided: {tools}", level="warning")
class AgentToolsMissing(ToolsMissing, frozen=True, kw_only=True):
    """An agent waits for tools that were not provided."""


@notification("agent.failing", "failed too often and is stopped[ until {restartAt:time}][: {reason}]", level="error")
class AgentFailing(OfTask, frozen=True, kw_only=True):
    """Too many tasks of an agent failed: it is being stopped.

    `restart_at` is when the agent starts again by itself, if the cause is its provider.
    """

    reason: str
    restart_at: float | UnsetType = UNSET

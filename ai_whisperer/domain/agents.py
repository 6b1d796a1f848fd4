"""Agents: who there is, in which state, and what each is doing."""

from __future__ import annotations

from enum import StrEnum

from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.record import Record


class AgentState(StrEnum):
    """`idle`: has nothing to do. `active`: at least one of its tasks runs."""

    IDLE = "idle"
    ACTIVE = "active"
    PAUSED = "paused"
    SLEEPING = "sleeping"
    STOPPED = "stopped"


class SleepPlan(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Until when and for what an agent sleeps, and why: a pause has a reason of its own meanwhile.

    `until` is a time of the session, at which a duration is over, or, `by_wall_clock`, what the wall clock has to show.
    """

    until: float | None = None
    wake_events: tuple[str, ...] = ()
    reason: str = ""
    by_wall_clock: bool = False


class AgentRecord(Record, frozen=True, kw_only=True):
    """A paused agent whose `paused_limit` is not None is paused for that limit, and resumes when it is raised.

    `own_tools` names the functions that were provided for it, and if it has all tools those of the session too.
    """

    session_id: str
    id: str
    definition: AgentDefinition
    state: AgentState = AgentState.IDLE
    started: bool = False
    sleep: SleepPlan | None = None
    reason: str = ""
    own_tools: tuple[str, ...] = ()
    created_at: float = 0.0
    started_at: float | None = None
    paused_limit: str | None = None


class AgentStatus(Record, frozen=True, kw_only=True):
    """What an agent is doing. `current_task` is the kind of the task that has run longest.

    It runs since `running_since`, and a step of it ended last at `last_step_at`: one that hangs shows itself there.
    `last_activity_at` is when a task of it last began or ended, or a step of one ended; at first, when it was created.
    `waiting_for` names what its loops wait for: agents, locks as `lock:name`, people as `approval:id` or `question:id`;
    `paused_for` the resources that its tools wait for, since others touch them now: it continues by itself. While there
    are `missing_tools` the agent waits for them: provide them with `give_tools`. One with a `paused_limit` resumes when
    that limit is raised. `sleeping_until` is what the wall clock shows when the sleep is over: if that clock is set, it
    changes, unless the agent is `sleeping_by_wall_clock`, until just that time. While the task that has run longest
    waits to ask its model again, `retry_at` says until when and `retry_reason` why: the provider is down, say.
    `dead_tasks` counts its tasks that failed and wait for a person.
    """

    agent_id: str
    state: AgentState
    current_task: str | None
    queue_size: int
    sleeping_until: float | None
    started: bool
    reason: str
    unread_mail: int
    running_tasks: tuple[str, ...]
    progress_percent: float | None
    progress_note: str
    tasks: int
    usage: Usage
    name: str
    description: str
    wake_events: tuple[str, ...] = ()
    waiting_for: tuple[str, ...] = ()
    paused_for: tuple[str, ...] = ()
    missing_tools: tuple[str, ...] = ()
    paused_limit: str | None = None
    running_since: float | None = None
    last_step_at: float | None = None
    last_activity_at: float = 0.0
    sleeping_by_wall_clock: bool = False
    retry_at: float | None = None
    dead_tasks: int = 0
    retry_reason: str = ""

"""What the params of each notification hold, beside `sessionId`, `seq`, `cause` and `at`.

A field that may be `UNSET` is left out when there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.conversation import ChannelResponse
from ai_whisperer.domain.mail import MailState
from ai_whisperer.domain.schedules import MissedRuns
from ai_whisperer.domain.tasks import Failure, Priority, StepKind, StepState, TaskKind, TaskState
from ai_whisperer.protocol.control_notifications import (
    ApprovalDecided,
    ApprovalRequested,
    ApprovalWithdrawn,
    LimitReached,
    LimitsChanged,
    LockBroken,
    LockHeld,
    LockTold,
    LockWaitEnded,
    LockWaiting,
    McpServerFailed,
    McpServerTold,
    McpToolsListed,
    ResourceGranted,
    ResourceWaiting,
)
from ai_whisperer.protocol.notification_base import NotificationParams, OfAgent, OfStep, OfTask
from ai_whisperer.protocol.room_notifications import (
    RoomAbsent,
    RoomAnswer,
    RoomCreated,
    RoomHopLimit,
    RoomMember,
    RoomMessage,
    RoomUnanswered,
)


class SessionClosed(NotificationParams, frozen=True, kw_only=True):
    pass


class SessionOpened(NotificationParams, frozen=True, kw_only=True):
    """`clock_offset_seconds` is there if the wall clock and the session's do not agree: see `clock.changed`."""

    clock_offset_seconds: int | UnsetType = UNSET


class ClockChanged(NotificationParams, frozen=True, kw_only=True):
    """How far the wall clock is ahead of the session's now. All times to come move by what this changed, except those
    that were named by the wall clock."""

    clock_offset_seconds: int


class AgentCreated(OfAgent, frozen=True, kw_only=True):
    name: str
    description: str
    created_by: str | UnsetType = UNSET


class AgentTold(OfAgent, frozen=True, kw_only=True):
    reason: str


class AgentChanged(OfAgent, frozen=True, kw_only=True):
    before: AgentState = msgspec.field(name="from")
    to: AgentState
    action: str
    reason: str | UnsetType = UNSET
    sleeping_until: float | UnsetType | None = UNSET
    wake_events: list[str] | UnsetType = UNSET
    sleeping_by_wall_clock: bool | UnsetType = UNSET
    paused_limit: str | UnsetType = UNSET


class AgentRedefined(OfAgent, frozen=True, kw_only=True):
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    missing_tools: list[str] | UnsetType = UNSET


class ToolsMissing(OfAgent, frozen=True, kw_only=True):
    tools: list[str]


class AgentFailing(OfTask, frozen=True, kw_only=True):
    """`restart_at` is when the agent starts again by itself, if the cause is its provider."""

    reason: str
    restart_at: float | UnsetType = UNSET


class TaskBefore(msgspec.Struct, frozen=True, kw_only=True):
    """How a task that is taken up again was before. `started_at` is None if it had never begun.

    `dismissed` is there if it was no longer a dead letter.
    """

    state: TaskState
    created_at: float
    started_at: float | None
    progress_percent: float | None
    progress_note: str
    dismissed: bool | UnsetType = UNSET


class TaskQueued(OfTask, frozen=True, kw_only=True):
    """`by` is who delegated it, or broadcast the event that it is for; `again` is there if it is taken up again."""

    thread_id: str
    kind: TaskKind
    priority: Priority
    summary: str
    mail_id: str | UnsetType = UNSET
    by: str | UnsetType = UNSET
    again: TaskBefore | UnsetType = UNSET


class TaskStarted(OfTask, frozen=True, kw_only=True):
    """`priority` and `summary` are those of a mail, which is no task before it is begun."""

    thread_id: str
    kind: TaskKind
    attempt: int
    mail_id: str | None
    priority: Priority | UnsetType = UNSET
    summary: str | UnsetType = UNSET


class TaskProgress(OfTask, frozen=True, kw_only=True):
    percent: float | None
    note: str


class TaskCompleted(OfTask, frozen=True, kw_only=True):
    result: ChannelResponse


class TaskContinued(OfTask, frozen=True, kw_only=True):
    """`locks` are those that the continuation holds in its place."""

    continuation_id: str
    number: int
    result: ChannelResponse
    locks: list[str] | UnsetType = UNSET


class TaskFailed(OfTask, frozen=True, kw_only=True):
    state: TaskState
    error: Failure


class TaskCancelled(OfTask, frozen=True, kw_only=True):
    reason: str


class TaskDismissed(OfTask, frozen=True, kw_only=True):
    pass


class TaskRestarting(OfTask, frozen=True, kw_only=True):
    restarts: int
    not_before: float
    error: Failure


class TaskDelta(OfStep, frozen=True, kw_only=True):
    attempt: int
    channel: Literal["analysis", "commentary", "final"]
    text: str
    skipped: int | UnsetType = UNSET
    offset: int | UnsetType = UNSET


class StepOutput(OfStep, frozen=True, kw_only=True):
    text: str
    skipped: int | UnsetType = UNSET


class StepStarted(OfStep, frozen=True, kw_only=True):
    """`attempt` and `started_at`, when it first began, are there if it is begun again."""

    kind: StepKind
    tool: str | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    started_at: float | UnsetType = UNSET


class StepRetried(OfStep, frozen=True, kw_only=True):
    """`requests` is how many requests to the model ended with this, if that is not one.

    `retry_after_seconds` is how long the provider asked to wait, if the task does not wait that long.
    """

    attempt: int
    error: Failure
    retry_at: float
    requests: int | UnsetType = UNSET
    retry_after_seconds: float | UnsetType = UNSET


class StepInterrupted(OfStep, frozen=True, kw_only=True):
    attempt: int


class StepUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What one model request used. `cost_usd` is None when the price of the model is not known."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None


class StepRun(msgspec.Struct, frozen=True, kw_only=True):
    """What the processes of a tool call took, and the sandbox that held them."""

    sandbox: str
    wall_seconds: float
    cpu_seconds: float
    memory_bytes: int


class StepFinished(OfStep, frozen=True, kw_only=True):
    """`requests` is how many requests to the model ended with this, if it is a model step and that is not one."""

    kind: StepKind
    state: StepState
    tool: str | UnsetType = UNSET
    usage: StepUsage | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    run: StepRun | UnsetType = UNSET
    error: Failure | UnsetType = UNSET
    requests: int | UnsetType = UNSET


class MailSent(NotificationParams, frozen=True, kw_only=True):
    """`given_to` is the task that waits for it and has it at once; without one it waits in the mailbox."""

    mail_id: str
    thread_id: str
    sender: str
    sequence: int
    recipient: str
    subject: str
    priority: Priority
    reply_to: str | None
    given_to: str | UnsetType = UNSET


class MailChanged(OfAgent, frozen=True, kw_only=True):
    mail_id: str
    before: MailState | UnsetType = msgspec.field(name="from", default=UNSET)
    state: MailState
    task_id: str | None


class EventBroadcast(NotificationParams, frozen=True, kw_only=True):
    event_id: str
    event: str
    data: Any
    sender: str
    woken: int
    notified: int


class EventNotTaken(OfAgent, frozen=True, kw_only=True):
    event_id: str
    event: str


class OfSchedule(NotificationParams, frozen=True, kw_only=True):
    schedule_id: str
    agent_id: str | None


class ScheduleCreated(OfSchedule, frozen=True, kw_only=True):
    cron: str | None
    interval_seconds: float | None
    zone: str
    prompt: str | None
    event: str | None
    data: Any
    missed: MissedRuns
    wake: bool | UnsetType = UNSET
    next_at: float | None


class ScheduleChanged(OfSchedule, frozen=True, kw_only=True):
    paused: bool
    next_at: float | None
    reason: str | UnsetType = UNSET


class ScheduleFired(OfSchedule, frozen=True, kw_only=True):
    due_at: float
    next_at: float | None
    event_id: str | UnsetType = UNSET
    task_id: str | UnsetType = UNSET


class ScheduleMissed(OfSchedule, frozen=True, kw_only=True):
    count: int
    policy: MissedRuns
    reason: str
    next_at: float | None


class OfSwitch(OfStep, frozen=True, kw_only=True):
    to_agent: str
    mail_id: str


class SwitchBegan(OfSwitch, frozen=True, kw_only=True):
    depth: int
    deadline_at: float


class SwitchEnded(OfSwitch, frozen=True, kw_only=True):
    outcome: str
    reply_id: str | UnsetType = UNSET


PARAMS: Mapping[str, type[msgspec.Struct]] = {
    "agent.created": AgentCreated,
    "agent.started": AgentTold,
    "agent.paused": AgentTold,
    "agent.resumed": AgentTold,
    "agent.stopped": AgentTold,
    "agent.state_changed": AgentChanged,
    "agent.sleep_changed": AgentChanged,
    "agent.redefined": AgentRedefined,
    "agent.tools_missing": ToolsMissing,
    "agent.failing": AgentFailing,
    "async.task.queued": TaskQueued,
    "async.task.started": TaskStarted,
    "async.task.progress": TaskProgress,
    "async.task.completed": TaskCompleted,
    "async.task.continuation": TaskContinued,
    "async.task.error": TaskFailed,
    "async.task.cancelled": TaskCancelled,
    "async.task.dismissed": TaskDismissed,
    "async.task.restarting": TaskRestarting,
    "async.task.delta": TaskDelta,
    "step.output": StepOutput,
    "step.started": StepStarted,
    "step.retried": StepRetried,
    "step.interrupted": StepInterrupted,
    "step.finished": StepFinished,
    "mail.sent": MailSent,
    "mail.state_changed": MailChanged,
    "event.broadcast": EventBroadcast,
    "event.not_taken": EventNotTaken,
    "schedule.created": ScheduleCreated,
    "schedule.changed": ScheduleChanged,
    "schedule.deleted": OfSchedule,
    "schedule.fired": ScheduleFired,
    "schedule.missed": ScheduleMissed,
    "room.created": RoomCreated,
    "room.member_added": RoomMember,
    "room.member_removed": RoomMember,
    "room.message": RoomMessage,
    "room.answering": RoomAnswer,
    "room.passed": RoomAnswer,
    "room.unanswered": RoomUnanswered,
    "room.absent": RoomAbsent,
    "room.hop_limit": RoomHopLimit,
    "switch.began": SwitchBegan,
    "switch.ended": SwitchEnded,
    "approval.requested": ApprovalRequested,
    "approval.approved": ApprovalDecided,
    "approval.refused": ApprovalDecided,
    "approval.withdrawn": ApprovalWithdrawn,
    "lock.waiting": LockWaiting,
    "lock.wait_ended": LockWaitEnded,
    "lock.acquired": LockHeld,
    "lock.renewed": LockHeld,
    "lock.released": LockTold,
    "lock.expired": LockTold,
    "lock.broken": LockBroken,
    "limit.reached": LimitReached,
    "limits.changed": LimitsChanged,
    "mcp.server_started": McpServerTold,
    "mcp.server_failed": McpServerFailed,
    "mcp.server_stopped": McpServerTold,
    "mcp.tools_listed": McpToolsListed,
    "mcp.tools_missing": ToolsMissing,
    "resource.waiting": ResourceWaiting,
    "resource.granted": ResourceGranted,
    "session.opened": SessionOpened,
    "clock.changed": ClockChanged,
    "session.closed": SessionClosed,
}
"""The type of the params by the name of the notification."""

"""What the params of each notification hold, beside `sessionId`, `seq`, `cause` and `at`.

A field that may be `UNSET` is left out when there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ai_whisperer.conversation import ChannelResponse
from ai_whisperer.coordination import ApprovalState, RoomKind
from ai_whisperer.definition import MissedRuns
from ai_whisperer.records import AgentState, Failure, MailState, Priority, StepKind, StepState, TaskKind, TaskState
from ai_whisperer.status import LimitAction, LimitScope


class _Params(msgspec.Struct, frozen=True, kw_only=True):
    pass


class SessionClosed(_Params, frozen=True, kw_only=True):
    pass


class OfAgent(_Params, frozen=True, kw_only=True):
    agent_id: str


class OfTask(OfAgent, frozen=True, kw_only=True):
    task_id: str


class OfStep(OfTask, frozen=True, kw_only=True):
    step_id: str


class AgentCreated(OfAgent, frozen=True, kw_only=True):
    name: str
    description: str


class AgentTold(OfAgent, frozen=True, kw_only=True):
    reason: str


class AgentChanged(OfAgent, frozen=True, kw_only=True):
    before: AgentState = msgspec.field(name="from")
    to: AgentState
    action: str
    reason: str | UnsetType = UNSET
    sleeping_until: float | UnsetType | None = UNSET
    wake_events: list[str] | UnsetType = UNSET


class ToolsMissing(OfAgent, frozen=True, kw_only=True):
    tools: list[str]


class AgentFailing(OfTask, frozen=True, kw_only=True):
    reason: str


class TaskQueued(OfTask, frozen=True, kw_only=True):
    thread_id: str
    kind: TaskKind
    priority: Priority
    summary: str


class TaskStarted(OfTask, frozen=True, kw_only=True):
    thread_id: str
    kind: TaskKind
    attempt: int
    mail_id: str | None


class TaskProgress(OfTask, frozen=True, kw_only=True):
    percent: float | None
    note: str


class TaskCompleted(OfTask, frozen=True, kw_only=True):
    result: ChannelResponse


class TaskContinued(OfTask, frozen=True, kw_only=True):
    continuation_id: str
    number: int
    result: ChannelResponse


class TaskFailed(OfTask, frozen=True, kw_only=True):
    state: TaskState
    error: Failure


class TaskCancelled(OfTask, frozen=True, kw_only=True):
    reason: str


class TaskRestarting(OfTask, frozen=True, kw_only=True):
    restarts: int
    not_before: float
    error: Failure


class TaskDelta(OfStep, frozen=True, kw_only=True):
    attempt: int
    channel: Literal["analysis", "commentary", "final"]
    text: str
    skipped: int | UnsetType = UNSET


class StepOutput(OfStep, frozen=True, kw_only=True):
    text: str
    skipped: int | UnsetType = UNSET


class StepStarted(OfStep, frozen=True, kw_only=True):
    kind: StepKind
    tool: str | UnsetType = UNSET
    attempt: int | UnsetType = UNSET


class StepRetried(OfStep, frozen=True, kw_only=True):
    attempt: int
    error: Failure
    retry_at: float


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
    kind: StepKind
    state: StepState
    tool: str | UnsetType = UNSET
    usage: StepUsage | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    run: StepRun | UnsetType = UNSET
    error: Failure | UnsetType = UNSET


class MailSent(_Params, frozen=True, kw_only=True):
    mail_id: str
    thread_id: str
    sender: str
    sequence: int
    recipient: str
    subject: str
    priority: Priority
    reply_to: str | None


class MailChanged(OfAgent, frozen=True, kw_only=True):
    mail_id: str
    state: MailState
    task_id: str | None


class EventBroadcast(_Params, frozen=True, kw_only=True):
    event_id: str
    event: str
    data: Any
    sender: str
    woken: int
    notified: int


class EventNotTaken(OfAgent, frozen=True, kw_only=True):
    event_id: str
    event: str


class OfSchedule(_Params, frozen=True, kw_only=True):
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


class RoomCreated(_Params, frozen=True, kw_only=True):
    room_id: str
    kind: RoomKind
    title: str
    members: list[str]
    hop_limit: int


class RoomMember(OfAgent, frozen=True, kw_only=True):
    room_id: str


class RoomMessage(_Params, frozen=True, kw_only=True):
    room_id: str
    number: int
    message_id: str
    sender: str
    text: str
    mentions: list[str]
    hops: int
    task_id: str | None


class RoomAnswer(OfTask, frozen=True, kw_only=True):
    room_id: str
    number: int


class RoomUnanswered(RoomAnswer, frozen=True, kw_only=True):
    error: Failure


class RoomAbsent(RoomMember, frozen=True, kw_only=True):
    number: int
    reason: str


class RoomHopLimit(RoomMember, frozen=True, kw_only=True):
    number: int
    mentions: list[str]
    hop_limit: int


class OfSwitch(OfStep, frozen=True, kw_only=True):
    to_agent: str
    mail_id: str


class SwitchBegan(OfSwitch, frozen=True, kw_only=True):
    depth: int
    deadline_at: float


class SwitchEnded(OfSwitch, frozen=True, kw_only=True):
    outcome: str
    reply_id: str | UnsetType = UNSET


class OfApproval(OfTask, frozen=True, kw_only=True):
    approval_id: str
    tool: str


class ApprovalRequested(OfApproval, frozen=True, kw_only=True):
    digest: str


class ApprovalDecided(OfApproval, frozen=True, kw_only=True):
    decided_by: str
    reason: str


class ApprovalWithdrawn(OfApproval, frozen=True, kw_only=True):
    state: ApprovalState
    reason: str


class OfLock(_Params, frozen=True, kw_only=True):
    """`agent_id` and `task_id` are None if it is about a person or program."""

    name: str
    agent_id: str | None
    task_id: str | None


class OfLockWait(OfLock, frozen=True, kw_only=True):
    waiter: str
    step_id: str | None


class LockWaiting(OfLockWait, frozen=True, kw_only=True):
    holder: str
    deadline_at: float


class LockWaitEnded(OfLockWait, frozen=True, kw_only=True):
    outcome: str


class LockTold(OfLock, frozen=True, kw_only=True):
    holder: str
    token: int


class LockHeld(LockTold, frozen=True, kw_only=True):
    expires_at: float


class LockBroken(LockTold, frozen=True, kw_only=True):
    by: str
    reason: str


class LimitReached(_Params, frozen=True, kw_only=True):
    scope: LimitScope
    limit: str
    agent_id: str | None
    task_id: str | None
    used: float
    most: float = msgspec.field(name="max")
    action: LimitAction
    retry_after_seconds: float | UnsetType = UNSET


class LimitsChanged(_Params, frozen=True, kw_only=True):
    scope: LimitScope
    agent_id: str | None
    limits: dict[str, float | None]


class McpServerTold(_Params, frozen=True, kw_only=True):
    name: str


class McpServerFailed(McpServerTold, frozen=True, kw_only=True):
    error: str
    will_retry_at: float


class McpToolsListed(McpServerTold, frozen=True, kw_only=True):
    tools: list[str]
    problems: list[str]


class OfResources(OfStep, frozen=True, kw_only=True):
    resources: list[str]
    access: str


class ResourceWaiting(OfResources, frozen=True, kw_only=True):
    holders: list[str]


class ResourceGranted(OfResources, frozen=True, kw_only=True):
    waited_seconds: float


PARAMS: Mapping[str, type[msgspec.Struct]] = {
    "agent.created": AgentCreated,
    "agent.started": AgentTold,
    "agent.paused": AgentTold,
    "agent.resumed": AgentTold,
    "agent.stopped": AgentTold,
    "agent.state_changed": AgentChanged,
    "agent.sleep_changed": AgentChanged,
    "agent.redefined": OfAgent,
    "agent.tools_missing": ToolsMissing,
    "agent.failing": AgentFailing,
    "async.task.queued": TaskQueued,
    "async.task.started": TaskStarted,
    "async.task.progress": TaskProgress,
    "async.task.completed": TaskCompleted,
    "async.task.continuation": TaskContinued,
    "async.task.error": TaskFailed,
    "async.task.cancelled": TaskCancelled,
    "async.task.restarting": TaskRestarting,
    "async.task.delta": TaskDelta,
    "step.output": StepOutput,
    "step.started": StepStarted,
    "step.retried": StepRetried,
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
    "session.closed": SessionClosed,
}
"""The type of the params by the name of the notification."""

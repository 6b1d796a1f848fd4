"""The params of the notifications about what holds agents up: approvals, locks, limits, turns; and MCP servers."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from ai_whisperer.domain.approvals import ApprovalState
from ai_whisperer.domain.limits import LimitAction, LimitScope
from ai_whisperer.protocol.notification_base import NotificationParams, OfStep, OfTask


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


class OfLock(NotificationParams, frozen=True, kw_only=True):
    """`agent_id` and `task_id` are None if it is about a person or program."""

    name: str
    agent_id: str | None
    task_id: str | None


class OfLockWait(OfLock, frozen=True, kw_only=True):
    """`wait_id` tells the waits of people and programs apart, which have no step."""

    waiter: str
    step_id: str | None
    wait_id: str | UnsetType = UNSET


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


class LimitReached(NotificationParams, frozen=True, kw_only=True):
    scope: LimitScope
    limit: str
    agent_id: str | None
    task_id: str | None
    used: float
    most: float = msgspec.field(name="max")
    action: LimitAction
    retry_after_seconds: float | UnsetType = UNSET


class LimitsChanged(NotificationParams, frozen=True, kw_only=True):
    scope: LimitScope
    agent_id: str | None
    limits: dict[str, float | None]


class McpServerTold(NotificationParams, frozen=True, kw_only=True):
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

"""Notifications about tool calls that wait for a person.

The arguments of a call may be long and are for the person alone: whoever wants them asks.
"""

from __future__ import annotations

from typing import Self

from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.domain.notifications.base import OfTask, notification


class OfApproval(OfTask, frozen=True, kw_only=True):
    approval_id: str
    tool: str


@notification("approval.requested", "wants to call {tool} and waits for approval")
class ApprovalRequested(OfApproval, frozen=True, kw_only=True):
    """A tool call waits for a person to allow it."""

    digest: str

    @classmethod
    def of(cls, approval: ApprovalRecord) -> Self:
        return cls(
            agent_id=approval.agent_id,
            task_id=approval.task_id,
            approval_id=approval.id,
            tool=approval.tool,
            digest=approval.digest,
        )


class ApprovalDecided(OfApproval, frozen=True, kw_only=True):
    decided_by: str
    reason: str

    @classmethod
    def of(cls, approval: ApprovalRecord) -> Self:
        return cls(
            agent_id=approval.agent_id,
            task_id=approval.task_id,
            approval_id=approval.id,
            tool=approval.tool,
            decided_by=approval.decided_by or "",
            reason=approval.reason,
        )


@notification("approval.approved", "was allowed to call {tool}[ by {decidedBy}][: {reason}]")
class ApprovalApproved(ApprovalDecided, frozen=True, kw_only=True):
    """A person allowed a tool call."""


@notification("approval.refused", "was refused a call of {tool}[ by {decidedBy}][: {reason}]")
class ApprovalRefused(ApprovalDecided, frozen=True, kw_only=True):
    """A person refused a tool call: it does not run."""


@notification("approval.withdrawn", "no longer wants to call {tool}[: {reason}]")
class ApprovalWithdrawn(OfApproval, frozen=True, kw_only=True):
    """The task of a tool call that waited for a person, or had just been allowed, ended before."""

    state: ApprovalState
    reason: str

    @classmethod
    def of(cls, approval: ApprovalRecord) -> Self:
        return cls(
            agent_id=approval.agent_id,
            task_id=approval.task_id,
            approval_id=approval.id,
            tool=approval.tool,
            state=approval.state,
            reason=approval.reason,
        )

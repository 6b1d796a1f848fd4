"""The methods `approval.*`: tool calls that wait for a person."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.protocol.method import Effect, InSession, Method


class ApprovalList(msgspec.Struct, frozen=True):
    """What people are asked about: what waits for a decision with the oldest first, all else with the newest first."""

    approvals: list[ApprovalRecord]


class ListApprovals(InSession, frozen=True, kw_only=True):
    """What people are asked about: by default what waits for a decision; null for all."""

    approval_state: ApprovalState | None = ApprovalState.PENDING
    limit: int = 100


# Params of a method that acts on an approval.
class OfApproval(InSession, frozen=True, kw_only=True):
    approval_id: str


class GetApproval(OfApproval, frozen=True, kw_only=True):
    """The approval as it is now, with the exact arguments of the call."""


class Approve(OfApproval, frozen=True, kw_only=True):
    """Allow the call, exactly as it is: nobody can change its arguments. The same decision again changes nothing."""

    digest: str | None = None
    reason: str = ""


class Refuse(OfApproval, frozen=True, kw_only=True):
    """Refuse the call: its model is told so, with the reason, and continues."""

    reason: str = ""


LIST_APPROVALS = Method("approval.list", ListApprovals, ApprovalList, "list_approvals", Effect.READS)
GET_APPROVAL = Method("approval.get", GetApproval, ApprovalRecord, "get_approval", Effect.READS)
APPROVE = Method("approval.approve", Approve, ApprovalRecord, "approve")
REFUSE = Method("approval.refuse", Refuse, ApprovalRecord, "refuse")

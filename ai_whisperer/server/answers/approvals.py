"""Answers to `approval.*`. Whoever decides is written down: the principal whose session it is."""

from __future__ import annotations

from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.protocol import approvals
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.calls import Caller, answers, reads


@reads(approvals.LIST_APPROVALS)
def list_approvals(session: AsyncAgentSessionManager, params: approvals.ListApprovals) -> approvals.ApprovalList:
    return approvals.ApprovalList(session.list_approvals(state=params.approval_state, limit=params.limit))


@reads(approvals.GET_APPROVAL)
def get_approval(session: AsyncAgentSessionManager, params: approvals.GetApproval) -> ApprovalRecord:
    return session.get_approval(params.approval_id)


@answers(approvals.APPROVE)
async def approve(caller: Caller, params: approvals.Approve) -> ApprovalRecord:
    session = await caller.session(params.session_id)
    return await session.approve(params.approval_id, digest=params.digest, reason=params.reason, by=caller.principal)


@answers(approvals.REFUSE)
async def refuse(caller: Caller, params: approvals.Refuse) -> ApprovalRecord:
    session = await caller.session(params.session_id)
    return await session.refuse(params.approval_id, reason=params.reason, by=caller.principal)

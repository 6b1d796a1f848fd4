"""Answers to `approval.*`. Whoever decides is written down: the principal whose session it is."""

from __future__ import annotations

from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.protocol import approvals
from ai_whisperer.server.calls import Caller, answers


@answers(approvals.APPROVE)
async def approve(caller: Caller, params: approvals.Approve) -> ApprovalRecord:
    session = await caller.session(params.session_id)
    return await session.approve(params.approval_id, digest=params.digest, reason=params.reason, by=caller.principal)


@answers(approvals.REFUSE)
async def refuse(caller: Caller, params: approvals.Refuse) -> ApprovalRecord:
    session = await caller.session(params.session_id)
    return await session.refuse(params.approval_id, reason=params.reason, by=caller.principal)

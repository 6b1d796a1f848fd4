"""Approvals, as a program or a person handles them."""

from __future__ import annotations

from ai_whisperer.core.approvals import approval_state
from ai_whisperer.core.paging import checked_limit
from ai_whisperer.core.text import check_reason, check_text
from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.domain.mail import USER
from ai_whisperer.runtime.api.tasks import SessionWork

MAX_NAME_BYTES = 1000


class SessionApprovals(SessionWork):
    """The part of the session manager that handles tool calls which a person has to allow."""

    async def list_approvals(
        self, *, state: ApprovalState | str | None = ApprovalState.PENDING, limit: int = 100
    ) -> list[ApprovalRecord]:
        chosen = approval_state(state)
        checked_limit(limit)
        if chosen is ApprovalState.PENDING:
            return self._session.approvals.pending()[:limit]
        return await self._session.kernel.reads.approvals(state=chosen, limit=limit)

    async def get_approval(self, approval_id: str) -> ApprovalRecord:
        return await self._session.approvals.get(approval_id)

    async def approve(
        self, approval_id: str, *, digest: str | None = None, reason: str = "", by: str = USER
    ) -> ApprovalRecord:
        check_reason(reason)
        check_text("name of who decides", by, max_bytes=MAX_NAME_BYTES)
        approvals = self._session.approvals
        approval = await approvals.get(approval_id)
        return await self._committed(
            lambda decision: approvals.approve(decision, approval, digest=digest, by=by, reason=reason)
        )

    async def refuse(self, approval_id: str, *, reason: str = "", by: str = USER) -> ApprovalRecord:
        check_reason(reason)
        check_text("name of who decides", by, max_bytes=MAX_NAME_BYTES)
        approvals = self._session.approvals
        approval = await approvals.get(approval_id)
        return await self._committed(lambda decision: approvals.refuse(decision, approval, by=by, reason=reason))

"""Approvals from outside."""

from __future__ import annotations

from ai_whisperer.client.base import ClientBase
from ai_whisperer.core.approvals import approval_state
from ai_whisperer.core.paging import checked_limit
from ai_whisperer.core.text import check_reason, check_text
from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.protocol import approvals

_MAX_ID_BYTES = 1000


class ClientApprovals(ClientBase):
    """The tool calls of a session that wait for a person."""

    async def list_approvals(
        self, *, state: ApprovalState | str | None = ApprovalState.PENDING, limit: int = 100
    ) -> list[ApprovalRecord]:
        """What people are asked about: by default what waits for a decision, the oldest first.

        Those of another state, or of all (None), come with the newest first.
        """
        params = approvals.ListApprovals(
            session_id=self._session_id, approval_state=approval_state(state), limit=checked_limit(limit)
        )
        return (await self._ask(approvals.LIST_APPROVALS, params)).approvals

    async def get_approval(self, approval_id: str) -> ApprovalRecord:
        """The approval as it is now, with the exact arguments of the call; raises `UnknownApprovalError`."""
        params = approvals.GetApproval(session_id=self._session_id, approval_id=_checked(approval_id))
        return await self._ask(approvals.GET_APPROVAL, params)

    async def approve(self, approval_id: str, *, digest: str | None = None, reason: str = "") -> ApprovalRecord:
        """Allow the call, exactly as it is: nobody can change its arguments. It runs as soon as its agent may.

        A `digest` that is given must be that of the call. The same decision again changes nothing; raises `StateError`
        if it was decided otherwise or the task has ended.
        """
        check_reason(reason)
        if digest is not None:
            check_text("digest", digest, max_bytes=_MAX_ID_BYTES)
        params = approvals.Approve(
            session_id=self._session_id, approval_id=_checked(approval_id), digest=digest, reason=reason
        )
        return await self._do(approvals.APPROVE, params)

    async def refuse(self, approval_id: str, *, reason: str = "") -> ApprovalRecord:
        """Refuse the call: its model is told so, with the reason, and continues. Raises `StateError` like `approve`."""
        check_reason(reason)
        params = approvals.Refuse(session_id=self._session_id, approval_id=_checked(approval_id), reason=reason)
        return await self._do(approvals.REFUSE, params)


def _checked(approval_id: str) -> str:
    check_text("id of an approval", approval_id, max_bytes=_MAX_ID_BYTES)
    return approval_id

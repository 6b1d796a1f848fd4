"""Tool calls that wait for a person."""

from __future__ import annotations

from enum import StrEnum

from ai_whisperer.domain.record import Record


class ApprovalState(StrEnum):
    """`withdrawn`: the task ended first. `expired`: it ended because its time was over."""

    PENDING = "pending"
    APPROVED = "approved"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


class ApprovalRecord(Record, frozen=True, kw_only=True):
    """A tool call that a person is asked about. Its id is that of the step.

    `arguments` are exactly those that the call runs with; `digest` names the tool with them.
    """

    session_id: str
    id: str
    agent_id: str
    task_id: str
    tool: str
    arguments: str
    digest: str
    state: ApprovalState = ApprovalState.PENDING
    requested_at: float = 0.0
    decided_at: float | None = None
    decided_by: str | None = None
    reason: str = ""

    @property
    def approval_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id

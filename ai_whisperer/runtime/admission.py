"""Whether a tool call with effects outside may begin now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ai_whisperer.conversation import ToolResult
from ai_whisperer.coordination import WaitRecord
from ai_whisperer.records import StepRecord, TaskRecord
from ai_whisperer.tools.function import Tool

if TYPE_CHECKING:
    from ai_whisperer.runtime.workspace import Decision, Workspace


class Admission:
    """Asked before a call begins: its step is not in the journal yet, or is about to be repeated."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def admit(
        self,
        decision: Decision,
        task: TaskRecord,
        step: StepRecord,
        tool: Tool | None,
    ) -> WaitRecord | ToolResult | None:
        """None if the call may begin; a wait if it is asked again when that is over; a result if it is refused."""
        return self._workspace.approvals.hold(decision, task, step, tool)

    def call_ended(self, step_id: str) -> None:
        """A call that was admitted has ended."""

    def worker_ended(self, task_id: str) -> None:
        """The task does nothing now: what was admitted and has not ended will not run."""

"""Whether a tool call with effects outside may begin now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ai_whisperer.conversation import ToolResult
from ai_whisperer.coordination import WaitKind, WaitRecord
from ai_whisperer.records import StepRecord, TaskRecord
from ai_whisperer.runtime.resources import Resources
from ai_whisperer.tools.function import Tool

if TYPE_CHECKING:
    from ai_whisperer.runtime.workspace import Decision, Workspace


class Admission:
    """Asked before a call begins: its step is not in the journal yet, or is about to be repeated."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.resources = Resources(workspace)

    def admit(
        self, decision: Decision, task: TaskRecord, step: StepRecord, tool: Tool | None
    ) -> WaitRecord | ToolResult | None:
        """None if the call may begin; a wait if it is asked again when that is over; a result if it is refused."""
        held: WaitRecord | ToolResult | None = None
        if tool is not None:
            held = self._workspace.approvals.hold(decision, task, step, tool)
            if held is None and tool.touches:  # last of all: whoever has its turn does not wait for anything else
                held = self.resources.admit(decision, task, step, tool)
        if held is None:
            self.resources.held_up(task.id)
        return held

    def holds_back(self, step_id: str) -> bool:
        """Whether the call waits, and would wait still if it were asked for again now."""
        return self._workspace.waits.is_waiting(step_id) and not self.resources.may_begin(step_id)

    def holds_back_any(self, task_id: str) -> bool:
        """Whether a call of the task waits that has not begun."""
        return any(wait.kind is WaitKind.RESOURCE for wait in self._workspace.waits.of_task(task_id))

    def call_ended(self, step_id: str) -> None:
        """A call that was admitted has ended."""
        self.resources.call_ended(step_id)

    def worker_ended(self, task_id: str) -> None:
        """The task does nothing now: what was admitted and has not ended will not run."""
        self.resources.worker_ended(task_id)

"""Whether a tool call with effects outside may begin now."""

from __future__ import annotations

from ai_whisperer.core.failure_records import failed
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.tasks import StepRecord, TaskRecord
from ai_whisperer.domain.waits import WaitKind, WaitRecord
from ai_whisperer.errors import ToolArgumentsError
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.waiting.approvals import Approvals
from ai_whisperer.runtime.waiting.turns import Turns
from ai_whisperer.runtime.waiting.waits import Waits
from ai_whisperer.tools.function import Tool


class Permission:
    """Asked before a call begins: its step is not in the journal yet, or is about to be repeated."""

    def __init__(self, waits: Waits, approvals: Approvals, turns: Turns) -> None:
        self._waits = waits
        self._approvals = approvals
        self.turns = turns

    def admit(
        self, decision: Decision, task: TaskRecord, step: StepRecord, tool: Tool | None
    ) -> WaitRecord | ToolResult | None:
        """None if the call may begin; a wait if it is asked again when that is over; a result if it is refused.

        Arguments that do not fit when it is asked what the call needs are its result there and then: they are never
        looked at again, for they might fit a moment later, and the call run without what it needs.
        """
        held: WaitRecord | ToolResult | None = None
        if tool is not None:
            try:
                held = self._approvals.hold(decision, task, step, tool)
            except ToolArgumentsError as error:
                return failed(error.message)
        if held is None and tool is not None and tool.touches:
            # Last of all: whoever has its turn does not wait for anything else.
            held = self.turns.admit(decision, task, step, tool)
        elif held is None and self._waits.by_step:
            self.turns.let_go(step.id)
        if held is None:
            self.turns.held_up(task.id)
        return held

    def holds_back(self, step_id: str) -> bool:
        """Whether the call waits, and would wait still if it were asked for again now."""
        wait = self._waits.find(step_id)
        return wait is not None and (wait.kind is not WaitKind.RESOURCE or not self.turns.may_begin(step_id))

    def holds_back_any(self, task_id: str) -> bool:
        """Whether a call of the task waits that has not begun."""
        return any(wait.kind is WaitKind.RESOURCE for wait in self._waits.of_task(task_id))

    def call_ended(self, step_id: str) -> None:
        """A call that was admitted has ended."""
        self.turns.call_ended(step_id)

    def worker_ended(self, task_id: str) -> None:
        """The task does nothing now: what was admitted and has not ended will not run."""
        self.turns.worker_ended(task_id)

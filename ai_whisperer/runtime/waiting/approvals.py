"""Tool calls that a person has to allow: each waits durably for a yes that is bound to its exact arguments."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec.structs import replace

from ai_whisperer.core.approvals import check_digest, decided, digest_of, is_listed, refusal_text
from ai_whisperer.core.paging import can_be_id
from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.domain.conversation import ToolCall, ToolResult
from ai_whisperer.domain.notifications.approvals import (
    ApprovalApproved,
    ApprovalRefused,
    ApprovalRequested,
    ApprovalWithdrawn,
)
from ai_whisperer.domain.tasks import StepRecord, TaskRecord
from ai_whisperer.domain.waits import WaitKind, WaitRecord
from ai_whisperer.errors import DeadlineError, TaskTimeError, UnknownApprovalError
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.reads import Overlay
from ai_whisperer.runtime.session.roles import Roster
from ai_whisperer.runtime.waiting.turns import Turns
from ai_whisperer.runtime.waiting.waits import Waits
from ai_whisperer.tools.function import Tool


class Approvals:
    """What people of one session are asked about. In memory are those of the tasks that have not ended.

    A yes is for one call: its step begins once. What was allowed and has not begun when its task ends is withdrawn, so
    that a task which is taken up again asks again.
    """

    def __init__(self, kernel: Kernel, roster: Roster, waits: Waits, turns: Turns) -> None:
        self._kernel = kernel
        self._roster = roster
        self._waits = waits
        self._turns = turns
        self._of_task: dict[str, dict[str, ApprovalRecord]] = {}
        self._leaving: Overlay[str, ApprovalRecord] = Overlay()

    def restore(self, approvals: Iterable[ApprovalRecord]) -> None:
        for approval in approvals:
            self._remember(approval)

    def hold(self, decision: Decision, task: TaskRecord, step: StepRecord, tool: Tool) -> WaitRecord | None:
        """Let the call wait for a person's approval, unless it has it or needs none.

        Raises `ToolArgumentsError` if it needs one or may need one, and its arguments do not fit.
        """
        call = step.call
        if call is None or not self._is_needed(task, step, tool, call):
            return None
        known = self._of_task.get(task.id, {}).get(step.id)
        digest = digest_of(call.name, call.arguments)
        if known is not None and known.digest == digest:
            if known.state is ApprovalState.APPROVED:
                return None
            if known.state is ApprovalState.PENDING:
                return self._wait_of(known)
        approval = ApprovalRecord(
            session_id=task.session_id,
            id=step.id,
            agent_id=task.agent_id,
            task_id=task.id,
            tool=call.name,
            arguments=call.arguments,
            digest=digest,
            requested_at=decision.at,
        )
        wait = WaitRecord(
            session_id=task.session_id,
            id=step.id,
            kind=WaitKind.APPROVAL,
            agent_id=task.agent_id,
            task_id=task.id,
            target=step.id,
            target_agent="",
            arrival=self._kernel.next_arrival(),
            deadline_at=math.inf,  # a person may take as long as the task has
            created_at=decision.at,
        )
        self._turns.let_go(step.id)  # it may have waited for its turn when nobody had to be asked
        self._put(decision, approval)
        self._waits.begin(decision, wait)
        decision.tell(ApprovalRequested.of(approval))
        return wait

    def pending(self) -> list[ApprovalRecord]:
        """Those that wait for a decision, the oldest first."""
        known = (each for approvals in self._of_task.values() for each in approvals.values())
        waiting = (each for each in known if each.state is ApprovalState.PENDING)
        return sorted(waiting, key=lambda each: (each.requested_at, each.id))

    async def get(self, approval_id: str) -> ApprovalRecord:
        """The approval as it is now; raises `UnknownApprovalError`."""
        if can_be_id(approval_id):
            found = self._in_memory(approval_id)
            if found is None:
                stored = await self._kernel.reads.approval(approval_id)
                found = self._in_memory(approval_id) or stored
            if found is not None:
                return found
        raise UnknownApprovalError(
            f"There is no approval {approval_id!r} in session '{self._kernel.session_id}'. Use an id that the list "
            "of approvals shows."
        )

    def approve(
        self, decision: Decision, approval: ApprovalRecord, *, digest: str | None, by: str, reason: str
    ) -> ApprovalRecord:
        """Let the call run. Raises `StateError`, having changed nothing, if that is not what can be decided now."""
        check_digest(approval, digest)
        approved = decided(approval, ApprovalState.APPROVED, at=decision.at, by=by, reason=reason)
        if approved is not approval:
            self._put(decision, approved)
            decision.tell(ApprovalApproved.of(approved))
            self._waits.forget(decision, self._wait_of(approval))
            loop = self._roster.running[approval.task_id]
            # Not at once: whoever decides this may be the loop itself, which is about to rest.
            decision.then(lambda: self._kernel.event_loop.call_soon(loop.take_up))
        return approved

    def refuse(self, decision: Decision, approval: ApprovalRecord, *, by: str, reason: str) -> ApprovalRecord:
        """Let the call end without having run, and its model be told why. Raises `StateError` like `approve`."""
        refused = decided(approval, ApprovalState.REFUSED, at=decision.at, by=by, reason=reason)
        if refused is not approval:
            self._put(decision, refused)
            decision.tell(ApprovalRefused.of(refused))
            result = ToolResult(content=refusal_text(refused), is_error=True)
            self._waits.end(decision, self._wait_of(approval), result)
        return refused

    def task_ended(self, decision: Decision, task: TaskRecord) -> None:
        """Nobody needs to decide any more; what was allowed and has not begun will not begin on this yes."""
        approvals = self._of_task.pop(task.id, None)
        if approvals is None:
            return
        loop = self._roster.running.get(task.id)
        # A task that waits to be retried has none that is unbegun: these were withdrawn when it ended.
        unbegun = set() if loop is None else set(approvals).difference(step.id for step in loop.running.journal.steps)
        for approval in approvals.values():
            if approval.state is ApprovalState.PENDING:
                self._waits.forget(decision, self._wait_of(approval))
            elif approval.state is not ApprovalState.APPROVED or approval.id not in unbegun:
                self._part_with(decision, approval)
                continue
            late = task.error is not None and task.error.code in (DeadlineError.code, TaskTimeError.code)
            withdrawn = replace(
                approval,
                state=ApprovalState.EXPIRED if late else ApprovalState.WITHDRAWN,
                decided_at=decision.at,
                decided_by=None,
                reason="" if task.error is None else task.error.message,
            )
            decision.unit.put_approval(withdrawn)
            self._part_with(decision, withdrawn)
            decision.tell(ApprovalWithdrawn.of(withdrawn))

    def task_continued(self, decision: Decision, task: TaskRecord, _: TaskRecord) -> None:
        """All its calls have ended."""
        for approval in self._of_task.pop(task.id, {}).values():
            self._part_with(decision, approval)

    def _in_memory(self, approval_id: str) -> ApprovalRecord | None:
        task_id = approval_id.rpartition(".")[0]
        return self._of_task.get(task_id, {}).get(approval_id) or self._leaving.get(approval_id)

    def _part_with(self, decision: Decision, approval: ApprovalRecord) -> None:
        """Keep it in memory until it is read from the store as it is now."""
        self._leaving.keep(approval.id, approval, until=decision.when_readable)

    def _is_needed(self, task: TaskRecord, step: StepRecord, tool: Tool, call: ToolCall) -> bool:
        listed = self._roster.agents[task.agent_id].record.definition.approve
        if not tool.needs_approval and not listed:
            return False
        return tool.asks_before(step.id, call.arguments, is_listed=is_listed(listed, tool.name))

    def _wait_of(self, approval: ApprovalRecord) -> WaitRecord:
        return self._waits.graph.waits_for(WaitKind.APPROVAL, approval.id)[0]

    def _put(self, decision: Decision, approval: ApprovalRecord) -> None:
        decision.unit.put_approval(approval)
        self._remember(approval)

    def _remember(self, approval: ApprovalRecord) -> None:
        self._of_task.setdefault(approval.task_id, {})[approval.id] = approval

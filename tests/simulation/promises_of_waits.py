"""The promises about calls that wait for a person or for their turn."""

from __future__ import annotations

from collections.abc import Iterable

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.approvals import ApprovalState
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.waits import WaitKind

_DECISIONS = {"approval.approved": "approved", "approval.refused": "refused"}
_OVER = ("withdrawn", "expired")


async def check_waits_now(manager: AsyncAgentSessionManager) -> None:
    """At every moment each wait is one of a task that runs, and what it waits for knows of it."""
    session = manager._session
    waits = session.waits.by_step.values()
    assert all(wait.task_id in session.roster.running for wait in waits), "a wait is left behind by its task"
    turns = {wait.id for wait in waits if wait.kind is WaitKind.RESOURCE}
    assert turns == set(session.turns.lines._waiting), "a line and the waits in it differ"
    asked = {wait.id for wait in waits if wait.kind is WaitKind.APPROVAL}
    pending = {approval.id for approval in await manager.list_approvals(limit=100_000)}
    assert asked == pending, "what people are asked about and the waits for them differ"
    asked = {wait.id for wait in waits if wait.kind is WaitKind.QUESTION}
    assert asked == {each.id for each in await manager.list_questions(limit=100_000)}, "questions and waits differ"


async def check_approvals(manager: AsyncAgentSessionManager, notes: Iterable[Notification], *, always: str) -> None:
    """Each question is decided once, and no call runs without its yes. `always` is the tool that always needs one."""
    state: dict[str, str] = {}
    for note in notes:
        if note.name == "approval.requested":
            assert state.get(note.params["approvalId"]) in (None, "begun", *_OVER), "people are asked twice"
            state[note.params["approvalId"]] = "pending"
        elif note.name in _DECISIONS:
            assert state[note.params["approvalId"]] == "pending", "an approval was decided twice"
            state[note.params["approvalId"]] = _DECISIONS[note.name]
        elif note.name == "approval.withdrawn":
            assert state[note.params["approvalId"]] in ("pending", "approved"), "what was over was withdrawn"
            state[note.params["approvalId"]] = note.params["state"]
        elif note.name == "step.started" and note.params["kind"] == "tool":
            known = state.get(note.params["stepId"])
            assert known not in ("pending", "refused"), f"a call began that was {known}"
            assert known == "approved" or note.params["tool"] != always, "a call ran without its yes"
            if known == "approved":
                state[note.params["stepId"]] = "begun"
    assert "pending" not in state.values(), "nobody decided, and nobody is asked any more"
    stored = {approval.id: approval.state for approval in await manager.list_approvals(state=None, limit=100_000)}
    told = {each: "approved" if known == "begun" else known for each, known in state.items() if each in stored}
    assert told == stored, "what was told of approvals and what is kept differ"
    assert ApprovalState.PENDING not in stored.values()

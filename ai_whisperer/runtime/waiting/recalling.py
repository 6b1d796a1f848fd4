"""Calls with effects outside in a fork: a person decides, or their result is there since its session made them too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msgspec.structs import replace

from ai_whisperer.core.recorded_calls import RecordedCalls
from ai_whisperer.domain.conversation import ToolCall, ToolResult
from ai_whisperer.domain.forks import Effects, Fork
from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notifications.steps import StepStarted
from ai_whisperer.domain.tasks import StepRecord, TaskRecord
from ai_whisperer.domain.waits import WaitRecord
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Roster
from ai_whisperer.runtime.waiting.approvals import Approvals
from ai_whisperer.runtime.waiting.permission import Permission
from ai_whisperer.runtime.waiting.turns import Turns
from ai_whisperer.runtime.waiting.waits import Waits
from ai_whisperer.store.base import Store, Unit
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.registry import INSIDE

_PAGE = 1_000
_ERASED = "log.erased"


class ApprovalsInFork(Approvals):
    """A person is asked about each call, of any agent; if effects are recorded, about each that could do harm twice."""

    def __init__(self, kernel: Kernel, roster: Roster, waits: Waits, turns: Turns, *, effects: Effects) -> None:
        super().__init__(kernel, roster, waits, turns)
        self._asks_always = effects is Effects.ASK

    def _is_needed(self, task: TaskRecord, step: StepRecord, tool: Tool, call: ToolCall) -> bool:
        if self._asks_always and tool.name not in INSIDE:
            return True
        return not tool.may_repeat(call.arguments) or super()._is_needed(task, step, tool, call)


class PermissionInFork(Permission):
    """A call that the session has made too ends before it begins, with what it brought there."""

    def __init__(self, waits: Waits, approvals: Approvals, turns: Turns, recorded: RecordedCalls) -> None:
        super().__init__(waits, approvals, turns)
        self._recorded = recorded

    def admit(
        self, decision: Decision, task: TaskRecord, step: StepRecord, tool: Tool | None
    ) -> WaitRecord | ToolResult | None:
        found = self._recorded.result_of(step)
        if found is None:
            return super().admit(decision, task, step, tool)
        decision.tell(StepStarted.of(task, step))
        self.turns.held_up(task.id)
        return found


class FollowedStore:
    """A `Store` that lets the recorded calls of a fork hear of each entry of its log when it is decided."""

    def __init__(self, store: Store, recorded: RecordedCalls) -> None:
        self._store = store
        self._recorded = recorded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def submit(self, unit: Unit) -> Any:
        _feed(self._recorded, unit.notes)
        return self._store.submit(unit)


async def recorded_calls_of(fork: Fork, store: Store) -> tuple[RecordedCalls, Store]:
    """The calls that a fork does not repeat, and the store to open it with.

    If not all of its log since then is there any more, none: what is told of now may have the path of what was erased.
    """
    recorded, seq = RecordedCalls(fork), fork.since
    while page := await store.notifications(fork.session_id, after=seq, limit=_PAGE):
        for note in page:
            if note.seq != seq + 1 or note.name == _ERASED:
                return RecordedCalls(replace(fork, calls=[])), store
            recorded.feed(note.name, note.cause, note.params)
            seq = note.seq
    return recorded, cast(Store, FollowedStore(store, recorded))


def _feed(recorded: RecordedCalls, notes: Sequence[Note]) -> None:
    for note in notes:
        recorded.feed(note.name, note.cause, note.told.params())

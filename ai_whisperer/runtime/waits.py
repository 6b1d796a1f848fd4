"""Tool calls that wait for something: a reply or a lock. A waiting loop needs no asyncio task, only a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from ai_whisperer.coordination import WaitKind, WaitRecord
from ai_whisperer.core.waiting import WaitGraph
from ai_whisperer.records import TaskRecord, ToolResult
from ai_whisperer.runtime.workspace import Decision, Workspace

Expiry = Callable[[Decision, WaitRecord], None]


class Waits:
    """The waits of one session and the graph that they make. Each ends once: with what it is for, or without."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._waits: dict[str, WaitRecord] = {}
        self._of_task: dict[str, set[str]] = {}
        self._expiry: dict[WaitKind, Expiry] = {}
        self.graph = WaitGraph()

    def on_expiry(self, kind: WaitKind, expire: Expiry) -> None:
        """Have waits of this kind ended by this when their time is over."""
        self._expiry[kind] = expire

    def restore(self, waits: Iterable[WaitRecord]) -> None:
        for wait in waits:
            self._remember(wait)

    def resume(self) -> None:
        """Watch the deadlines again; what is past ends at once."""
        for wait in self._waits.values():
            self._arm(wait)

    def begin(self, decision: Decision, wait: WaitRecord) -> None:
        decision.unit.put_wait(wait)
        self._remember(wait)
        self._arm(wait)

    def is_waiting(self, step_id: str) -> bool:
        return step_id in self._waits

    def of_task(self, task_id: str) -> list[WaitRecord]:
        return [self._waits[wait_id] for wait_id in sorted(self._of_task.get(task_id, ()))]

    def for_reply_to(self, mail_id: str) -> WaitRecord | None:
        """The wait for the reply to this mail, if somebody still waits."""
        return next(iter(self.graph.waits_for(WaitKind.REPLY, mail_id)), None)

    def end(self, decision: Decision, wait: WaitRecord, result: ToolResult) -> None:
        """The call that waited has this result; its loop goes on when that is submitted."""
        self.forget(decision, wait)
        loop = self._workspace.running[wait.task_id]
        loop.running.record_awaited_result(decision, wait.id, result)
        decision.then(loop.take_up)

    def forget(self, decision: Decision, wait: WaitRecord) -> None:
        """The call waits no more; whoever calls this says what becomes of it."""
        decision.unit.delete_wait(wait)
        self._workspace.scheduler.cancel(_key(wait))
        self.graph.remove(wait)
        del self._waits[wait.id]
        waiting = self._of_task[wait.task_id]
        waiting.discard(wait.id)
        if not waiting:
            del self._of_task[wait.task_id]

    def deadline_of(self, task: TaskRecord) -> float | None:
        """When the one who waits for this task loses patience: the task's own waits should not be longer."""
        return self.graph.earliest_deadline(task.id)

    def _remember(self, wait: WaitRecord) -> None:
        self._waits[wait.id] = wait
        self._of_task.setdefault(wait.task_id, set()).add(wait.id)
        self.graph.add(wait)

    def _arm(self, wait: WaitRecord) -> None:
        self._workspace.scheduler.at(wait.deadline_at, _key(wait), partial(self._expire, wait))

    def _expire(self, wait: WaitRecord) -> None:
        decision = self._workspace.decide(f"timer:{_key(wait)}")
        self._expiry[wait.kind](decision, wait)
        decision.submit()


def _key(wait: WaitRecord) -> str:
    return f"wait:{wait.id}"

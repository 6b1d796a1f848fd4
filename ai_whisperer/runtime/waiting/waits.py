"""Tool calls that wait for something. A waiting loop needs no asyncio task.

A call that has begun, and waits for a reply, a lock or a person's answer, has a row and waits on after a restart; so
has one that waits for a person's approval. Another call that has not begun is held back in memory alone: it is asked
for again whenever its loop goes on, after a restart too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

from ai_whisperer.core.budgets import deadline_after, earliest
from ai_whisperer.core.waiting import WaitGraph
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.domain.waits import WaitKind, WaitRecord
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Roster

Expiry = Callable[[Decision, WaitRecord], None]


class Waits:
    """The waits of one session and the graph that they make. Each ends once: with what it is for, or without.

    `by_step` has them by the id of the step whose call waits, in the order in which they began; only this changes it.
    """

    def __init__(self, kernel: Kernel, roster: Roster) -> None:
        self._kernel = kernel
        self._roster = roster
        self.by_step: dict[str, WaitRecord] = {}
        self._expiry: dict[WaitKind, Expiry] = {}
        self.graph = WaitGraph()

    def on_expiry(self, kind: WaitKind, expire: Expiry) -> None:
        """Have waits of this kind ended by this when their time is over."""
        self._expiry[kind] = expire

    def restore(self, waits: Iterable[WaitRecord]) -> None:
        """Bring the waits of the time before back into memory; they come in the order in which they began."""
        for wait in waits:
            self._remember(wait)

    def resume(self) -> None:
        """Watch the deadlines again; what is past ends at once."""
        for wait in self.by_step.values():
            self._arm(wait)

    def begin(self, decision: Decision, wait: WaitRecord) -> None:
        """Let a call wait that has begun, until `end` or its deadline."""
        decision.unit.put_wait(wait)
        self._remember(wait)
        self._arm(wait)

    def hold_back(self, wait: WaitRecord) -> None:
        """Let a call wait that has not begun, until `let_go`; then its loop asks for it again."""
        self._remember(wait)

    def let_go(self, wait: WaitRecord) -> None:
        """A call that was held back waits no more."""
        self.graph.remove(wait)
        del self.by_step[wait.id]

    def all(self) -> list[WaitRecord]:
        """In the order in which they began."""
        return list(self.by_step.values())

    def find(self, step_id: str) -> WaitRecord | None:
        return self.by_step.get(step_id)

    def is_waiting(self, step_id: str) -> bool:
        return step_id in self.by_step

    def of_task(self, task_id: str) -> list[WaitRecord]:
        return self.graph.waits_of(task_id)

    def for_reply_to(self, mail_id: str) -> WaitRecord | None:
        """The wait for the reply to this mail, if somebody still waits."""
        return next(iter(self.graph.waits_for(WaitKind.REPLY, mail_id)), None)

    def end(self, decision: Decision, wait: WaitRecord, result: ToolResult) -> None:
        """The call that waited has this result; its loop goes on when that is submitted."""
        self.forget(decision, wait)
        loop = self._roster.running[wait.task_id]
        loop.running.journal.record_awaited_result(decision, wait.id, result)
        # Not at once: the wait may end while its own loop is still about to rest, and then could not take it up.
        decision.then(lambda: self._kernel.event_loop.call_soon(loop.take_up))

    def forget(self, decision: Decision, wait: WaitRecord) -> None:
        """The call waits no more; whoever calls this says what becomes of it."""
        decision.unit.delete_wait(wait)
        self._kernel.timers.cancel(_key(wait))
        self.let_go(wait)

    def deadline(self, task: TaskRecord, seconds: float | None, *, now: float) -> float:
        """When a wait of the task ends in vain: after so many seconds, or as many as its agent waits by default.

        It is not longer than the task has time, nor than those wait who want an answer from the task.
        """
        limits = self._roster.agents[task.agent_id].limits
        first = self.patience(task, seconds or limits.switch_timeout_seconds, now=now)
        return now if first is None else first

    def patience(self, task: TaskRecord, seconds: float | None, *, now: float) -> float | None:
        """The same for a wait that ends with its task unless a number of seconds is given; None if that has no end."""
        return earliest(deadline_after(seconds, now=now), task.deadline_at, self.graph.earliest_deadline(task.id))

    def _remember(self, wait: WaitRecord) -> None:
        self.by_step[wait.id] = wait
        self.graph.add(wait)

    def _arm(self, wait: WaitRecord) -> None:
        if wait.deadline_at == math.inf:
            return
        self._kernel.timers.at(wait.deadline_at, _key(wait), partial(self._expire, wait))

    def _expire(self, wait: WaitRecord) -> None:
        decision = self._kernel.decide(f"timer:{_key(wait)}")
        self._expiry[wait.kind](decision, wait)
        decision.submit()


def _key(wait: WaitRecord) -> str:
    return f"wait:{wait.id}"

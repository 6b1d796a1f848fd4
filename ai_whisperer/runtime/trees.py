"""What task trees have used of their budgets. A tree is a task and everything that it causes, over all agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from ai_whisperer.conversation import Usage
from ai_whisperer.core.budgets import overdrawn
from ai_whisperer.records import TaskRecord
from ai_whisperer.runtime.workspace import Decision, Workspace


class Trees:
    """The usage of the trees that have a budget and a running task; the others cost nothing.

    A tree is read from the store when its first task begins and forgotten when the end of its last one is durable.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._used: dict[str, dict[str, Usage]] = {}
        self._total: dict[str, Usage] = {}
        self._running: dict[str, int] = {}
        self._cancelling: Counter[str] = Counter()

    @contextmanager
    def cancelling(self, task_ids: Iterable[str]) -> Iterator[None]:
        """While these tasks are cancelled together, none is told of another's end or gets another's mail back."""
        together = Counter(list(task_ids))
        self._cancelling += together
        try:
            yield
        finally:
            self._cancelling -= together

    def is_being_cancelled(self, task_id: str | None) -> bool:
        return task_id in self._cancelling

    def enter(self, task: TaskRecord) -> None:
        """A task begins, or is taken up."""
        if task.budget is not None:
            root_id = task.root_id
            if root_id not in self._used:
                self._used[root_id] = self._read(root_id)
                self._total[root_id] = _sum(self._used[root_id])
            self._running[root_id] = self._running.get(root_id, 0) + 1
            self.count(task)

    def count(self, task: TaskRecord) -> None:
        """The task has used more: its record says how much in all."""
        if task.budget is not None:
            used = self._used[task.root_id]
            before = used.get(task.id)
            used[task.id] = task.usage
            if before is None:
                self._total[task.root_id] += task.usage
            elif before != task.usage:
                self._total[task.root_id] += _difference(task.usage, before)

    def leave(self, decision: Decision, task: TaskRecord) -> None:
        """A task has ended."""
        if task.budget is not None:
            decision.when_durable(lambda: self._left(task.root_id))

    def used(self, task: TaskRecord) -> Usage:
        """What the tree of the task has used so far."""
        total = self._total.get(task.root_id)
        return _sum(self._read(task.root_id)) if total is None else total

    def spent(self, task: TaskRecord) -> str | None:
        """Why the tree of the task may use no more; None if it may."""
        return None if task.budget is None else overdrawn(task.budget, self.used(task))

    def _left(self, root_id: str) -> None:
        self._running[root_id] -= 1
        if not self._running[root_id]:
            del self._running[root_id]
            del self._used[root_id]
            del self._total[root_id]

    def _read(self, root_id: str) -> dict[str, Usage]:
        tasks = self._workspace.store.tasks_of_tree(self._workspace.session_id, root_id)
        return {task.id: task.usage for task in tasks}


def _sum(used: Mapping[str, Usage]) -> Usage:
    return sum(used.values(), Usage())


def _difference(after: Usage, before: Usage) -> Usage:
    """What was used meanwhile of what a budget is for."""
    cost = None if after.cost_usd is None else after.cost_usd - (before.cost_usd or 0.0)
    return Usage(
        input_tokens=after.input_tokens - before.input_tokens,
        output_tokens=after.output_tokens - before.output_tokens,
        cached_tokens=after.cached_tokens - before.cached_tokens,
        cost_usd=cost,
        unpriced_tokens=after.without_price - before.without_price,
    )

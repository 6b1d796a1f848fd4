"""How large task trees are, and what they have used. A tree is a task and all that it causes, over all agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from ai_whisperer.core.budgets import overdrawn
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.errors import TreeSizeError
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.ports import Roster

_MOST_SIZES = 1_000


class Trees:
    """The size of the trees that grew last, and the usage of those that have a budget and a running task.

    What a tree has used is read from the store when its first task begins and forgotten when the end of its last one is
    durable.
    """

    def __init__(self, kernel: Kernel, roster: Roster, reached: ReachedLimits) -> None:
        self._kernel = kernel
        self._roster = roster
        self._reached = reached
        self._used: dict[str, dict[str, Usage]] = {}
        self._total: dict[str, Usage] = {}
        self._running: dict[str, int] = {}
        self._cancelling: Counter[str] = Counter()
        self._sizes: dict[str, tuple[int, float]] = {}
        self._unknown_until = kernel.clock.now()

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

    def check_room(self, decision: Decision, task: TaskRecord) -> None:
        """Raise `TreeSizeError`, and announce it, if the task may cause no other: its tree has as many as it may."""
        most, size = self._roster.agents[task.agent_id].limits.max_tasks_per_tree, self._size(task, now=decision.at)
        if size >= most:
            self._reached.refused(decision, task, "max_tasks_per_tree", used=size)
            raise TreeSizeError(
                f"This work has come to {size:,} tasks and may come to {most:,} (max_tasks_per_tree); nothing "
                "was done. Answer with what is there, and say what is missing."
            )

    def added(self, task: TaskRecord) -> None:
        """There is a task more. The size of a tree of which nothing is known is counted when it is asked for."""
        known = self._sizes.get(task.root_id)
        if known is not None and task.root_id != task.id:
            size, since = known
            self._sizes[task.root_id] = (size + 1, since)

    def _size(self, task: TaskRecord, *, now: float) -> int:
        """How many tasks the tree has. One that may have grown unseen, or was forgotten, is counted in the store.

        A root that is newer than all that were forgotten has caused nothing yet, if it is not known.
        """
        known = self._sizes.get(task.root_id)
        if known is not None:
            return known[0]
        is_new = task.root_id == task.id and task.created_at > self._unknown_until  # a retried one starts again
        size = 1 if is_new else self._kernel.store.size_of_tree(self._kernel.session_id, task.root_id)
        self._sizes[task.root_id] = (size, now)
        if len(self._sizes) > _MOST_SIZES:
            _, self._unknown_until = self._sizes.pop(next(iter(self._sizes)))
        return size

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
        tasks = self._kernel.store.tasks_of_tree(self._kernel.session_id, root_id)
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

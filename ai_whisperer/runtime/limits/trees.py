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
from ai_whisperer.runtime.session.roles import Roster

_MOST_SIZES = 1_000


class Trees:
    """The size of the trees that grew last, and the usage of those that have a budget and a running task.

    What memory does not know of the tree of a task is looked up before it is needed: see `unknown`. What a tree has
    used is kept until the end of its last running task can be read.
    """

    def __init__(self, kernel: Kernel, roster: Roster, reached: ReachedLimits) -> None:
        self._kernel = kernel
        self._roster = roster
        self._reached = reached
        self._used: dict[str, dict[str, Usage]] = {}
        self._total: dict[str, Usage] = {}
        self._partly_known: set[str] = set()
        self._running: dict[str, int] = {}
        self._cancelling: Counter[str] = Counter()
        self._sizes: dict[str, tuple[int, float]] = {}
        self._growing: dict[str, set[str]] = {}
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
        most = self._roster.agents[task.agent_id].limits.max_tasks_per_tree
        size, _ = self._sizes.get(task.root_id) or self._sized(task, 1, now=decision.at)
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
        elif task.root_id in self._growing:
            self._growing[task.root_id].add(task.id)

    def unknown(self, task: TaskRecord, *, to_grow: bool = False) -> bool:
        """Whether something of the tree has to be looked up before the task goes on, or causes another."""
        if task.root_id in self._partly_known:
            return True
        return to_grow and task.root_id not in self._sizes and not self._is_new(task)

    async def look_up_unknown(self, task: TaskRecord, *, to_grow: bool = False) -> None:
        """Look up what is unknown of the tree."""
        root_id = task.root_id
        if root_id in self._partly_known:
            self.know(root_id, await self._kernel.reads.tasks_of_tree(root_id))
        if to_grow and self.unknown(task, to_grow=True):
            meanwhile = self._growing.setdefault(root_id, set())
            try:
                ids = await self._kernel.reads.ids_of_tree(root_id)
            finally:
                is_first = self._growing.pop(root_id, None) is not None
            if is_first:
                self._sized(task, 1 + len(meanwhile.union(ids)), now=self._kernel.clock.now())

    def know(self, root_id: str, tasks: Iterable[TaskRecord]) -> None:
        """These are the tasks of the tree, as they were read; memory knows better about those that run."""
        if root_id in self._partly_known:
            self._partly_known.discard(root_id)
            self._used[root_id] = {each.id: each.usage for each in tasks} | self._used[root_id]
            self._total[root_id] = _sum(self._used[root_id])

    async def usage_of(self, task: TaskRecord) -> Usage:
        """What the tree of the task has used so far, whether a task of it runs or not."""
        await self.look_up_unknown(task)
        if task.root_id not in self._used:
            tasks = await self._kernel.reads.tasks_of_tree(task.root_id)
            if task.root_id not in self._used:
                return _sum({each.id: each.usage for each in tasks})
        return self.used(task)

    def _is_new(self, task: TaskRecord) -> bool:
        """Whether the task has caused nothing yet: a root that is newer than all whose sizes were forgotten."""
        return task.root_id == task.id and task.created_at > self._unknown_until  # a retried one starts again

    def _sized(self, task: TaskRecord, size: int, *, now: float) -> tuple[int, float]:
        self._sizes[task.root_id] = sized = (size, now)
        if len(self._sizes) > _MOST_SIZES:
            _, self._unknown_until = self._sizes.pop(next(iter(self._sizes)))
        return sized

    def enter(self, task: TaskRecord, *, has_begun: bool) -> None:
        """A task begins, or is taken up if it has begun before."""
        if task.origin is not None and task.budget is not None:
            root_id = task.root_id
            if root_id not in self._used:
                self._used[root_id] = {}
                self._total[root_id] = Usage()
                if has_begun or task.root_id != task.id:
                    self._partly_known.add(root_id)
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
        if task.origin is not None and task.budget is not None:
            decision.when_readable(lambda: self._left(task.root_id))

    def used(self, task: TaskRecord) -> Usage:
        """What the tree of a task that runs has used so far; of one that does not, the task alone."""
        return self._total.get(task.root_id, task.usage)

    def spent(self, task: TaskRecord) -> str | None:
        """Why the tree of the task may use no more; None if it may."""
        return None if task.budget is None else overdrawn(task.budget, self.used(task))

    def _left(self, root_id: str) -> None:
        self._running[root_id] -= 1
        if not self._running[root_id]:
            del self._running[root_id]
            del self._used[root_id]
            del self._total[root_id]
            self._partly_known.discard(root_id)


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

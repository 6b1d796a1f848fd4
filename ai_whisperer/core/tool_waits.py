"""Tool calls whose own code waits for the end of a task, and the circles that come of it.

A call that touches things waits while it holds nothing, so turns alone make no circle, and a task in a queue keeps
nobody waiting. But the code of a tool may wait for a task of another agent. From then on all waits belong together: the
task may be in a queue behind another, which waits for a lock, whose holder waits for what the call touches. A wait is
refused if whoever it is for cannot go on before the one that wants to wait has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from enum import Enum, auto
from typing import NamedTuple

from ai_whisperer.core.resources import ResourceLines, ResourceRequest
from ai_whisperer.core.waiting import WaitGraph

QueuedBehind = Callable[[str], list[list[str]]]
"""The tasks that keep this one in its queue: of each of these lists one must end before it begins."""


class _Kind(Enum):
    TASK = auto()
    CALL = auto()


class _Node(NamedTuple):
    """A task, or one of its calls: whoever waits for its turn waits for a call, not for all that its task does."""

    kind: _Kind
    id: str


_Needs = list[list[_Node]]
"""What a node waits for: one of each list."""


class ToolWaits:
    """The calls of one session that wait for tasks, and who waits for whom if there are any."""

    def __init__(self, lines: ResourceLines, graph: WaitGraph, queued_behind: QueuedBehind) -> None:
        self._lines = lines
        self._graph = graph
        self._queued_behind = queued_behind
        self._awaited: dict[str, list[str]] = {}
        self._calls: dict[str, dict[str, None]] = {}
        self._tasks: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._awaited)

    def begin(self, call_id: str, of_task: str, *, task_id: str) -> None:
        """The call of that task waits for the end of a task until `end`."""
        self._awaited.setdefault(call_id, []).append(task_id)
        self._calls.setdefault(of_task, {})[call_id] = None
        self._tasks[call_id] = of_task

    def end(self, call_id: str, task_id: str) -> None:
        awaited = self._awaited[call_id]
        awaited.remove(task_id)
        if not awaited:
            del self._awaited[call_id]
            of_task = self._tasks.pop(call_id)
            del self._calls[of_task][call_id]
            if not self._calls[of_task]:
                del self._calls[of_task]

    def circle_of_call(self, call_id: str, of_task: str, *, task_id: str) -> list[str] | None:
        """The tasks on the circle that closes if this call waits for the end of that task; None if there is none."""
        return self._circle(of_task, call_id, [_Node(_Kind.TASK, task_id)])

    def circle_of_turn(self, request: ResourceRequest) -> list[str] | None:
        """The tasks on the circle that closes if this call waits for its turn; None if there is none."""
        holders = [_Node(_Kind.CALL, holder.id) for holder in self._lines.holders_before(request)]
        return self._circle(request.task_id, request.id, holders)

    def circle_of_lock(self, task_id: str, lock: str) -> list[str] | None:
        """The tasks on the circle that closes if this task waits for that lock; None if there is none."""
        ahead = self._graph.ahead(task_id, lock)
        return self._circle(task_id, None, [] if ahead is None else [_Node(_Kind.TASK, ahead)])

    def circle_of_switch(self, task_id: str, of_recipient: Iterable[str]) -> list[str] | None:
        """The tasks on the circle that closes if this task asks one whose tasks are these; None if there is none.

        The answer would come from a loop of its own. But see `WaitGraph.circle_of_switch`.
        """
        return self._circle(task_id, None, [_Node(_Kind.TASK, each) for each in of_recipient])

    def _circle(self, task_id: str, call_id: str | None, wanted: Iterable[_Node]) -> list[str] | None:
        blocked = {_Node(_Kind.TASK, task_id)}
        tasks = dict(self._tasks)
        if call_id is not None:
            blocked.add(_Node(_Kind.CALL, call_id))
            tasks[call_id] = task_id
        for each in wanted:
            path = self._path(each, blocked)
            if path is not None:
                return [task_id, *(self._task_of(node, tasks) for node in path)]
        return None

    def _path(self, start: _Node, blocked: Collection[_Node]) -> list[_Node] | None:
        """The shortest way over which this one waits for one of those that do not go on; None if it does not."""
        stuck = self._stuck(start, blocked)
        reached = {start}
        paths = deque([[start]] if start in stuck else [])
        while paths:
            path = paths.popleft()
            if path[-1] in blocked:
                return path
            for any_of in self._needs(path[-1]):
                if stuck.issuperset(any_of):
                    paths.extend([*path, each] for each in any_of if each not in reached)
                    reached.update(any_of)
        return None

    def _stuck(self, start: _Node, blocked: Collection[_Node]) -> set[_Node]:
        """Those among the ones that this one waits for, over any number of others, that will never go on."""
        needs: dict[_Node, _Needs] = {}
        left = [start]
        while left:
            node = left.pop()
            if node not in needs:
                needs[node] = [] if node in blocked else self._needs(node)
                left.extend(each for any_of in needs[node] for each in any_of)
        stuck = set(needs)
        before = 0
        while len(stuck) != before:
            before = len(stuck)
            for node in reversed(needs):  # whoever is waited for comes first, mostly
                if node not in blocked and not any(map(stuck.issuperset, needs[node])):
                    stuck.discard(node)
        return stuck

    def _needs(self, node: _Node) -> _Needs:
        if node.kind is _Kind.TASK:
            tasks = [[each] for each in (*self._graph.answering(node.id), *self._graph.ahead_of(node.id))]
            calls = [each.id for each in self._lines.waiting_of(node.id)] + list(self._calls.get(node.id, ()))
            any_of_tasks = tasks + self._queued_behind(node.id)
        else:
            request = self._lines.waiting(node.id)
            calls = [] if request is None else [each.id for each in self._lines.holders_before(request)]
            any_of_tasks = [[each] for each in self._awaited.get(node.id, ())]
        return [
            *([_Node(_Kind.TASK, each) for each in any_of] for any_of in any_of_tasks),
            *([_Node(_Kind.CALL, each)] for each in calls),
        ]

    def _task_of(self, node: _Node, tasks: dict[str, str]) -> str:
        if node.kind is _Kind.TASK:
            return node.id
        request = self._lines.waiting(node.id) or self._lines.held(node.id)
        return tasks[node.id] if request is None else request.task_id

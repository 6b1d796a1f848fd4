"""Tool calls whose own code waits for the end of a task, and the circles that come of it.

A call that touches things waits while it holds nothing, so turns alone make no circle. But the code of a tool may wait
for a task of another agent while the call holds what it touches. If that task comes to wait for the very same thing,
nobody would ever go on.
"""

from __future__ import annotations

from collections.abc import Iterator

from ai_whisperer.core.resources import ResourceLines, ResourceRequest
from ai_whisperer.core.waiting import WaitGraph


class ToolWaits:
    """The calls of one session that hold something and wait for tasks."""

    def __init__(self, lines: ResourceLines, graph: WaitGraph) -> None:
        self._lines = lines
        self._graph = graph
        self._awaited: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._awaited)

    def begin(self, call_id: str, task_id: str) -> None:
        """The call waits for the end of the task until `end`."""
        self._awaited.setdefault(call_id, []).append(task_id)

    def end(self, call_id: str, task_id: str) -> None:
        awaited = self._awaited[call_id]
        awaited.remove(task_id)
        if not awaited:
            del self._awaited[call_id]

    def circle_of_call(self, call: ResourceRequest, task_id: str) -> list[str] | None:
        """The tasks on the circle that closes if this call waits for the end of that task; None if there is none."""
        path = self._path(task_id, to_task=call.task_id, to_call=call.id)
        return None if path is None else [call.task_id, *path]

    def circle_of_turn(self, request: ResourceRequest) -> list[str] | None:
        """The tasks on the circle that closes if this call waits for its turn; None if there is none."""
        for holder in self._lines.holders_before(request):
            for awaited in self._awaited.get(holder.id, ()):
                path = self._path(awaited, to_task=request.task_id, to_call=None)
                if path is not None:
                    return [request.task_id, holder.task_id, *path]
        return None

    def _path(self, task_id: str, *, to_task: str, to_call: str | None) -> list[str] | None:
        """The tasks over which this one waits for that task or call."""
        seen = {task_id}
        paths = [[task_id]]
        while paths:
            path = paths.pop()
            if path[-1] == to_task:
                return path
            for call_id, reached in self._waited_for_by(path[-1]):
                if call_id is not None and call_id == to_call:
                    return [*path, to_task]
                if reached is not None and reached not in seen:
                    seen.add(reached)
                    paths.append([*path, reached])
        return None

    def _waited_for_by(self, task_id: str) -> Iterator[tuple[str | None, str | None]]:
        """What must end before this task does: calls that hold what it wants, and tasks."""
        for request in self._lines.waiting_of(task_id):
            for holder in self._lines.holders_before(request):
                yield holder.id, None
                yield from ((None, awaited) for awaited in self._awaited.get(holder.id, ()))
        for held in self._lines.held_by(task_id):
            yield from ((None, awaited) for awaited in self._awaited.get(held.id, ()))
        yield from ((None, answering) for answering in self._graph.answering(task_id))

"""Who waits for whom: the graph of waits, and the circles that would never end.

A task waits for the reply to a mail, and so for the task that answers it; or for a lock, and so for the task that holds
it and for those that asked for it before. A wait is refused if whoever it is for already waits, over any number of
others, for the task that wants to wait.

That is the only moment at which a circle can close. A lock that changes hands goes to the first that waits for it, and
those behind have waited for that one from the beginning; a task that begins to answer, or goes on with another, waits
for nobody yet.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

from ai_whisperer.domain.waits import WaitKind, WaitRecord


class WaitGraph:
    """The waits of one session. They are added in the order in which they began."""

    def __init__(self) -> None:
        self._by_target: dict[tuple[WaitKind, str], dict[str, WaitRecord]] = {}
        self._by_task: dict[str, dict[str, WaitRecord]] = {}
        self._answers: dict[str, str] = {}
        self._holds: dict[str, set[str]] = {}
        self._holders: dict[str, str] = {}

    def add(self, wait: WaitRecord) -> None:
        self._by_target.setdefault((wait.kind, wait.target), {})[wait.id] = wait
        self._by_task.setdefault(wait.task_id, {})[wait.id] = wait

    def remove(self, wait: WaitRecord) -> None:
        by_target = self._by_target[wait.kind, wait.target]
        del by_target[wait.id]
        if not by_target:
            del self._by_target[wait.kind, wait.target]
        by_task = self._by_task[wait.task_id]
        del by_task[wait.id]
        if not by_task:
            del self._by_task[wait.task_id]

    def waits_for(self, kind: WaitKind, target: str) -> list[WaitRecord]:
        """The waits for a mail or a lock, in the order in which they began."""
        return list(self._by_target.get((kind, target), {}).values())

    def waits_of(self, task_id: str) -> list[WaitRecord]:
        """The waits of a task, in the order in which they began."""
        return list(self._by_task.get(task_id, {}).values())

    def answers(self, task_id: str, mail_id: str) -> None:
        """The task answers the mail: whoever waits for the reply waits for it."""
        self._answers[task_id] = mail_id

    def answering(self, task_id: str) -> list[str]:
        """The tasks that answer the questions of a task."""
        asked = {wait.target for wait in self.waits_of(task_id) if wait.kind is WaitKind.REPLY}
        return [answering for answering, mail_id in self._answers.items() if mail_id in asked] if asked else []

    def answers_no_more(self, task_id: str) -> None:
        self._answers.pop(task_id, None)

    def holds(self, task_id: str, lock: str) -> None:
        """The task holds the lock: whoever waits for the lock waits for it."""
        self._holds.setdefault(task_id, set()).add(lock)
        self._holders[lock] = task_id

    def frees(self, task_id: str, lock: str) -> None:
        if self._holders.get(lock) == task_id:
            del self._holders[lock]
        held = self._holds.get(task_id)
        if held is not None:
            held.discard(lock)
            if not held:
                del self._holds[task_id]

    def held_by(self, task_id: str) -> list[str]:
        """The locks that the task holds."""
        return sorted(self._holds.get(task_id, ()))

    def ahead(self, task_id: str, lock: str, *, before: float = math.inf) -> str | None:
        """The task that has the lock right before this one would, if it asked now or at that place in the order."""
        for wait in reversed(self.waits_for(WaitKind.LOCK, lock)):
            if wait.arrival < before and wait.task_id != task_id:
                return wait.task_id
        return self._holders.get(lock)

    def ahead_of(self, task_id: str) -> list[str]:
        """The tasks that have the locks that this one waits for right before it."""
        locks = (wait for wait in self.waits_of(task_id) if wait.kind is WaitKind.LOCK)
        found = (self.ahead(task_id, wait.target, before=wait.arrival) for wait in locks)
        return [each for each in found if each is not None]

    def depth(self, task_id: str) -> int:
        """How many questions in a row end in this task: it answers one who was asked by one who was asked by …"""
        return sum(1 for _ in self._questions_above(task_id))

    def earliest_deadline(self, task_id: str) -> float | None:
        """When the first of those whose questions end in this task loses patience; None if it answers none."""
        return min((wait.deadline_at for wait in self._questions_above(task_id)), default=None)

    def circle_of_switch(self, agent_id: str, task_id: str, recipient: str) -> list[str] | None:
        """The circle that closes if this task of this agent waits for that recipient; None if there is none.

        The recipient would answer in a loop of its own. But it already waits, with another one, for what this task
        does, and to ask back and forth within one question has no end.
        """
        for path in self._paths_to(task_id):
            if path[0].agent_id == recipient:
                return _circle(agent_id, path)
        return None

    def circle_of_lock(self, agent_id: str, task_id: str, lock: str) -> list[str] | None:
        """The circle that closes if this task of this agent waits for that lock; None if there is none."""
        for path in self._paths_to(task_id):
            if self._comes_first(path[0].task_id, lock):
                return _circle(agent_id, path)
        return None

    def _comes_first(self, task_id: str, lock: str) -> bool:
        """Whether the task holds the lock or waits for it, so that whoever asks for it now comes after."""
        if lock in self._holds.get(task_id, ()):
            return True
        waits = self._by_task.get(task_id, {}).values()
        return any(wait.kind is WaitKind.LOCK and wait.target == lock for wait in waits)

    def _questions_above(self, task_id: str) -> Iterator[WaitRecord]:
        """The wait for the answer of this task, the wait for the answer of the task that waits so, and so on up."""
        while True:
            mail_id = self._answers.get(task_id)
            waits = {} if mail_id is None else self._by_target.get((WaitKind.REPLY, mail_id), {})
            wait = next(iter(waits.values()), None)
            if wait is None:
                return
            yield wait
            task_id = wait.task_id

    def _paths_to(self, task_id: str) -> Iterator[list[WaitRecord]]:
        """Every other task that waits for this one, as the waits that lead from it to this one, the shortest first."""
        seen = {task_id}
        reached: deque[tuple[str, list[WaitRecord]]] = deque([(task_id, [])])
        while reached:
            waited_for, path = reached.popleft()
            for wait in self._waiting_for(waited_for):
                if wait.task_id not in seen:
                    seen.add(wait.task_id)
                    longer = [wait, *path]
                    yield longer
                    reached.append((wait.task_id, longer))

    def _waiting_for(self, task_id: str) -> Iterator[WaitRecord]:
        """The waits that cannot end before this task has gone on."""
        mail_id = self._answers.get(task_id)
        if mail_id is not None:
            yield from self._by_target.get((WaitKind.REPLY, mail_id), {}).values()
        for lock in sorted(self._holds.get(task_id, ())):
            yield from self._by_target.get((WaitKind.LOCK, lock), {}).values()
        for own in self._by_task.get(task_id, {}).values():
            if own.kind is WaitKind.LOCK:
                behind = self._by_target[own.kind, own.target].values()
                yield from (wait for wait in behind if wait.arrival > own.arrival)


def _circle(agent_id: str, path: list[WaitRecord]) -> list[str]:
    """The agents on the circle that a path of waits to this agent makes when the agent waits for its beginning."""
    return [agent_id, *(wait.agent_id for wait in path), agent_id]

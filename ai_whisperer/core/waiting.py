"""Who waits for whom: the graph of waits, and the circles that would never end.

A task waits for the reply to a mail, and so for the task that answers it; or for a lock, and so for the task that holds
it. A wait is refused if whoever it is for already waits, over any number of others, for the task that wants to wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ai_whisperer.coordination import WaitKind, WaitRecord


class WaitGraph:
    """The waits of one session."""

    def __init__(self) -> None:
        self._by_target: dict[tuple[WaitKind, str], dict[str, WaitRecord]] = {}
        self._answers: dict[str, str] = {}
        self._holds: dict[str, set[str]] = {}

    def add(self, wait: WaitRecord) -> None:
        self._by_target.setdefault((wait.kind, wait.target), {})[wait.id] = wait

    def remove(self, wait: WaitRecord) -> None:
        waits = self._by_target.get((wait.kind, wait.target), {})
        waits.pop(wait.id, None)
        if not waits:
            self._by_target.pop((wait.kind, wait.target), None)

    def waits_for(self, kind: WaitKind, target: str) -> list[WaitRecord]:
        """The waits for a mail or a lock, in the order in which they began."""
        return sorted(self._by_target.get((kind, target), {}).values(), key=lambda wait: wait.arrival)

    def answers(self, task_id: str, mail_id: str) -> None:
        """The task answers the mail: whoever waits for the reply waits for it."""
        self._answers[task_id] = mail_id

    def answers_no_more(self, task_id: str) -> None:
        self._answers.pop(task_id, None)

    def holds(self, task_id: str, lock: str) -> None:
        """The task holds the lock: whoever waits for the lock waits for it."""
        self._holds.setdefault(task_id, set()).add(lock)

    def frees(self, task_id: str, lock: str) -> None:
        held = self._holds.get(task_id)
        if held is not None:
            held.discard(lock)
            if not held:
                del self._holds[task_id]

    def held_by(self, task_id: str) -> list[str]:
        """The locks that the task holds."""
        return sorted(self._holds.get(task_id, ()))

    def depth(self, task_id: str) -> int:
        """How many waits in a row end in this task."""
        return max((len(path) for path in self._paths_to(task_id)), default=0)

    def earliest_deadline(self, task_id: str) -> float | None:
        """The first deadline of those who wait for this task, directly or over others."""
        return min((path[0].deadline_at for path in self._paths_to(task_id)), default=None)

    def circle_of_switch(self, agent_id: str, task_id: str, recipient: str) -> list[str] | None:
        """The circle that closes if this task of this agent waits for that recipient; None if there is none.

        The recipient would answer in a loop of its own. But it already waits, with another one, for what this task
        does, and to ask back and forth within one question has no end.
        """
        for path in self._paths_to(task_id):
            if path[0].agent_id == recipient:
                return [agent_id, recipient, *_agents_after(path, agent_id)]
        return None

    def circle_of_lock(self, agent_id: str, task_id: str, holder: tuple[str, str]) -> list[str] | None:
        """The circle that closes if this task waits for a lock that the task `holder` (agent, task) holds."""
        holder_agent, holder_task = holder
        if holder_task == task_id:
            return [agent_id, agent_id]
        for path in self._paths_to(task_id):
            if path[0].task_id == holder_task:
                return [agent_id, holder_agent, *_agents_after(path, agent_id)]
        return None

    def _paths_to(self, task_id: str) -> Iterator[list[WaitRecord]]:
        """Every task that waits for this one, as the waits that lead from it to this one, the shortest first."""
        seen = {task_id}
        paths: deque[list[WaitRecord]] = deque([wait] for wait in self._waiting_for(task_id))
        while paths:
            path = paths.popleft()
            waiter = path[0].task_id
            if waiter in seen:
                continue
            seen.add(waiter)
            yield path
            paths.extend([wait, *path] for wait in self._waiting_for(waiter))

    def _waiting_for(self, task_id: str) -> Iterator[WaitRecord]:
        """The waits that end when this task does what it is asked for."""
        mail_id = self._answers.get(task_id)
        if mail_id is not None:
            yield from self._by_target.get((WaitKind.REPLY, mail_id), {}).values()
        for lock in sorted(self._holds.get(task_id, ())):
            yield from self._by_target.get((WaitKind.LOCK, lock), {}).values()


def _agents_after(path: list[WaitRecord], agent_id: str) -> list[str]:
    """The agents on a path of waits behind its first one, up to the agent at its end."""
    return [*(wait.agent_id for wait in path[1:]), agent_id]

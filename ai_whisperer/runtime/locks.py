"""Named locks that tasks hold for a while: leases with an end, given in the order in which they were asked for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from msgspec.structs import replace

from ai_whisperer.conversation import ToolResult
from ai_whisperer.coordination import LockRecord, WaitKind, WaitRecord
from ai_whisperer.core.locking import check_lock, in_words
from ai_whisperer.errors import LockNotHeldError, WaitCycleError
from ai_whisperer.records import StepRecord, TaskRecord
from ai_whisperer.runtime.workspace import Decision, Workspace


class Locks:
    """The locks of one session. A lock is held by one task until it is released, its lease is over or the task ends.

    A free lock has nobody who waits for it, and is forgotten. `token` rises each time any lock of the session changes
    hands, so that a write by a holder of the past can be told from others; the last one is kept under an empty name.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._locks: dict[str, LockRecord] = {}
        self._last_token = 0
        workspace.waits.on_expiry(WaitKind.LOCK, self._give_up)

    def restore(self, locks: Iterable[LockRecord]) -> None:
        for lock in locks:
            self._last_token = max(self._last_token, lock.token)
            if lock.task_id is not None:
                self._locks[lock.name] = lock
                self._workspace.waits.graph.holds(lock.task_id, lock.name)

    def resume(self) -> None:
        """Watch the leases again; those that are over end at once."""
        for lock in self._locks.values():
            self._arm(lock)

    def held(self) -> list[LockRecord]:
        """The locks that somebody holds, by name."""
        return sorted(self._locks.values(), key=lambda lock: lock.name)

    def acquire(
        self,
        decision: Decision,
        task: TaskRecord,
        step: StepRecord,
        *,
        name: str,
        ttl_seconds: float,
        wait_seconds: float | None,
    ) -> LockRecord | WaitRecord:
        """Take the lock, or let the step wait for it. Raises, having changed nothing, if the wait would never end.

        A task that holds the lock already has its lease renewed.
        """
        check_lock(name, ttl_seconds)
        deadline_at = self._workspace.waits.deadline(task, wait_seconds, now=decision.at)
        lock = self._locks.get(name) or LockRecord(session_id=self._workspace.session_id, name=name, token=0)
        if lock.task_id in (None, task.id):
            return self._give(decision, lock, task.agent_id, task.id, ttl_seconds)
        circle = self._workspace.waits.graph.circle_of_lock(task.agent_id, task.id, name)
        if circle is not None:
            raise WaitCycleError(
                f"You cannot wait for lock '{name}': {circle[1]} has it or gets it before you, and waits for you "
                f"({' → '.join(circle)}), so that nobody would ever go on. Nothing was changed. Release what you hold, "
                "or go on without it."
            )
        wait = WaitRecord(
            session_id=self._workspace.session_id,
            id=step.id,
            kind=WaitKind.LOCK,
            agent_id=task.agent_id,
            task_id=task.id,
            target=name,
            target_agent=lock.agent_id or "",
            arrival=self._workspace.next_arrival(),
            deadline_at=deadline_at,
            ttl_seconds=ttl_seconds,
            created_at=decision.at,
        )
        self._workspace.waits.begin(decision, wait)
        decision.tell("lock.waiting", {**_wait_told(wait), "holder": lock.agent_id, "deadlineAt": deadline_at})
        return wait

    def release(self, decision: Decision, task: TaskRecord, name: str) -> None:
        """Give the lock to the first that waits, if any; raises `LockNotHeldError` if the task does not hold it."""
        lock = self._locks.get(name)
        if lock is None or lock.task_id != task.id:
            held = ", ".join(self._workspace.waits.graph.held_by(task.id)) or "none"
            raise LockNotHeldError(
                f"This task does not hold lock '{name}': it never did, or the lease is over. It holds: {held}."
            )
        self._free(decision, lock, "lock.released")

    def release_all(self, decision: Decision, task: TaskRecord) -> None:
        """The task has ended, or will not go on for now: what it holds is free."""
        for name in self._workspace.waits.graph.held_by(task.id):
            self._free(decision, self._locks[name], "lock.released")

    def task_continued(self, decision: Decision, task: TaskRecord, following: TaskRecord) -> None:
        """What the task holds goes over to the one that goes on with it."""
        graph = self._workspace.waits.graph
        for name in graph.held_by(task.id):
            graph.frees(task.id, name)
            graph.holds(following.id, name)
            self._put(decision, replace(self._locks[name], task_id=following.id))

    def abandon(self, decision: Decision, wait: WaitRecord) -> None:
        """The task that waits has ended."""
        decision.tell("lock.wait_ended", {**_wait_told(wait), "outcome": "abandoned"})
        self._workspace.waits.forget(decision, wait)

    def _give(
        self, decision: Decision, lock: LockRecord, agent_id: str, task_id: str, ttl_seconds: float
    ) -> LockRecord:
        renewed = lock.task_id == task_id
        if not renewed:
            self._last_token += 1
        given = replace(
            lock,
            token=lock.token if renewed else self._last_token,
            agent_id=agent_id,
            task_id=task_id,
            acquired_at=lock.acquired_at if renewed else decision.at,
            expires_at=decision.at + ttl_seconds,
        )
        self._workspace.waits.graph.holds(task_id, given.name)
        self._put(decision, given)
        decision.tell("lock.renewed" if renewed else "lock.acquired", {**_told(given), "expiresAt": given.expires_at})
        return given

    def _free(self, decision: Decision, lock: LockRecord, told: str) -> None:
        """Take the lock from its holder and give it to the first that waits."""
        waits = self._workspace.waits
        waits.graph.frees(lock.task_id or "", lock.name)
        decision.tell(told, _told(lock))
        free = replace(lock, agent_id=None, task_id=None, acquired_at=None, expires_at=None)
        waiting = waits.graph.waits_for(WaitKind.LOCK, lock.name)
        if not waiting:
            self._forget(decision, free)
            return
        given = free
        for wait in waiting:
            if wait.task_id == waiting[0].task_id:  # it may have asked more than once: then the last renews the first
                given = self._give(decision, given, wait.agent_id, wait.task_id, wait.ttl_seconds or 1.0)
                self._end(decision, wait, "acquired", ToolResult(content=in_words(given, wait.ttl_seconds or 1.0)))

    def _forget(self, decision: Decision, lock: LockRecord) -> None:
        del self._locks[lock.name]
        self._workspace.scheduler.cancel(f"lock:{lock.name}")
        decision.unit.delete_lock(lock)
        decision.unit.put_lock(LockRecord(session_id=lock.session_id, name="", token=self._last_token))

    def _put(self, decision: Decision, lock: LockRecord) -> None:
        decision.unit.put_lock(lock)
        self._locks[lock.name] = lock
        self._arm(lock)

    def _arm(self, lock: LockRecord) -> None:
        if lock.expires_at is None:
            self._workspace.scheduler.cancel(f"lock:{lock.name}")
        else:
            self._workspace.scheduler.at(lock.expires_at, f"lock:{lock.name}", partial(self._lease_is_over, lock.name))

    def _lease_is_over(self, name: str) -> None:
        decision = self._workspace.decide(f"timer:lock:{name}")
        self._free(decision, self._locks[name], "lock.expired")
        decision.submit()

    def _give_up(self, decision: Decision, wait: WaitRecord) -> None:
        holder = self._locks[wait.target].agent_id
        seconds = round(decision.at - wait.created_at)
        told = f"Timeout: after {seconds} seconds lock '{wait.target}' is still held by {holder}. You no longer wait."
        self._end(decision, wait, "timed_out", ToolResult(content=told, is_error=True))

    def _end(self, decision: Decision, wait: WaitRecord, outcome: str, result: ToolResult) -> None:
        decision.tell("lock.wait_ended", {**_wait_told(wait), "outcome": outcome})
        self._workspace.waits.end(decision, wait, result)


def _told(lock: LockRecord) -> dict[str, object]:
    return {
        "name": lock.name,
        "agentId": lock.agent_id,
        "taskId": lock.task_id,
        "holder": lock.agent_id,
        "token": lock.token,
    }


def _wait_told(wait: WaitRecord) -> dict[str, object]:
    return {"name": wait.target, "agentId": wait.agent_id, "taskId": wait.task_id, "stepId": wait.id}

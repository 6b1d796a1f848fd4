"""Loops that crash are begun again after a while; an agent that fails too often is stopped."""

from __future__ import annotations

from collections import deque

from ai_whisperer.core.supervising import FAULTS, restart_delay, too_many
from ai_whisperer.definition import Supervision
from ai_whisperer.records import TaskRecord
from ai_whisperer.runtime.workspace import Decision, Workspace


class Supervisor:
    """Watches the failures of all agents of a session. One agent's failures never count against another."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._failures: dict[str, deque[float]] = {}

    def restore(self) -> None:
        """Count the failures of the time before as well: a restart of the process is no fresh start, one of it is."""
        agents = self._workspace.agents
        windows = [agent.record.definition.supervision.window_seconds for agent in agents.values()]
        since = self._workspace.clock.now() - max(windows, default=0.0)
        for agent_id, code, at in self._workspace.store.failures_since(self._workspace.session_id, since):
            if code in FAULTS and agent_id in agents and at > (agents[agent_id].record.started_at or 0.0):
                self._failures.setdefault(agent_id, deque()).append(at)

    def resume(self) -> None:
        """Stop those that were to be stopped when the process died."""
        for agent_id, failures in list(self._failures.items()):
            agent = self._workspace.agents[agent_id]
            policy = agent.record.definition.supervision
            if agent.record.started and too_many(policy, failures, now=self._workspace.clock.now()):
                failures.clear()
                agent.stop_soon("recovery", _reason(policy, "see the dead letters."))

    def delay_before_restart(self, task: TaskRecord) -> float | None:
        """How long to wait until a loop that crashed begins again; None if it should not."""
        policy = self._workspace.agents[task.agent_id].record.definition.supervision
        return restart_delay(policy, restarts=task.restarts, chance=self._workspace.random.random)

    def task_failed(self, decision: Decision, task: TaskRecord) -> None:
        """A task has failed for good: stop its agent if there were too many."""
        if task.error is None or task.error.code not in FAULTS:
            return
        agent = self._workspace.agents[task.agent_id]
        policy = agent.record.definition.supervision
        failures = self._failures.setdefault(task.agent_id, deque())
        failures.append(decision.at)
        if not too_many(policy, failures, now=decision.at):
            return
        failures.clear()
        reason = _reason(policy, task.error.message)
        decision.tell("agent.failing", {"agentId": task.agent_id, "taskId": task.id, "reason": reason})
        decision.then(lambda: agent.stop_soon(f"task:{task.id}", reason))


def _reason(policy: Supervision, last: str) -> str:
    return (
        f"{policy.max_failures} tasks failed within {policy.window_seconds:g} seconds, the last one: {last} "
        "Fix the cause, then start the agent."
    )

"""Limits that are reached: each is announced with its numbers, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ai_whisperer.core.contexts import text_bytes
from ai_whisperer.core.repeating import refusals_at_end
from ai_whisperer.core.retry import Wait
from ai_whisperer.core.text import check_text, shortened
from ai_whisperer.domain.conversation import ToolRun
from ai_whisperer.domain.limits import LimitAction, LimitScope
from ai_whisperer.domain.record import Record
from ai_whisperer.domain.tasks import Failure, TaskRecord
from ai_whisperer.errors import TooLargeError
from ai_whisperer.runtime.session.cause import by_caller

if TYPE_CHECKING:
    from ai_whisperer.runtime.agents.task import RunningTask
    from ai_whisperer.runtime.session.workspace import Decision, Workspace

_QUIET_SECONDS = 60.0
"""A breach that goes on, such as a queue that stays full, is announced again after so long."""


class Breach(Record, frozen=True, kw_only=True):
    """A limit that was reached: how much is used or wanted, how much there may be, and what happened."""

    scope: LimitScope
    limit: str
    action: LimitAction
    used: float
    most: float
    agent_id: str | None = None
    task_id: str | None = None
    retry_after_seconds: float | None = None


class Breaches:
    """The breaches of one session, counted by the agent and the limit since it was opened."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._told: dict[tuple[str | None, str], float] = {}
        self._counts: Counter[tuple[str | None, str]] = Counter()

    def count(self, limit: str, agent_id: str | None = None) -> int:
        """How often the limit was reached, by this agent or by all."""
        if agent_id is not None:
            return self._counts[agent_id, limit]
        return sum(count for (_, name), count in self._counts.items() if name == limit)

    def totals(self) -> Counter[str]:
        """How often each limit was reached."""
        found: Counter[str] = Counter()
        for (_, limit), count in self._counts.items():
            found[limit] += count
        return found

    def tell(self, decision: Decision, breach: Breach) -> None:
        """Announce a breach together with what it leads to."""
        self._counts[self._key(breach)] += 1
        decision.tell("limit.reached", _told(breach))

    def tell_alone(self, breach: Breach) -> None:
        """Announce a breach that changes nothing: a call that is refused, work that waits. It is told once a minute."""
        workspace = self._workspace
        key = self._key(breach)
        now = workspace.clock.now()
        last = self._told.get(key)
        if workspace.closing or workspace.bus.failure is not None or (last is not None and now < last + _QUIET_SECONDS):
            self._counts[key] += 1
            return
        self._told[key] = now
        decision = workspace.decide(by_caller())
        self.tell(decision, breach)
        decision.submit()

    def _key(self, breach: Breach) -> tuple[str | None, str]:
        """What the breach is counted under. Agents that were never made share one: their names have no end."""
        return breach.agent_id if breach.agent_id in self._workspace.agents else None, breach.limit

    def check_prompt(self, what: str, text: str, agent_id: str, *, most: int) -> None:
        """Raise unless the agent can be asked this. That it is too large is announced, too."""
        try:
            check_text(what, text, max_bytes=most)
        except TooLargeError:
            self.tell_size(agent_id, "max_prompt_bytes", text, most=most)
            raise

    def tell_size(self, agent_id: str, limit: str, text: str, *, most: int) -> None:
        """Announce that the text was refused because it is too large."""
        refused = Breach(
            scope=LimitScope.AGENT,
            limit=limit,
            action=LimitAction.REFUSED,
            used=text_bytes(text),
            most=most,
            agent_id=agent_id,
        )
        self.tell_alone(refused)

    def call_refused(self, decision: Decision, task: TaskRecord, repeats: int) -> None:
        """Announce that a call which the task made again and again was not made."""
        most = self._workspace.agents[task.agent_id].limits.max_same_calls
        breach = Breach(
            scope=LimitScope.AGENT,
            limit="max_same_calls",
            action=LimitAction.REFUSED,
            used=repeats,
            most=most,
            agent_id=task.agent_id,
            task_id=task.id,
        )
        self.tell(decision, breach)

    def tool_ended(self, decision: Decision, task: TaskRecord, run: ToolRun) -> None:
        """Announce that the processes of a tool were ended for a limit, if it is one of the agent."""
        most = getattr(self._workspace.agents[task.agent_id].limits, run.limit, None)
        if most is None:
            return
        taken = {
            "max_tool_seconds": run.wall_seconds,
            "max_tool_cpu_seconds": run.cpu_seconds,
            "max_tool_memory_bytes": max(run.memory_bytes, most),
        }
        breach = Breach(
            scope=LimitScope.AGENT,
            limit=run.limit,
            action=LimitAction.FAILED,
            used=taken.get(run.limit, most),
            most=most,
            agent_id=task.agent_id,
            task_id=task.id,
        )
        self.tell(decision, breach)

    def refused(self, decision: Decision, task: TaskRecord, limit: str, *, used: int) -> None:
        """Announce that something which the task wanted to do was not done, since so much is used of the limit."""
        breach = Breach(
            scope=_scope_of(limit),
            limit=limit,
            action=LimitAction.REFUSED,
            used=used,
            most=getattr(self._workspace.agents[task.agent_id].limits, limit),
            agent_id=task.agent_id,
            task_id=task.id,
        )
        self.tell(decision, breach)

    def wait_cut(self, decision: Decision, task: TaskRecord, wait: Wait) -> None:
        """Announce that a provider asked to be left alone for longer than the task waits."""
        breach = Breach(
            scope=LimitScope.AGENT,
            limit=wait.limit,
            action=LimitAction.CUT,
            used=wait.refused_seconds or 0.0,
            most=getattr(self._workspace.agents[task.agent_id].limits, wait.limit),
            agent_id=task.agent_id,
            task_id=task.id,
        )
        self.tell(decision, breach)

    def bounded_result(self, agent_id: str, task_id: str, content: str) -> str:
        """As much of a result as the agent may be shown; it is announced if that is not all."""
        most = self._workspace.agents[agent_id].limits.max_result_bytes
        shown = shortened(content, most)
        if shown is not content:
            breach = Breach(
                scope=LimitScope.AGENT,
                limit="max_result_bytes",
                action=LimitAction.CUT,
                used=text_bytes(content),
                most=most,
                agent_id=agent_id,
                task_id=task_id,
            )
            self.tell_alone(breach)
        return shown

    def task_failed(
        self, decision: Decision, running: RunningTask, failure: Failure, details: Mapping[str, Any]
    ) -> None:
        """Announce the limit that the task fails for, if it is one, with the numbers of the error if it has some."""
        describe = _FAILURES.get(failure.code)
        if describe is not None:
            if "limit" in details:
                limit, used, most = details["limit"], details["used"], details["max"]
            else:
                limit, used, most = describe(self._workspace, running, decision.at)
            task = running.task
            breach = Breach(
                scope=_scope_of(limit),
                limit=limit,
                action=LimitAction.FAILED,
                used=used,
                most=most,
                agent_id=task.agent_id,
                task_id=task.id,
            )
            self.tell(decision, breach)


def _told(breach: Breach) -> dict[str, Any]:
    params: dict[str, Any] = {
        "scope": breach.scope,
        "limit": breach.limit,
        "agentId": breach.agent_id,
        "taskId": breach.task_id,
        "used": breach.used,
        "max": breach.most,
        "action": breach.action,
    }
    if breach.retry_after_seconds is not None:
        params["retryAfterSeconds"] = breach.retry_after_seconds
    return params


def _scope_of(limit: str) -> LimitScope:
    return LimitScope.TREE if limit.endswith("_per_tree") else LimitScope.AGENT


_Numbers = tuple[str, float, float]


def _steps(workspace: Workspace, running: RunningTask, _: float) -> _Numbers:
    most = workspace.agents[running.task.agent_id].limits.max_steps_per_task
    return "max_steps_per_task", len(running.steps), most


def _continuations(workspace: Workspace, running: RunningTask, _: float) -> _Numbers:
    most = workspace.agents[running.task.agent_id].limits.max_continuations
    return "max_continuations", running.task.continuation, most


def _seconds(workspace: Workspace, running: RunningTask, now: float) -> _Numbers:
    most = workspace.agents[running.task.agent_id].limits.max_task_seconds
    return "max_task_seconds", round(now - (running.task.started_at or now), 3), most


def _context(workspace: Workspace, running: RunningTask, _: float) -> _Numbers:
    agent = workspace.agents[running.task.agent_id]
    return "max_context_bytes", agent.context_bytes, agent.limits.max_context_bytes


def _circle(workspace: Workspace, running: RunningTask, _: float) -> _Numbers:
    most = workspace.agents[running.task.agent_id].limits.max_same_calls
    return "max_same_calls", most + refusals_at_end(running.steps), most


def _answer_size(workspace: Workspace, running: RunningTask, _: float) -> _Numbers:
    most = workspace.agents[running.task.agent_id].limits.max_answer_bytes
    return "max_answer_bytes", most, most


def _answer_time(workspace: Workspace, running: RunningTask, _: float) -> _Numbers:
    most = workspace.agents[running.task.agent_id].limits.max_answer_seconds
    return "max_answer_seconds", most, most


def _tree(workspace: Workspace, running: RunningTask, _: float) -> _Numbers:
    """Tokens if they are used up, else money; that of the agent or the session if its price cannot be told."""
    budget, used = running.task.budget, workspace.trees.used(running.task)
    tokens = used.input_tokens + used.output_tokens
    if budget is not None and budget.max_tokens is not None and tokens >= budget.max_tokens:
        return "max_tokens_per_tree", tokens, budget.max_tokens
    if budget is not None and budget.max_cost_usd is not None:
        return "max_cost_usd_per_tree", used.cost_usd or 0.0, budget.max_cost_usd
    agent = workspace.agents[running.task.agent_id]
    if agent.limits.max_cost_usd_per_agent:
        return "max_cost_usd_per_agent", agent.used.usage.cost_usd or 0.0, agent.limits.max_cost_usd_per_agent
    return "max_cost_usd", workspace.reservations.session_usage.cost_usd or 0.0, workspace.limits.whole.max_cost_usd


_FAILURES = {
    "step_limit": _steps,
    "continuation_limit": _continuations,
    "task_time": _seconds,
    "context_limit": _context,
    "loop": _circle,
    "answer_size": _answer_size,
    "answer_time": _answer_time,
    "budget": _tree,
}

"""Tasks that fail for a limit: which one it was, and with which numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ai_whisperer.core.repeating import refusals_at_end
from ai_whisperer.domain.limits import LimitAction
from ai_whisperer.domain.tasks import Failure
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.limits.spending import Spending
from ai_whisperer.runtime.limits.stated import StatedLimits
from ai_whisperer.runtime.limits.trees import Trees
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.roles import Journal, Roster


class TaskFailures:
    """Announces the limit that a task fails for."""

    def __init__(
        self, roster: Roster, stated: StatedLimits, reached: ReachedLimits, trees: Trees, spending: Spending
    ) -> None:
        self.roster = roster
        self.stated = stated
        self._reached = reached
        self.trees = trees
        self.spending = spending

    def task_failed(self, decision: Decision, running: Journal, failure: Failure, details: Mapping[str, Any]) -> None:
        """Announce the limit that the task fails for, if it is one, with the numbers of the error if it has some."""
        describe = _FAILURES.get(failure.code)
        if describe is not None:
            if "limit" in details:
                limit, used, most = details["limit"], details["used"], details["max"]
            else:
                limit, used, most = describe(self, running, decision.at)
            self._reached.by_task(decision, running.task, limit, LimitAction.FAILED, used=used, most=most)


_Numbers = tuple[str, float, float]


def _steps(known: TaskFailures, running: Journal, _: float) -> _Numbers:
    most = known.roster.agents[running.task.agent_id].limits.max_steps_per_task
    return "max_steps_per_task", len(running.steps), most


def _continuations(known: TaskFailures, running: Journal, _: float) -> _Numbers:
    most = known.roster.agents[running.task.agent_id].limits.max_continuations
    return "max_continuations", running.task.continuation, most


def _seconds(known: TaskFailures, running: Journal, now: float) -> _Numbers:
    most = known.roster.agents[running.task.agent_id].limits.max_task_seconds
    return "max_task_seconds", round(now - (running.task.started_at or now), 3), most


def _context(known: TaskFailures, running: Journal, _: float) -> _Numbers:
    agent = known.roster.agents[running.task.agent_id]
    return "max_context_bytes", agent.work.context_bytes, agent.limits.max_context_bytes


def _repeats(known: TaskFailures, running: Journal, _: float) -> _Numbers:
    most = known.roster.agents[running.task.agent_id].limits.max_same_calls
    return "max_same_calls", most + refusals_at_end(running.steps), most


def _answer_size(known: TaskFailures, running: Journal, _: float) -> _Numbers:
    most = known.roster.agents[running.task.agent_id].limits.max_answer_bytes
    return "max_answer_bytes", most, most


def _answer_time(known: TaskFailures, running: Journal, _: float) -> _Numbers:
    most = known.roster.agents[running.task.agent_id].limits.max_answer_seconds
    return "max_answer_seconds", most, most


def _tree(known: TaskFailures, running: Journal, _: float) -> _Numbers:
    """Tokens if they are used up, else money; that of the agent or the session if its price cannot be told."""
    budget, used = running.task.budget, known.trees.used(running.task)
    tokens = used.input_tokens + used.output_tokens
    if budget is not None and budget.max_tokens is not None and tokens >= budget.max_tokens:
        return "max_tokens_per_tree", tokens, budget.max_tokens
    if budget is not None and budget.max_cost_usd is not None:
        return "max_cost_usd_per_tree", used.cost_usd or 0.0, budget.max_cost_usd
    agent = known.roster.agents[running.task.agent_id]
    if agent.limits.max_cost_usd_per_agent:
        return "max_cost_usd_per_agent", agent.work.used.usage.cost_usd or 0.0, agent.limits.max_cost_usd_per_agent
    return "max_cost_usd", known.spending.session_usage.cost_usd or 0.0, known.stated.whole.max_cost_usd


_FAILURES = {
    "step_limit": _steps,
    "continuation_limit": _continuations,
    "task_time": _seconds,
    "context_limit": _context,
    "loop": _repeats,
    "answer_size": _answer_size,
    "answer_time": _answer_time,
    "budget": _tree,
}

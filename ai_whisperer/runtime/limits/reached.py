"""Limits that are reached: each is announced with its numbers, and counted."""

from __future__ import annotations

from collections import Counter

from msgspec import UnsetType

from ai_whisperer.core.contexts import text_bytes
from ai_whisperer.core.model_failures import Wait
from ai_whisperer.core.text import check_text, shortened
from ai_whisperer.domain.conversation import ToolRun
from ai_whisperer.domain.limits import LimitAction, LimitScope
from ai_whisperer.domain.notifications.limits import LimitReached
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.errors import TooLargeError
from ai_whisperer.runtime.session.cause import by_caller
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Roster

_QUIET_SECONDS = 60.0
"""A limit that stays reached, such as a queue that stays full, is announced again after so long."""


class ReachedLimits:
    """The limits that were reached in one session, counted by the agent and the limit since it was opened."""

    def __init__(self, kernel: Kernel, roster: Roster) -> None:
        self._kernel = kernel
        self._roster = roster
        self._told: dict[tuple[str | None, str, str | UnsetType], float] = {}
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

    def tell(self, decision: Decision, reached: LimitReached) -> None:
        """Announce that a limit is reached, together with what that leads to."""
        self._counts[self._key(reached)] += 1
        decision.tell(reached)

    def tell_alone(self, reached: LimitReached) -> None:
        """Announce what changes nothing: a call that is refused, work that waits. It is told once a minute."""
        kernel = self._kernel
        key = self._key(reached)
        told = (*key, reached.account)
        now = kernel.clock.now()
        last = self._told.get(told)
        if kernel.closing or kernel.log.failure is not None or (last is not None and now < last + _QUIET_SECONDS):
            self._counts[key] += 1
            return
        self._told[told] = now
        decision = kernel.decide(by_caller())
        self.tell(decision, reached)
        decision.submit()

    def _key(self, reached: LimitReached) -> tuple[str | None, str]:
        """What it is counted under. Agents that were never made share one: their names have no end."""
        return reached.agent_id if reached.agent_id in self._roster.agents else None, reached.limit

    def check_prompt(self, what: str, text: str, agent_id: str, *, most: int) -> None:
        """Raise unless the agent can be asked this. That it is too large is announced, too."""
        try:
            check_text(what, text, max_bytes=most)
        except TooLargeError:
            self.tell_size(agent_id, "max_prompt_bytes", text, most=most)
            raise

    def tell_size(self, agent_id: str, limit: str, text: str, *, most: int) -> None:
        """Announce that the text was refused because it is too large."""
        refused = LimitReached(
            scope=LimitScope.AGENT,
            limit=limit,
            action=LimitAction.REFUSED,
            used=text_bytes(text),
            most=most,
            agent_id=agent_id,
            task_id=None,
        )
        self.tell_alone(refused)

    def tool_ended(self, decision: Decision, task: TaskRecord, run: ToolRun) -> None:
        """Announce that the processes of a tool were ended for a limit, if it is one of the agent."""
        most = getattr(self._roster.agents[task.agent_id].limits, run.limit, None)
        if most is None:
            return
        taken = {
            "max_tool_seconds": run.wall_seconds,
            "max_tool_cpu_seconds": run.cpu_seconds,
            "max_tool_memory_bytes": max(run.memory_bytes, most),
        }
        self.by_task(decision, task, run.limit, LimitAction.FAILED, used=taken.get(run.limit, most), most=most)

    def refused(self, decision: Decision, task: TaskRecord, limit: str, *, used: int) -> None:
        """Announce that something which the task wanted to do was not done, since so much is used of the limit."""
        self.by_task(decision, task, limit, LimitAction.REFUSED, used=used)

    def wait_cut(self, decision: Decision, task: TaskRecord, wait: Wait) -> None:
        """Announce that a provider asked to be left alone for longer than the task waits."""
        self.by_task(decision, task, wait.limit, LimitAction.CUT, used=wait.refused_seconds or 0.0)

    def by_task(
        self,
        decision: Decision,
        task: TaskRecord,
        limit: str,
        action: LimitAction,
        *,
        used: float,
        most: float | None = None,
    ) -> None:
        """Announce that the task reached the limit, which is that of its agent unless another is given."""
        reached = LimitReached(
            scope=LimitScope.TREE if limit.endswith("_per_tree") else LimitScope.AGENT,
            limit=limit,
            action=action,
            used=used,
            most=getattr(self._roster.agents[task.agent_id].limits, limit) if most is None else most,
            agent_id=task.agent_id,
            task_id=task.id,
        )
        self.tell(decision, reached)

    def bounded_result(self, agent_id: str, task_id: str, content: str) -> str:
        """As much of a result as the agent may be shown; it is announced if that is not all."""
        most = self._roster.agents[agent_id].limits.max_result_bytes
        shown = shortened(content, most)
        if shown is not content:
            cut = LimitReached(
                scope=LimitScope.AGENT,
                limit="max_result_bytes",
                action=LimitAction.CUT,
                used=text_bytes(content),
                most=most,
                agent_id=agent_id,
                task_id=task_id,
            )
            self.tell_alone(cut)
        return shown

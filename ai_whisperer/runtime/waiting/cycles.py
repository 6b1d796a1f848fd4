"""Waits that would never end are refused here, before they begin: for locks, answers, turns, and by tools.

Tools that wait for tasks are kept in mind here. As long as there are none, questions and locks are all that can make a
circle, and nothing else is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

from ai_whisperer.core.resources import ResourceLines, ResourceRequest
from ai_whisperer.core.tool_waits import ToolWaits
from ai_whisperer.domain.tasks import StepState, TaskRecord
from ai_whisperer.errors import WaitCycleError
from ai_whisperer.runtime.session.current import loop_that_calls, step_that_calls
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Agent, Loop, Roster
from ai_whisperer.runtime.waiting.waits import Waits


class Cycles:
    """The circles of waits of one session, each told as the agents on it, the first one at both ends."""

    def __init__(self, kernel: Kernel, roster: Roster, waits: Waits, lines: ResourceLines) -> None:
        self._kernel = kernel
        self._roster = roster
        self._graph = waits.graph
        self._tool_waits = ToolWaits(lines, self._graph, self._queued_behind)

    def check_lock(self, task: TaskRecord, lock: str) -> None:
        """Raise `WaitCycleError` if the task would wait for the lock for ever."""
        circle = self._graph.circle_of_lock(task.agent_id, task.id, lock)
        if circle is None and self._tool_waits:
            circle = self._agents_on(self._tool_waits.circle_of_lock(task.id, lock))
        if circle is not None:
            raise WaitCycleError(
                f"You cannot wait for lock '{lock}': {circle[1]} has it or gets it before you, and waits for you "
                f"({' → '.join(circle)}), a cycle that would never end. Nothing was changed. Release what you hold, "
                "or continue without it."
            )

    def check_switch(self, task: TaskRecord, recipient: str) -> None:
        """Raise `WaitCycleError` if the task would wait for an answer of the recipient for ever."""
        circle = self._graph.circle_of_switch(task.agent_id, task.id, recipient)
        agent = self._roster.agents.get(recipient)
        if circle is None and self._tool_waits and agent is not None:
            circle = self._agents_on(self._tool_waits.circle_of_switch(task.id, agent.work.loops))
        if circle is not None:
            raise WaitCycleError(
                f"You cannot wait for '{recipient}': it waits for you ({' → '.join(circle)}), a cycle that would "
                "never end. Nothing was sent. Answer with what you have, or use send_mail, which does not wait."
            )

    def check_turn(self, request: ResourceRequest, *, names: str) -> None:
        """Raise `WaitCycleError` if the call would wait for its turn at what it touches for ever."""
        circle = self._agents_on(self._tool_waits.circle_of_turn(request)) if self._tool_waits else None
        if circle is not None:
            raise WaitCycleError(
                f"You cannot wait for {names}: a tool of another agent has it and waits for this very task "
                f"({' → '.join(circle)}), a cycle that would never end. The tool was not run. Do without it."
            )

    async def end_of(self, task: TaskRecord) -> TaskRecord:
        """Wait for the end of the task and return it as it ended.

        A tool that does so holds what it touches meanwhile, but leaves its place to others. Raises `WaitCycleError` if
        the task cannot end before the tool has.
        """
        loop, step_id = loop_that_calls(), step_that_calls()
        if loop is None or step_id is None or not _is_under_way(loop, step_id):
            return await self._kernel.end_of_task(task.id)
        async with loop.without_place():
            if self._roster.running.get(loop.task.id) is not loop:  # a loop of another session
                return await self._kernel.end_of_task(task.id)
            self._check(loop, step_id, task)
            self._tool_waits.begin(step_id, loop.task.id, task_id=task.id)
            try:
                return await self._kernel.end_of_task(task.id)
            finally:
                self._tool_waits.end(step_id, task.id)

    def _check(self, loop: Loop, step_id: str, task: TaskRecord) -> None:
        circle = self._agents_on(self._tool_waits.circle_of_call(step_id, loop.task.id, task_id=task.id))
        if circle is not None:
            raise WaitCycleError(
                f"This tool cannot wait for task {task.id}: that waits for what the tool touches, or for the task that "
                f"called the tool ({' → '.join(circle)}), a cycle that would never end. Do not wait for it here."
            )

    def _queued_behind(self, task_id: str) -> list[list[str]]:
        """The tasks that keep this one in the queue of its agent: of each of these lists one must end first."""
        if task_id in self._roster.running:
            return []
        agent = self._agent_with(task_id)
        queued = None if agent is None else agent.work.find_waiting(task_id)
        if agent is None or queued is None:
            return []
        beside = [loop.task for loop in agent.work.loops.values()]
        behind = [[each.id] for each in beside if each.thread_id == queued.thread_id]
        if not queued.answers_a_switch:
            counted = [each.id for each in beside if not each.answers_a_switch]
            if len(counted) >= agent.limits.max_concurrent_tasks:
                behind.append(counted)
        return behind

    def _agent_with(self, task_id: str) -> Agent | None:
        """The agent of a task that runs or waits in a queue."""
        loop = self._roster.running.get(task_id)
        if loop is not None:
            return self._roster.agents[loop.task.agent_id]
        agents = self._roster.agents.values()
        return next((agent for agent in agents if agent.work.find_waiting(task_id) is not None), None)

    def _agents_on(self, circle: Iterable[str] | None) -> list[str] | None:
        """The agents of the tasks on a circle. Where a task waits for another of its agent, that one is named once."""
        if circle is None:
            return None
        agents: list[str] = []
        for task_id in circle:
            agent = self._agent_with(task_id)
            name = task_id if agent is None else agent.agent_id
            if not agents or agents[-1] != name:
                agents.append(name)
        return agents if len(agents) > 1 else agents * 2


def _is_under_way(loop: Loop, step_id: str) -> bool:
    """Whether the call still runs; it may have left behind the code that waits."""
    steps = reversed(loop.running.journal.steps)
    return any(step.id == step_id and step.state is StepState.STARTED for step in steps)

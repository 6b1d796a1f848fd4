"""Work that one agent gives to another: the task is there at once, the result comes back as mail."""

from __future__ import annotations

from msgspec.structs import replace

from ai_whisperer.core.budgets import deadline_after, earliest
from ai_whisperer.core.marks import without_marks
from ai_whisperer.core.tasks import delegated, delegated_id, inherited
from ai_whisperer.core.text import fitted
from ai_whisperer.domain.tasks import Origin, Priority, ReportTo, StepRecord, TaskRecord, TaskState
from ai_whisperer.errors import BudgetError, InvalidInputError, StateError
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.limits.trees import Trees
from ai_whisperer.runtime.messaging.continuations import Continuations
from ai_whisperer.runtime.messaging.mail import Mail
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Roster

_SUBJECT_CHARACTERS = 80


class Delegation:
    """Tasks that agents give to each other, and the way back of what comes of them."""

    def __init__(
        self,
        kernel: Kernel,
        roster: Roster,
        reached: ReachedLimits,
        trees: Trees,
        mail: Mail,
        continuations: Continuations,
    ) -> None:
        self._kernel = kernel
        self._roster = roster
        self._reached = reached
        self._trees = trees
        self._mail = mail
        self._continuations = continuations

    def delegate(
        self,
        decision: Decision,
        task: TaskRecord,
        step: StepRecord,
        *,
        to: str,
        prompt: str,
        priority: Priority,
        timeout_seconds: float | None,
    ) -> TaskRecord:
        """Give a part of the task to another agent. Raises, having changed nothing, if that is not possible.

        What is delegated belongs to the same tree, and has no more time and no other budget than the task itself.
        """
        agent_id = self._roster.book.resolve(to)
        agent = self._roster.agents[agent_id]
        if agent_id == task.agent_id:
            raise InvalidInputError(f"'{agent_id}' cannot delegate to itself; nothing was delegated. Do it yourself.")
        if not agent.record.started:
            raise StateError(f"'{agent_id}' is not started; nothing was delegated. Choose another agent (list_agents).")
        most = agent.limits.max_prompt_bytes
        self._reached.check_prompt("task", prompt, agent_id, most=most)
        deadline_at = self.check(task, prompt, timeout_seconds, now=decision.at)
        agent.work.check_room()
        origin = replace(
            inherited(task),
            deadline_at=deadline_at,
            report_to=ReportTo(agent_id=task.agent_id, thread_id=task.thread_id, deadline_at=task.deadline_at),
        )
        given = delegated(
            task,
            agent_id,
            prompt,
            task_id=delegated_id(step.id),
            arrival=self._kernel.next_arrival(),
            priority=priority,
            origin=origin,
            now=decision.at,
        )
        agent.work.accept_task(decision, given, by=task.agent_id)
        return given

    def check(self, task: TaskRecord, prompt: str, timeout_seconds: float | None, *, now: float) -> float | None:
        """When the time for what the task delegates is over; raises if it can delegate this to nobody."""
        if not prompt.strip():
            raise InvalidInputError("The task is empty; nothing was delegated. Say what is to be done.")
        spent = self._trees.spent(task)
        if spent is not None:
            raise BudgetError(f"The budget is spent ({spent}); nothing was delegated. Answer with what is there.")
        return earliest(task.deadline_at, deadline_after(timeout_seconds, now=now))

    def task_ended(self, decision: Decision, task: TaskRecord) -> None:
        """Report what has come of it to whoever delegated the task."""
        if task.origin is not None and task.origin.report_to is not None:
            self.report(decision, task, task.origin.report_to)

    def report(self, decision: Decision, task: TaskRecord, to: ReportTo) -> None:
        """Mail the result of a delegated task, or why there is none, to the agent that wants it."""
        if task.state is TaskState.CANCELLED and self._trees.is_being_cancelled(task.id):
            return  # whoever would be told is cancelled with it, or is not to be disturbed
        if to.agent_id not in self._roster.agents:
            return  # whoever wanted it was deleted
        first = self._continuations.parts_of(task)[0]
        if task.state is TaskState.COMPLETED:
            subject, body = "Result of", self._continuations.answer_of(task)
        else:
            subject = f"Not done ({task.state}):"
            body = task.error.message if task.error is not None else "No reason was recorded."
        prompt = without_marks(first.prompt)
        words = prompt.partition("\n\n")[2].strip() or prompt
        self._mail.send(
            decision,
            sender=task.agent_id,
            to=to.agent_id,
            subject=f"{subject} {' '.join(words.split())[:_SUBJECT_CHARACTERS]}",
            body=fitted(f"Task {first.id}:\n{body}", self._mail.max_bytes(to.agent_id)),
            priority=task.priority,
            thread_id=to.thread_id,
            origin=Origin(root_id=task.root_id, deadline_at=to.deadline_at, budget=task.budget),
            is_result=True,
            cause=f"task:{task.id}",  # whoever ended it, a person or a timer: what comes of it belongs to its tree
        )

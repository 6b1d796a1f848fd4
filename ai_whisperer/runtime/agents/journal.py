"""The journal of a task that runs: its steps in memory and in the store. Nothing here decides what comes next."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import Protocol

from msgspec import UNSET
from msgspec.structs import replace

from ai_whisperer.core.next_step import (
    NO_LONGER_WAITED,
    OUTCOME_UNKNOWN,
    Next,
    PendingCall,
    next_action,
    pending_calls,
)
from ai_whisperer.core.shown import mails_shown_by
from ai_whisperer.core.usage import usage_of, usage_since
from ai_whisperer.domain.conversation import ToolResult, Usage
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.domain.notifications.steps import StepFinished, StepRetried, StepStarted
from ai_whisperer.domain.tasks import DONE, STARTED, TOOL, Failure, StepRecord, StepState, TaskRecord
from ai_whisperer.domain.waits import WaitKind
from ai_whisperer.runtime.limits.spending import Spending
from ai_whisperer.runtime.messaging.mail import Mail
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.waiting.turns import Turns
from ai_whisperer.runtime.waiting.waits import Waits

_NUMBER = attrgetter("number")


class JournalParts(Protocol):
    """The parts of the session that are concerned when a step is journaled."""

    @property
    def mail(self) -> Mail: ...
    @property
    def waits(self) -> Waits: ...
    @property
    def turns(self) -> Turns: ...
    @property
    def spending(self) -> Spending: ...


class JournalOwner(Protocol):
    """The agent whose task it is."""

    @property
    def limits(self) -> EffectiveLimits: ...
    @property
    def parts(self) -> JournalParts: ...


class TaskJournal:
    """A task and its steps.

    What the steps have used is added up when somebody asks for it, or the task ends. Until then `task.usage` is behind.
    """

    __slots__ = ("_agent", "_uncounted", "steps", "task")

    def __init__(self, agent: JournalOwner, task: TaskRecord, steps: list[StepRecord]) -> None:
        self._agent = agent
        self._uncounted: list[StepRecord] = []
        self.steps = steps
        self.task = replace(task, usage=usage_of(steps)) if steps else task

    def begin(self, decision: Decision, step: StepRecord) -> None:
        """Journal that a step begins, and tell of it. Of one that comes after all others less is to be written."""
        steps = self.steps
        if not steps or steps[-1].number < step.number:
            decision.unit.begin_step(step)
            steps.append(step)
        else:
            self.record_step(decision, step)
        decision.tell(StepStarted.of(self.task, step))

    def record_step(self, decision: Decision, step: StepRecord) -> None:
        """Put a step into the journal, in the unit and in memory."""
        decision.unit.put_step(step)
        steps, number = self.steps, step.number
        if steps and steps[-1].number == number:
            steps[-1] = step  # as nearly always
            return
        index = bisect_left(steps, number, key=_NUMBER)
        if index < len(steps) and steps[index].number == number:
            steps[index] = step
        else:
            steps.insert(index, step)

    def update_task(self, decision: Decision, task: TaskRecord) -> None:
        self.count_up()
        if task.usage is not self.task.usage:
            task = replace(task, usage=self.task.usage)
        decision.unit.update_task(task)  # first: if it cannot be written, memory stays as it is
        self.task = task

    def record_notes(self, decision: Decision, notes: str) -> None:
        """The model is told this of the agent's memory, now and whenever the task is taken up."""
        task = replace(self.task, notes=notes)
        decision.unit.update_notes(task)
        self.task = task

    def next_action(self) -> Next:
        most, origin = self._agent.limits.max_steps_per_task, self.task.origin
        if origin is None:
            return next_action(self.steps, max_steps=most)
        return next_action(
            self.steps, max_steps=most, output_schema=origin.output_schema, continues_cut=origin.continues_cut
        )

    def step_of(self, pending: PendingCall, *, at: float) -> StepRecord:
        """The step of a call, as it is in the journal or as it will be if it begins now."""
        return pending.interrupted or StepRecord(
            session_id=self.task.session_id,
            task_id=self.task.id,
            number=pending.number,
            kind=TOOL,
            state=STARTED,
            call=pending.call,
            started_at=at,
        )

    def begin_again(self, decision: Decision, step: StepRecord) -> None:
        """Begin a step under its number once more, unless it waits: its next attempt is journaled at its time."""
        if step.retry_at is None:
            # Of a task that was retried it begins now, as far as anybody has been told: see `snapshots`.
            is_of_before = step.started_at < (self.task.started_at or 0.0)
            began_at = decision.at if is_of_before else step.started_at
            self.begin(decision, replace(step, attempt=step.attempt + 1, started_at=began_at))

    def begin_compaction(self, decision: Decision, step: StepRecord, *, refused: Failure | None) -> None:
        """The request that has begun is a compaction now: under its number, with all that it has used.

        `refused` is what the provider said if it was made and found too long.
        """
        requests = self.count(step)
        self.record_step(decision, step)
        if refused is not None:
            decision.tell(
                StepRetried(
                    agent_id=self.task.agent_id,
                    task_id=step.task_id,
                    step_id=step.id,
                    attempt=step.attempt - 1,
                    error=refused,
                    retry_at=decision.at,
                    requests=UNSET if requests == 1 else requests,
                )
            )
        decision.tell(StepStarted.of(self.task, step))

    def mark_shown(self, decision: Decision, step: StepRecord) -> None:
        """The model has answered, and so was shown the mails that its request held."""
        post = self._agent.parts.mail
        if self.task.mail_id is not None:
            post.shown(decision, self.task.mail_id)
        for mail_id in mails_shown_by(self.steps, step):
            post.shown(decision, mail_id)

    def record_awaited_result(self, decision: Decision, waited: str, result: ToolResult) -> None:
        """A call that waited has its result, perhaps without ever having begun."""
        steps = (self.step_of(pending, at=decision.at) for pending in pending_calls(self.steps))
        self.record_result(decision, next(step for step in steps if step.id == waited), result)

    def record_result(
        self, decision: Decision, step: StepRecord, result: ToolResult, *, state: StepState = DONE
    ) -> None:
        if self._agent.parts.waits.by_step:
            self._agent.parts.turns.let_go(step.id)
        step = replace(step, state=state, result=result, finished_at=decision.at)
        self.count(step)
        self.record_step(decision, step)
        decision.tell(StepFinished.of(self.task, step, requests=0))

    def count(self, step: StepRecord) -> int:
        """Add what a step has used since it was recorded last: it is counted first, and recorded then.

        Returns how many requests to the model have ended meanwhile.
        """
        steps, number = self.steps, step.number
        before = steps[-1] if steps and steps[-1].number == number else self.step(number)  # the former, nearly always
        if before is None or not before.requests:
            self._uncounted.append(step)
        else:
            self._add(usage_since(before, step))
        if self._agent.parts.spending.count_at_once:
            self.count_up()
        return step.requests if before is None else step.requests - before.requests

    def count_up(self) -> None:
        """Bring `task.usage` up to date."""
        if self._uncounted:
            used = usage_of(self._uncounted)
            self._uncounted.clear()
            self._add(used)

    def _add(self, used: Usage) -> None:
        self.task = replace(self.task, usage=self.task.usage + used)
        self._agent.parts.spending.count(used)

    def step(self, number: int) -> StepRecord | None:
        """The step of that number as it is recorded, if it is."""
        steps = self.steps
        if steps and steps[-1].number == number:
            return steps[-1]
        index = bisect_left(steps, number, key=_NUMBER)
        return steps[index] if index < len(steps) and steps[index].number == number else None

    def settle_open_steps(self, decision: Decision) -> None:
        self.settle_open_tools(decision)
        for step in [step for step in self.steps if step.state is STARTED]:
            if step.kind is TOOL:
                wait = self._agent.parts.waits.find(step.id)
                # One that waits for its turn is to be repeated, and what became of it the first time is not known.
                repeats = wait is not None and wait.kind is WaitKind.RESOURCE
                told = OUTCOME_UNKNOWN if repeats else NO_LONGER_WAITED
                result = ToolResult(content=told, is_error=True)
                self._settle(decision, replace(step, state=StepState.UNKNOWN, result=result))
            else:
                before = "" if step.error is None else f" The request before had failed: {step.error.message}"
                ended = Failure(code="cancelled", message=f"The task was ended.{before}")
                self._settle(decision, replace(step, state=StepState.FAILED, error=ended))

    def settle_open_tools(self, decision: Decision) -> None:
        """Settle the calls that were cut off. Those that wait for a reply or a lock were not: they go on waiting."""
        waits = self._agent.parts.waits
        for step in [step for step in self.steps if step.kind is TOOL and step.state is STARTED]:
            if not waits.is_waiting(step.id):
                result = ToolResult(content=OUTCOME_UNKNOWN, is_error=True)
                self._settle(decision, replace(step, state=StepState.UNKNOWN, result=result))

    def take_back_unheard(self, decision: Decision) -> None:
        """The task ends. What was said with a request that has no answer was not heard: it is done in its turn."""
        asked = self.steps[-1] if self.steps else None
        if asked is not None and asked.said is not None and asked.answer is None:
            self.record_step(decision, replace(asked, said=None))

    def _settle(self, decision: Decision, step: StepRecord) -> None:
        settled = replace(step, finished_at=decision.at, retry_at=None)
        requests = self.count(settled)
        self.record_step(decision, settled)
        decision.tell(StepFinished.of(self.task, settled, requests=requests))

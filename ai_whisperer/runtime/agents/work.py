"""The work of one agent: tasks and mail that wait in its queues, and the loops that run for it.

A mail becomes a task when it is its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import chain

from msgspec.structs import replace

from ai_whisperer.core import lifecycle
from ai_whisperer.core.budgets import on_default_budget
from ai_whisperer.core.failure_records import failure_from
from ai_whisperer.core.lifecycle import Action
from ai_whisperer.core.mailbox import task_for_mail
from ai_whisperer.core.outputs import with_output_schema
from ai_whisperer.core.queueing import Work, WorkQueue
from ai_whisperer.core.tasks import summary_of
from ai_whisperer.core.usage import usage_without
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.notifications.tasks import TaskQueued
from ai_whisperer.domain.snapshot import LinkKind
from ai_whisperer.domain.tasks import StepRecord, TaskKind, TaskRecord, TaskState
from ai_whisperer.domain.usage import AgentTotals
from ai_whisperer.errors import StateError, WhispererError
from ai_whisperer.runtime.agents.loop import AILoop
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.runtime.agents.steering import Steering
from ai_whisperer.runtime.agents.task import RunningTask
from ai_whisperer.runtime.limits.back_pressure import queue_full
from ai_whisperer.runtime.session.current import loop_that_calls
from ai_whisperer.runtime.session.decision import Decision

_ACTIVE = AgentState.ACTIVE
_RUNNING = TaskState.RUNNING


class AgentWork:
    """What one agent has to do: no asyncio task unless a loop runs.

    What somebody waits for is queued apart from the rest: it is begun at once, beside the other loops, and asleep too.
    `steering` are the tasks that wait to join the one at work in their thread, once there was one.
    """

    __slots__ = (
        "_agent",
        "_calls",
        "_dispatching",
        "_journals",
        "_parts",
        "_totals",
        "active_at",
        "loops",
        "queue",
        "steering",
    )

    def __init__(self, agent: Owner) -> None:
        self._agent = agent
        self._parts = agent.parts
        self.queue = WorkQueue()
        self.loops: dict[str, AILoop] = {}
        self._totals: AgentTotals | None = None
        self.active_at = agent.record.created_at
        self._calls: WorkQueue | None = None
        self._dispatching = False
        self._journals: dict[str, list[StepRecord]] | None = None
        self.steering: Steering | None = None

    @property
    def agent_id(self) -> str:
        return self._agent.agent_id

    @property
    def is_at_rest(self) -> bool:
        """Whether the agent has nothing to do, or does nothing until somebody lets it."""
        if self._agent.missing_tools:
            return True
        if self._agent.record.state is AgentState.ACTIVE or (self.queue and lifecycle.takes_work(self._agent.record)):
            return False
        return not (self._calls and lifecycle.takes_calls(self._agent.record))

    @property
    def waiting(self) -> Iterable[Work]:
        """All that waits here, in no order."""
        return chain(self.queue, self._calls) if self._calls else self.queue

    @property
    def size(self) -> int:
        return len(self.queue) + len(self._calls or ())

    @property
    def context_bytes(self) -> int:
        """What the conversations of the agent's loops take in memory, as far as models were shown them."""
        return sum(loop.context_bytes for loop in self.loops.values())

    def check_room(self, *, returning: int = 0) -> None:
        """Raise `QueueFullError` if the agent can take no more work; it says when to try again.

        So many as are `returning` are about to be in its queue.
        """
        if not self.queue.has_room(self._agent.limits.max_queue_length - returning):
            raise queue_full(self._agent, self._parts.reached, self._parts.kernel.clock)

    def accept_task(self, decision: Decision, task: TaskRecord, *, by: str | None = None) -> None:
        """Queue a new task and begin it as soon as it may.

        `by` is the agent, or the user, that delegates it or has broadcast the event that it is for.
        """
        task = on_default_budget(task, self._agent.limits)
        task = with_output_schema(task, self._agent.record.definition.output_schema)
        decision.unit.insert_task(task)
        self._parts.trees.added(task)
        decision.tell(TaskQueued.of(task, summary=summary_of(task), by=by))
        if by is not None:
            kind = LinkKind.DELEGATION if task.kind is TaskKind.DELEGATED else LinkKind.EVENT
            self._parts.counters.link(decision, kind, by, self._agent.agent_id)
        self.queue_up(task)
        decision.then(self.dispatch)

    def queue_up(self, item: Work, steps: list[StepRecord] | None = None) -> None:
        """Put work into its queue. Before all else goes on what others wait for: the place of its loop is free.

        A task that is taken up again comes with its steps.
        """
        if steps:
            self._journals = self._journals or {}
            self._journals[item.id] = steps
        if type(item) is MailRecord:
            (self._calls_queue() if item.awaited else self.queue).push(item)
            return
        if item.origin is not None:
            self._parts.deadlines.watch(item)
            if item.may_join:
                self.steering = self.steering or Steering(self.queue)
                self.steering.add(item)
        queue = self._calls_queue() if item.answers_a_switch else self.queue
        if self._keeps_others_waiting(item):
            queue.push_first(item)
        else:
            queue.push(item)

    def take_out_mail(self, mail: MailRecord) -> None:
        """Take a mail out of its turn, if it waits here."""
        (self._calls_queue() if mail.awaited else self.queue).remove_mail(mail.id)

    def find_waiting(self, task_id: str) -> TaskRecord | None:
        """The task, if it waits here."""
        found = self.queue.find_task(task_id)
        return found if found is not None or self._calls is None else self._calls.find_task(task_id)

    def take_out(self, task_id: str) -> TaskRecord | None:
        """Take a waiting task out of its turn; None if it does not wait here."""
        found = self.queue.remove_task(task_id)
        if found is None and self._calls is not None:
            found = self._calls.remove_task(task_id)
        if found is not None:
            self._waits_no_more(found)
        return found

    def join(self, decision: Decision, step: StepRecord) -> None:
        """A model has answered, and so has heard what was said to it with this step: those who said it have joined.

        Not before: a task that ends without that answer leaves them in the queue, to be done in their turn.
        """
        for said in step.said or ():
            joining = self.take_out(said.task_id)  # it may have been cancelled meanwhile
            if joining is not None:
                self._parts.task_end.join(decision, RunningTask(self._agent, joining, []), step)

    def _is_being_said(self, task_id: str) -> bool:
        """Whether a model is asked with the prompt of this task, which waits to join, and has not answered."""
        if self.steering is None:
            return False
        steps = (step for loop in self.loops.values() for step in loop.running.journal.steps[-1:])
        return self.steering.is_being_said(task_id, steps)

    def _waits_no_more(self, task: TaskRecord) -> None:
        """The task has left the queue: it is begun, ended, or has joined another."""
        if self.steering is not None and task.may_join:
            self.steering.remove(task)

    def dispatch(self) -> None:
        """Begin as much of the waiting work as may run now."""
        if self._dispatching:
            return  # a task that ended as soon as it began: the loop below goes on
        self._dispatching = True
        try:
            while self._calls and self._may_answer() and (call := self._calls.take()) is not None:
                self._begin(call)
            while self._may_take() and self._has_place() and (item := self.queue.take()) is not None:
                self._begin(item)
        finally:
            self._dispatching = False

    async def cancel_task(self, task_id: str, cause: str, reason: str) -> None:
        """Cancel a task that waits or runs, unless it ends first. Then its tools are gone and its end is durable.

        Raises `StateError` for a message that a task at work is just being told: what is said is said.
        """
        if self._is_being_said(task_id):
            raise StateError(
                f"Task {task_id} is being told to the task at work in its thread. Cancel that one instead."
            )
        await self._end_early(
            task_id, cause, lambda running, decision: self._parts.task_end.cancel(decision, running, reason)
        )

    async def fail_task(self, task_id: str, cause: str, error: WhispererError) -> None:
        """Let a task that waits or runs fail with this error, unless it ends first or is just being told to another.

        Its time may be over while it is told: if nobody answers, `_remove_loop` sees to its deadline again.
        """
        if self._is_being_said(task_id):
            return
        await self._end_early(
            task_id,
            cause,
            lambda running, decision: self._parts.task_end.fail(
                decision, running, failure_from(error), details=error.data
            ),
        )

    async def halt_loops(self) -> None:
        """Cancel the workers of all loops and return when they have ended, with their tools."""
        await asyncio.gather(*(loop.halt() for loop in list(self.loops.values())))

    def take_up_loops(self) -> None:
        """Go on with the loops that were held up, as far as the agent may."""
        for loop in list(self.loops.values()):
            loop.take_up()

    def add_loop(self, loop: AILoop) -> None:
        task, parts = loop.task, self._parts
        self.loops[task.id] = loop
        parts.roster.loop_began(loop)
        parts.trees.enter(task, has_begun=bool(loop.running.journal.steps))
        parts.deadlines.begun(task, self._agent.limits.max_task_seconds)
        self.queue.occupy(task.thread_id)
        if self._calls is not None:
            self._calls.occupy(task.thread_id)

    def _remove_loop(self, decision: Decision, task: TaskRecord) -> None:
        """Forget the loop of a task that has ended; the next of its thread may begin."""
        loop = self.loops.pop(task.id)
        loop.give_back_place()
        if loop.running.on_settled is not None and loop.worker is None:  # nothing of it runs that could say so
            decision.then(loop.running.settled)
        self._parts.roster.loop_ended(task.id)
        if not self._parts.roster.running:
            self._parts.deadlines.none_run()
        self.queue.release(task.thread_id)
        if self._calls is not None:
            self._calls.release(task.thread_id)
        if self.steering:
            for waiting in self.steering.tasks_in(task.thread_id):
                self._parts.deadlines.watch(waiting)
        self._parts.trees.leave(decision, task)

    def task_ended(self, decision: Decision, task: TaskRecord) -> None:
        """A task that ran or waited has ended: begin the next when that is submitted, or come to rest."""
        self.was_active(decision.at)
        before = self.totals
        self._put_totals(decision, before.tasks + (task.started_at is not None), before.usage + task.usage)
        if task.id in self.loops:
            self._remove_loop(decision, task)
        self.rest_or_go_on(decision)

    def was_active(self, at: float) -> None:
        """A task began or ended then. Clocks may be set back."""
        if at > self.active_at:
            self.active_at = at

    @property
    def totals(self) -> AgentTotals:
        """What is counted of the tasks that do not run, as it is in the store."""
        if self._totals is None:
            record = self._agent.record
            return AgentTotals(session_id=record.session_id, agent_id=record.id, active_at=self.active_at)
        return self._totals

    def restore_totals(self, totals: AgentTotals) -> None:
        self._totals = totals
        self.was_active(totals.active_at)

    @property
    def used(self) -> AgentTotals:
        """What the agent has used so far, with the tasks that run."""
        used = self.totals
        for loop in self.loops.values():
            journal = loop.running.journal
            journal.count_up()
            used = replace(used, tasks=used.tasks + 1, usage=used.usage + journal.task.usage)
        return used

    def _put_totals(self, decision: Decision, tasks: int, usage: Usage) -> None:
        totals = replace(self.totals, tasks=tasks, usage=usage, active_at=self.active_at)
        decision.unit.put_totals(totals)
        self._totals = totals

    def _take_back(self, decision: Decision, task: TaskRecord) -> None:
        """A task that has ended and waits again is counted as one that runs from now on."""
        if task.started_at is not None:
            before = self.totals
            self._put_totals(decision, before.tasks - 1, usage_without(before.usage, task.usage))

    def _calls_queue(self) -> WorkQueue:
        """What others wait for: it does not wait behind the rest of the work."""
        if self._calls is None:
            self._calls = WorkQueue()
            for loop in self.loops.values():
                self._calls.occupy(loop.task.thread_id)
        return self._calls

    def _keeps_others_waiting(self, task: TaskRecord) -> bool:
        """Whether this goes on with a task that another waits for, or that holds a lock."""
        if not task.continuation:
            return False
        return task.answers_a_switch or bool(self._parts.waits.graph.held_by(task.id))

    async def _end_early(self, task_id: str, cause: str, end: Callable[[RunningTask, Decision], None]) -> None:
        waiting = self.take_out(task_id)
        if waiting is not None:
            decision = self._parts.kernel.decide(cause)
            self._take_back(decision, waiting)
            end(RunningTask(self._agent, waiting, self._take_journal(waiting)), decision)
            await decision.commit()
            return
        loop = self.loops.get(task_id)
        if loop is None:
            # Its end, or its way back into the queue, is on its way to the disk.
            await self._parts.kernel.flushed()
            if task_id in self.loops or self.queue.has_task(task_id):
                await self._end_early(task_id, cause, end)
            return
        self.check_not_from_inside("cancel a task of")
        try:
            await loop.doom()
        except asyncio.CancelledError:
            loop.spare()
            raise
        if task_id not in self.loops:
            await self._parts.kernel.flushed()
            return
        decision = self._parts.kernel.decide(cause)
        end(loop.running, decision)
        await decision.commit()

    def check_not_from_inside(self, what: str) -> None:
        """A tool that waits for its own end would wait for ever."""
        calling = loop_that_calls()
        if calling is not None and calling.agent is self._agent:
            raise StateError(f"A tool of '{self._agent.agent_id}' cannot {what} its own agent. Do it from outside.")

    def _is_held_up(self) -> bool:
        parts, agent = self._parts, self._agent
        return bool(agent.is_being_stopped or parts.kernel.closing or parts.roster.on_probation or agent.missing_tools)

    def _may_take(self) -> bool:
        """Whether the agent may begin another task now."""
        if self._is_held_up() or not lifecycle.takes_work(self._agent.record):
            return False
        running = len(self.loops)
        if self._calls is not None:  # what answers a waiting agent runs beside these
            running = sum(not loop.task.answers_a_switch for loop in self.loops.values())
        return running < self._agent.limits.max_concurrent_tasks

    @property
    def would_begin(self) -> bool:
        """Whether there is something that would begin if the session had a place for it."""
        return self._may_take() and self.queue.has_free()

    def _has_place(self) -> bool:
        """Whether there is something to begin and the session has a place for it; if not, it is waited for."""
        return self.queue.has_free() and self._parts.slots.may_begin(self, self._agent.agent_id, self._take_turn)

    def _take_turn(self) -> None:
        """There is a place now. What waited for it may be gone meanwhile: then the agent comes to rest."""
        self.dispatch()
        decision = self._parts.kernel.decide(f"agent:{self._agent.agent_id}")
        self.rest_or_go_on(decision)
        if decision.unit:
            decision.submit()

    def _may_answer(self) -> bool:
        """Whether the agent may begin to answer another that waits for it."""
        return not self._is_held_up() and lifecycle.takes_calls(self._agent.record)

    def rest_or_go_on(self, decision: Decision) -> None:
        """After a loop has ended: come to rest if that was the last, else take what waits when this is submitted."""
        calls = self._calls is not None and self._may_answer() and self._calls.has_free()
        if calls or (self._may_take() and self._has_place()):
            decision.then(self.dispatch)
        elif not self.loops and self._agent.record.state is _ACTIVE and not self._agent.is_being_stopped:
            self._agent.transition(decision, Action.REST)

    def _take_journal(self, task: TaskRecord) -> list[StepRecord]:
        """The steps of a task that waits no longer: it has some if it is taken up again."""
        return self._journals.pop(task.id, []) if self._journals is not None else []

    def _begin(self, item: Work) -> None:
        """Start the loop of a task, or of the mail that becomes one, in one unit with its first step."""
        decision = self._parts.kernel.decide(_cause_of(item))
        self.was_active(decision.at)
        steps: list[StepRecord] = []
        if type(item) is MailRecord:
            busy = {loop.task.thread_id for loop in self.loops.values()}
            task = task_for_mail(item, task_id=self._parts.kernel.ids.new(), now=decision.at, busy_threads=busy)
            task = on_default_budget(task, self._agent.limits)
            self._parts.mail.deliver(decision, item, task.id)
            decision.unit.insert_task(task)
            self._parts.trees.added(task)
            if task.deadline_at is not None:
                self._parts.deadlines.watch(task)
        else:
            self._waits_no_more(item)
            task = replace(item, state=_RUNNING, attempts=1, started_at=decision.at)
            decision.unit.update_task(task)
            steps = self._take_journal(task)
            self._take_back(decision, item)
        if self._agent.record.state is not _ACTIVE:
            self._agent.transition(decision, Action.WORK)
        loop = AILoop(self._agent, task, steps)
        self.add_loop(loop)
        if task.answers_a_switch:
            self._parts.switch.task_began(task)
        loop.running.announce(decision)
        loop.begin(decision)


def _cause_of(item: Work) -> str:
    return f"mail:{item.id}" if type(item) is MailRecord else f"task:{item.id}"

"""The work of one live agent: what waits in its queue and the loops that run for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import chain

from msgspec.structs import replace

from ai_whisperer.core import lifecycle
from ai_whisperer.core.budgets import on_default_budget
from ai_whisperer.core.lifecycle import Action
from ai_whisperer.core.queueing import Work, WorkQueue
from ai_whisperer.core.tasks import task_for_mail
from ai_whisperer.domain.agents import AgentRecord, AgentState, SleepPlan
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.snapshot import LinkKind
from ai_whisperer.domain.tasks import StepRecord, TaskKind, TaskRecord, TaskState
from ai_whisperer.errors import StateError, WhispererError
from ai_whisperer.runtime.agents.loop import AILoop, loop_that_calls
from ai_whisperer.runtime.agents.means import AgentMeans
from ai_whisperer.runtime.agents.task import RunningTask
from ai_whisperer.runtime.limits.back_pressure import queue_full
from ai_whisperer.runtime.session.notices import change_of, queued_of
from ai_whisperer.runtime.session.workspace import Decision, Workspace
from ai_whisperer.store.base import AgentUsage
from ai_whisperer.tools.function import Tool

_ANNOUNCED = {
    Action.START: "agent.started",
    Action.PAUSE: "agent.paused",
    Action.RESUME: "agent.resumed",
    Action.STOP: "agent.stopped",
}


class AgentWork(AgentMeans):
    """An agent in memory: a few kilobytes, and no asyncio task unless a loop runs.

    What somebody waits for is queued apart from the rest: it is begun at once, beside the other loops, and asleep too.
    """

    __slots__ = (
        "_calls",
        "_dispatching",
        "_halting",
        "_stopping_soon",
        "_used",
        "active_at",
        "loops",
        "queue",
    )

    def __init__(self, workspace: Workspace, record: AgentRecord, own_tools: Iterable[Tool] = ()) -> None:
        super().__init__(workspace, record, own_tools)
        self.queue = WorkQueue()
        self.loops: dict[str, AILoop] = {}
        self._used = AgentUsage()
        self.active_at = record.created_at
        self._calls: WorkQueue | None = None
        self._halting = False
        self._stopping_soon: asyncio.Task[None] | None = None
        self._dispatching = False

    @property
    def may_step(self) -> bool:
        """Whether a loop of this agent may begin another step."""
        held_up = self._halting or self.workspace.closing or self.equipment.missing_tools
        return self.record.state is AgentState.ACTIVE and not held_up

    @property
    def is_at_rest(self) -> bool:
        """Whether the agent has nothing to do, or does nothing until somebody lets it."""
        if self.equipment.missing_tools:
            return True
        if self.record.state is AgentState.ACTIVE or (self.queue and lifecycle.takes_work(self.record)):
            return False
        return not (self._calls and lifecycle.takes_calls(self.record))

    @property
    def waiting(self) -> Iterable[Work]:
        """All that waits here, in no order."""
        return chain(self.queue, self._calls) if self._calls else self.queue

    @property
    def queue_size(self) -> int:
        return len(self.queue) + len(self._calls or ())

    @property
    def context_bytes(self) -> int:
        """What the conversations of the agent's loops take in memory, as far as models were shown them."""
        return sum(loop.context_bytes for loop in self.loops.values())

    def check_room(self, *, returning: int = 0) -> None:
        """Raise `QueueFullError` if the agent can take no more work; it says when to try again.

        So many as are `returning` are about to be in its queue.
        """
        if len(self.queue) + returning >= self.limits.max_queue_length:
            raise queue_full(self)

    def accept_task(self, decision: Decision, task: TaskRecord, *, by: str | None = None) -> None:
        """Queue a new task and begin it as soon as it may.

        `by` is the agent, or the user, that delegates it or has broadcast the event that it is for.
        """
        task = on_default_budget(task, self.limits)
        decision.unit.insert_task(task)
        self.workspace.trees.added(task)
        decision.tell("async.task.queued", queued_of(task, by=by))
        if by is not None:
            kind = LinkKind.DELEGATION if task.kind is TaskKind.DELEGATED else LinkKind.EVENT
            self.workspace.tallies.link(decision, kind, by, self.agent_id)
        self.queue_up(task)
        decision.then(self.dispatch)

    def queue_up(self, item: Work) -> None:
        """Put work into its queue. Before all else goes on what others wait for: the place of its loop is free."""
        if isinstance(item, TaskRecord) and item.deadline_at is not None:
            self.workspace.deadlines.watch(item)
        if self._keeps_others_waiting(item):
            self._queue_of(item).push_first(item)
        else:
            self._queue_of(item).push(item)

    def take_out_mail(self, mail: MailRecord) -> None:
        """Take a mail out of its turn, if it waits here."""
        self._queue_of(mail).remove_mail(mail.id)

    def find_waiting(self, task_id: str) -> TaskRecord | None:
        """The task, if it waits here."""
        found = self.queue.find_task(task_id)
        return found if found is not None or self._calls is None else self._calls.find_task(task_id)

    def take_out(self, task_id: str) -> TaskRecord | None:
        """Take a waiting task out of its turn; None if it does not wait here."""
        found = self.queue.remove_task(task_id)
        return found if found is not None or self._calls is None else self._calls.remove_task(task_id)

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
        """Cancel a task that waits or runs, unless it ends first. Then its tools are gone and its end is durable."""
        await self._end_early(task_id, cause, lambda running, decision: running.cancel(decision, reason))

    async def fail_task(self, task_id: str, cause: str, error: WhispererError) -> None:
        """Let a task that waits or runs fail with this error, unless it ends first."""
        await self._end_early(task_id, cause, lambda running, decision: running.fail_early(decision, error))

    async def halt_loops(self) -> None:
        """Cancel the workers of all loops and return when they have ended, with their tools."""
        await asyncio.gather(*(loop.halt() for loop in list(self.loops.values())))

    def take_up_loops(self) -> None:
        """Go on with the loops that were held up, as far as the agent may."""
        for loop in list(self.loops.values()):
            loop.take_up()

    def add_loop(self, loop: AILoop) -> None:
        self.loops[loop.task.id] = loop
        self.workspace.running[loop.task.id] = loop
        self.workspace.trees.enter(loop.task)
        self.workspace.deadlines.begun(loop.task, self.limits.max_task_seconds)
        self.queue.occupy(loop.task.thread_id)
        if self._calls is not None:
            self._calls.occupy(loop.task.thread_id)

    def remove_loop(self, decision: Decision, task: TaskRecord) -> None:
        """Forget the loop of a task that has ended; the next of its thread may begin."""
        self.loops.pop(task.id).give_back_place()
        del self.workspace.running[task.id]
        if not self.workspace.running:
            self.workspace.deadlines.none_run()
        self.queue.release(task.thread_id)
        if self._calls is not None:
            self._calls.release(task.thread_id)
        self.workspace.trees.leave(decision, task)

    def loop_ended(self, decision: Decision, task: TaskRecord) -> None:
        """A task has ended: begin the next one when that is submitted, or come to rest."""
        self.remove_loop(decision, task)
        self._rest_or_go_on(decision)

    def was_active(self, at: float) -> None:
        """A task began or ended then. Clocks may be set back."""
        self.active_at = max(self.active_at, at)

    @property
    def used(self) -> AgentUsage:
        """What the agent has used so far."""
        for loop in self.loops.values():
            loop.running.count_up()
        return self._used

    @used.setter
    def used(self, used: AgentUsage) -> None:
        self._used = used

    def count_usage(self, usage: Usage) -> None:
        self._used = replace(self._used, usage=self._used.usage + usage)
        self.workspace.reservations.count(usage)

    def _queue_of(self, item: Work) -> WorkQueue:
        is_call = item.awaited if isinstance(item, MailRecord) else item.answers_a_switch
        if not is_call:
            return self.queue
        if self._calls is None:
            self._calls = WorkQueue()
            for loop in self.loops.values():
                self._calls.occupy(loop.task.thread_id)
        return self._calls

    def _keeps_others_waiting(self, item: Work) -> bool:
        """Whether this goes on with a task that another waits for, or that holds a lock."""
        if isinstance(item, MailRecord) or not item.continuation:
            return False
        return item.answers_a_switch or bool(self.workspace.waits.graph.held_by(item.id))

    async def _end_early(self, task_id: str, cause: str, end: Callable[[RunningTask, Decision], None]) -> None:
        waiting = self.take_out(task_id)
        if waiting is not None:
            decision = self.workspace.decide(cause)
            end(RunningTask(self, waiting, self._journal_of(waiting)), decision)
            self._rest_or_go_on(decision)
            await decision.commit()
            return
        loop = self.loops.get(task_id)
        if loop is None:
            await self.workspace.store.flushed()  # its end, or its way back into the queue, is on its way to the disk
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
            await self.workspace.store.flushed()
            return
        decision = self.workspace.decide(cause)
        end(loop.running, decision)
        self.remove_loop(decision, loop.task)
        self._rest_or_go_on(decision)
        await decision.commit()

    def check_not_from_inside(self, what: str) -> None:
        """A tool that waits for its own end would wait for ever."""
        calling = loop_that_calls()
        if calling is not None and calling.agent is self:
            raise StateError(f"A tool of '{self.agent_id}' cannot {what} its own agent. Do it from outside.")

    @property
    def _is_held_up(self) -> bool:
        workspace = self.workspace
        return bool(self._halting or workspace.closing or workspace.on_probation or self.equipment.missing_tools)

    def _may_take(self) -> bool:
        """Whether the agent may begin another task now."""
        if self._is_held_up or not lifecycle.takes_work(self.record):
            return False
        running = len(self.loops)
        if self._calls is not None:  # what answers a waiting agent runs beside these
            running = sum(not loop.task.answers_a_switch for loop in self.loops.values())
        return running < self.limits.max_concurrent_tasks

    def _has_place(self) -> bool:
        """Whether there is something to begin and the session has a place for it; if not, it is waited for."""
        return self.queue.has_free() and self.workspace.places.may_begin(self, self.agent_id, self._take_turn)

    def _take_turn(self) -> None:
        """There is a place now. What waited for it may be gone meanwhile: then the agent comes to rest."""
        self.dispatch()
        decision = self.workspace.decide(f"agent:{self.agent_id}")
        self._rest_or_go_on(decision)
        if decision.unit:
            decision.submit()

    def _may_answer(self) -> bool:
        """Whether the agent may begin to answer another that waits for it."""
        return not self._is_held_up and lifecycle.takes_calls(self.record)

    def _rest_or_go_on(self, decision: Decision) -> None:
        """After a loop has ended: come to rest if that was the last, else take what waits when this is submitted."""
        calls = self._calls is not None and self._may_answer() and self._calls.has_free()
        if calls or (self._may_take() and self._has_place()):
            decision.then(self.dispatch)
        elif not self.loops and self.record.state is AgentState.ACTIVE and not self._halting:
            self._transition(decision, Action.REST)

    def _journal_of(self, task: TaskRecord) -> list[StepRecord]:
        """The steps of a task that waits: it has some if it is taken up again."""
        return self.workspace.store.steps(task.session_id, task.id) if task.started_at is not None else []

    def _begin(self, item: Work) -> None:
        """Start the loop of a task, or of the mail that becomes one, in one unit with its first step."""
        decision = self.workspace.decide(_cause_of(item))
        self.was_active(decision.at)
        if isinstance(item, MailRecord):
            busy = {loop.task.thread_id for loop in self.loops.values()}
            task = task_for_mail(item, task_id=self.workspace.ids.new(), now=decision.at, busy_threads=busy)
            task = on_default_budget(task, self.limits)
            self.workspace.post.deliver(decision, item, task.id)
            decision.unit.insert_task(task)
            self.workspace.trees.added(task)
            if task.deadline_at is not None:
                self.workspace.deadlines.watch(task)
        else:
            task = replace(item, state=TaskState.RUNNING, attempts=1, started_at=decision.at)
            decision.unit.update_task(task)
        if self.record.state is not AgentState.ACTIVE:
            self._transition(decision, Action.WORK)
        if isinstance(item, MailRecord) or item.started_at is None:
            self._used = replace(self._used, tasks=self._used.tasks + 1)
        loop = AILoop(self, task, [] if isinstance(item, MailRecord) else self._journal_of(item))
        self.add_loop(loop)
        if task.answers_a_switch:
            self.workspace.switchboard.task_began(task)
        loop.running.announce(decision)
        loop.begin(decision)

    def _transition(
        self,
        decision: Decision,
        action: Action,
        *,
        plan: SleepPlan | None = None,
        reason: str = "",
        limit: str | None = None,
    ) -> None:
        before = self.record
        self.record = lifecycle.apply(before, action, plan=plan, reason=reason, limit=limit)
        if self.record is before:
            return
        if before.started is not self.record.started:
            self.workspace.limits.started += 1 if self.record.started else -1
        if action is Action.START:
            self.record = replace(self.record, started_at=decision.at)
        if before.sleep is not None and self.record.sleep is not before.sleep and before.sleep.until is not None:
            self.workspace.scheduler.cancel(self.timer_id)
            decision.unit.delete_timer(self.workspace.session_id, self.timer_id)
        decision.unit.update_agent(self.record)
        if action in _ANNOUNCED:
            decision.tell(_ANNOUNCED[action], {"agentId": self.agent_id, "reason": reason})
        if before.state is not self.record.state:
            decision.tell(
                "agent.state_changed", change_of(before, self.record, action, offset=self.workspace.clock.offset)
            )
        elif before.sleep is not self.record.sleep:
            decision.tell(
                "agent.sleep_changed", change_of(before, self.record, action, offset=self.workspace.clock.offset)
            )

    @property
    def timer_id(self) -> str:
        """The timer that ends the agent's sleep."""
        return f"wake:{self.agent_id}"


def _cause_of(item: Work) -> str:
    return f"mail:{item.id}" if isinstance(item, MailRecord) else f"task:{item.id}"

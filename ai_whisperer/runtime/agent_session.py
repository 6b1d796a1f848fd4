"""One live agent: its record, its queue, the loops that run for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec.structs import replace

from ai_whisperer.core import lifecycle
from ai_whisperer.core.lifecycle import Action
from ai_whisperer.core.queueing import Work, WorkQueue
from ai_whisperer.core.sleeping import wakes
from ai_whisperer.core.tasks import task_for_mail, wake_up
from ai_whisperer.errors import QueueFullError, StateError
from ai_whisperer.models.base import Model
from ai_whisperer.records import (
    AgentRecord,
    AgentState,
    MailRecord,
    SleepPlan,
    StepKind,
    StepRecord,
    StepState,
    TaskRecord,
    TaskState,
    TimerKind,
    TimerRecord,
    Usage,
)
from ai_whisperer.runtime.ai_loop import AILoop, loop_that_calls
from ai_whisperer.runtime.equipment import Equipment
from ai_whisperer.runtime.notices import change_of, queued_of
from ai_whisperer.runtime.running_task import RunningTask
from ai_whisperer.runtime.workspace import Decision, Workspace
from ai_whisperer.store.base import AgentUsage
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.registry import ToolRegistry

_ANNOUNCED = {
    Action.START: "agent.started",
    Action.PAUSE: "agent.paused",
    Action.RESUME: "agent.resumed",
    Action.STOP: "agent.stopped",
}


class AgentSession:
    """An agent in memory: a few kilobytes, and no asyncio task unless a loop runs."""

    __slots__ = ("_dispatching", "_halting", "equipment", "loops", "queue", "record", "used", "workspace")

    def __init__(self, workspace: Workspace, record: AgentRecord, own_tools: Iterable[Tool] = ()) -> None:
        self.workspace = workspace
        self.record = record
        self.queue = WorkQueue()
        self.loops: dict[str, AILoop] = {}
        self.used = AgentUsage()
        self.equipment = Equipment(workspace, own_tools)
        self._halting = False
        self._dispatching = False

    @property
    def agent_id(self) -> str:
        return self.record.id

    @property
    def state(self) -> AgentState:
        return self.record.state

    @property
    def registry(self) -> ToolRegistry:
        return self.equipment.registry(self.record)

    @property
    def model(self) -> Model:
        return self.equipment.model(self.record)

    @property
    def may_step(self) -> bool:
        """Whether a loop of this agent may begin another step."""
        held_up = self._halting or self.workspace.closing or self.equipment.missing_tools
        return self.record.state is AgentState.ACTIVE and not held_up

    def give_tools(self, decision: Decision, tools: Iterable[Tool]) -> None:
        """Hand the agent tools of its own, and let it go on if it waited for them."""
        names = self.equipment.give_tools(self.record, tools)
        self.redefine(decision, replace(self.record, own_tools=names))
        self.equipment.look_for_missing_tools(self.record)
        decision.then(self.take_up_loops)
        decision.then(self.dispatch)

    def check_room(self) -> None:
        """Raise `QueueFullError` if the agent can take no more work."""
        limit = self.record.definition.limits.max_queue_length
        if len(self.queue) >= limit:
            raise QueueFullError(
                f"The queue of '{self.agent_id}' is full ({limit} items); nothing was accepted. Try again later, "
                "or raise max_queue_length."
            )

    def accept_task(self, decision: Decision, task: TaskRecord) -> None:
        """Queue a new task and begin it as soon as it may."""
        decision.unit.insert_task(task)
        decision.tell("async.task.queued", queued_of(task))
        self.queue.push(task)
        decision.then(self.dispatch)

    def accept_mail(self, decision: Decision, mail: MailRecord) -> None:
        """Put a mail into the mailbox; it becomes a task when its turn comes, at once if the agent has nothing to do.

        A sleeper is woken by high or urgent mail, and by any mail if `mail_received` is among its wake events.
        """
        self.queue.push(mail)
        if self.record.state is not AgentState.PAUSED:
            self._wake_for_mail(decision, [mail])
        decision.then(self.dispatch)

    def dispatch(self) -> None:
        """Begin as much of the waiting work as may run now."""
        if self._dispatching:
            return  # a task that ended as soon as it began: the loop below goes on
        self._dispatching = True
        try:
            while self._may_take() and (item := self.queue.take()) is not None:
                self._begin(item)
        finally:
            self._dispatching = False

    def check_startable(self) -> None:
        """Raise `StateError` if the agent cannot be started now."""
        self._check_not_halting()
        lifecycle.apply(self.record, Action.START)

    def start(self, decision: Decision) -> None:
        self._check_not_halting()
        self._transition(decision, Action.START)
        decision.then(self.dispatch)

    def pause(self, decision: Decision, reason: str) -> None:
        """Let no new step begin. The steps under way go on to their end."""
        self._check_not_halting()
        self._transition(decision, Action.PAUSE, reason=reason)
        for loop in self.loops.values():
            loop.interrupt_wait()

    async def interrupt(self) -> None:
        """Cancel the model requests in flight and return when they are gone. The agent is paused already."""
        await asyncio.gather(*(loop.interrupt_request() for loop in list(self.loops.values())))

    def resume(self, decision: Decision) -> None:
        self._check_not_halting()
        self._transition(decision, Action.RESUME)
        if self.loops:
            self._transition(decision, Action.WORK)
        self._wake_for_mail(decision, self.queue)
        decision.then(self.take_up_loops)
        decision.then(self.dispatch)

    def sleep(self, decision: Decision, plan: SleepPlan, reason: str) -> None:
        """Sleep as planned, as soon as no loop runs any more."""
        self._check_not_halting()
        self._transition(decision, Action.SLEEP, plan=plan, reason=reason)
        if plan.until is not None:
            timer = TimerRecord(
                session_id=self.workspace.session_id,
                id=self._timer_id,
                agent_id=self.agent_id,
                kind=TimerKind.WAKE,
                due_at=plan.until,
            )
            decision.unit.put_timer(timer)
            self.arm(timer)

    def wake(self, decision: Decision, reason: str) -> None:
        """End the sleep and tell the agent why."""
        self._check_not_halting()
        self._transition(decision, Action.WAKE, reason=reason)
        task = wake_up(
            self.record,
            reason,
            task_id=self.workspace.ids.new(),
            arrival=self.workspace.next_arrival(),
            cause=decision.cause,
            now=decision.at,
        )
        self.accept_task(decision, task)

    def arm(self, timer: TimerRecord) -> None:
        """Have the timer fire when it is due, at once if it is past."""
        self.workspace.scheduler.at(timer.due_at, timer.id, lambda: self._timer_fired(timer))

    async def stop(self, cause: str, reason: str) -> None:
        """Cancel what runs; when this returns it is gone and the stop is durable. Mail and queue are kept."""
        self._check_not_halting()
        self._check_not_from_inside("stop")
        lifecycle.apply(self.record, Action.STOP)
        self._halting = True
        try:
            await self.halt_loops()
        except asyncio.CancelledError:
            self._halting = False
            self._go_on_after_all(cause)
            raise
        decision = self.workspace.decide(cause)
        for loop in list(self.loops.values()):
            loop.running.cancel(decision, "The agent was stopped.")
            self.remove_loop(loop.task)
        self._transition(decision, Action.STOP, reason=reason)
        durable = decision.submit()
        self._halting = False
        model = self.equipment.take_model()
        await asyncio.shield(durable)
        if model is not None:
            await model.close()

    async def cancel_task(self, task_id: str, cause: str, reason: str) -> None:
        """Cancel a task that waits or runs, unless it ends first. Then its tools are gone and its end is durable."""
        waiting = self.queue.remove_task(task_id)
        if waiting is not None:
            decision = self.workspace.decide(cause)
            RunningTask(self, waiting, self._journal_of(waiting)).cancel(decision, reason)
            decision.then(self.dispatch)
            await decision.commit()
            return
        loop = self.loops.get(task_id)
        if loop is None:
            await self.workspace.store.flushed()  # its end is on its way to the disk
            return
        self._check_not_from_inside("cancel a task of")
        try:
            await loop.doom()
        except asyncio.CancelledError:
            loop.spare()
            raise
        if task_id not in self.loops:
            await self.workspace.store.flushed()
            return
        decision = self.workspace.decide(cause)
        loop.running.cancel(decision, reason)
        self.remove_loop(loop.task)
        self._rest_or_go_on(decision)
        await decision.commit()

    async def halt_loops(self) -> None:
        """Cancel the workers of all loops and return when they have ended, with their tools."""
        await asyncio.gather(*(loop.halt() for loop in list(self.loops.values())))

    async def free(self) -> None:
        """Let go of the model client."""
        model = self.equipment.take_model()
        if model is not None:
            await model.close()

    def redefine(self, decision: Decision, record: AgentRecord) -> None:
        """Take a new definition; loops that run use it from their next step on."""
        self.record = record
        self.equipment.forget_registry()
        decision.unit.update_definition(record)
        decision.tell("agent.redefined", {"agentId": self.agent_id})

    def requeue(self, decision: Decision, task: TaskRecord) -> TaskRecord:
        """Make an ended task a queued one again: a request that failed may be asked anew. See `take_back`."""
        self.workspace.post.reclaim(decision, task)
        for step in self.workspace.store.steps(task.session_id, task.id):
            if step.kind is StepKind.MODEL and step.state is StepState.FAILED:
                decision.unit.put_step(replace(step, state=StepState.STARTED, failures=0, error=None, finished_at=None))
        queued = replace(task, state=TaskState.QUEUED, attempts=0, error=None, finished_at=None)
        decision.unit.update_task(queued)
        decision.tell("async.task.queued", queued_of(queued))
        return queued

    def take_back(self, task: TaskRecord, durable: asyncio.Future[None]) -> None:
        """Put a task into the queue once its journal is durable, so that it can be read when its turn comes."""

        def queue(future: asyncio.Future[None]) -> None:
            if future.exception() is None and not self.workspace.closing:
                self.queue.push(task)
                self.dispatch()

        durable.add_done_callback(queue)

    def take_up_loops(self) -> None:
        """Go on with the loops that were held up, as far as the agent may."""
        for loop in list(self.loops.values()):
            loop.take_up()

    def add_loop(self, loop: AILoop) -> None:
        self.loops[loop.task.id] = loop
        self.workspace.running[loop.task.id] = loop

    def remove_loop(self, task: TaskRecord) -> None:
        """Forget the loop of a task that has ended; the next of its thread may begin."""
        del self.loops[task.id]
        del self.workspace.running[task.id]
        self.queue.release(task.thread_id)

    def loop_ended(self, decision: Decision, task: TaskRecord) -> None:
        """A task has ended: begin the next one when that is submitted, or come to rest."""
        self.remove_loop(task)
        self._rest_or_go_on(decision)

    def count_usage(self, usage: Usage) -> None:
        self.used = replace(self.used, usage=self.used.usage + usage)

    @property
    def _timer_id(self) -> str:
        return f"wake:{self.agent_id}"

    def _check_not_halting(self) -> None:
        if self._halting:
            raise StateError(f"Agent '{self.agent_id}' is being stopped. Wait until it is stopped, then start it.")

    def _check_not_from_inside(self, what: str) -> None:
        """A tool that waits for its own end would wait for ever."""
        calling = loop_that_calls()
        if calling is not None and calling.agent is self:
            raise StateError(f"A tool of '{self.agent_id}' cannot {what} its own agent. Do it from outside.")

    def _may_take(self) -> bool:
        """Whether the agent may begin another task now."""
        room = len(self.loops) < self.record.definition.limits.max_concurrent_tasks
        held_up = self._halting or self.workspace.closing or self.workspace.on_probation or self.equipment.missing_tools
        return room and not held_up and lifecycle.takes_work(self.record)

    def _rest_or_go_on(self, decision: Decision) -> None:
        """After a loop has ended: come to rest if that was the last, else take what waits when this is submitted."""
        if self._may_take() and self.queue.has_free():
            decision.then(self.dispatch)
        elif not self.loops and self.record.state is AgentState.ACTIVE and not self._halting:
            self._transition(decision, Action.REST)

    def _go_on_after_all(self, cause: str) -> None:
        """Whoever wanted the stop gave up waiting for it: it did not happen."""
        self.take_up_loops()
        decision = self.workspace.decide(cause)
        self._rest_or_go_on(decision)
        decision.submit()

    def _wake_for_mail(self, decision: Decision, waiting: Iterable[Work]) -> None:
        """End the sleep if one of these is a mail that wakes."""
        sleep = self.record.sleep
        mails = (item for item in waiting if isinstance(item, MailRecord))
        mail = next((mail for mail in mails if sleep is not None and wakes(mail, sleep)), None)
        if mail is not None:
            self._transition(decision, Action.WAKE, reason=f"mail {mail.id} from {mail.sender}")

    def _journal_of(self, task: TaskRecord) -> list[StepRecord]:
        """The steps of a task that waits: it has some if it is taken up again."""
        return self.workspace.store.steps(task.session_id, task.id) if task.started_at is not None else []

    def _begin(self, item: Work) -> None:
        """Start the loop of a task, or of the mail that becomes one, in one unit with its first step."""
        decision = self.workspace.decide(_cause_of(item))
        if isinstance(item, MailRecord):
            task = task_for_mail(item, task_id=self.workspace.ids.new(), now=decision.at)
            self.workspace.post.deliver(decision, item, task.id)
            decision.unit.insert_task(task)
        else:
            task = replace(item, state=TaskState.RUNNING, attempts=1, started_at=decision.at)
            decision.unit.update_task(task)
        if self.record.state is not AgentState.ACTIVE:
            self._transition(decision, Action.WORK)
        if isinstance(item, MailRecord) or item.started_at is None:
            self.used = replace(self.used, tasks=self.used.tasks + 1)
        loop = AILoop(self, task, [] if isinstance(item, MailRecord) else self._journal_of(item))
        self.add_loop(loop)
        loop.running.announce(decision)
        loop.begin(decision)

    def _timer_fired(self, timer: TimerRecord) -> None:
        if self._halting:
            self.arm(replace(timer, due_at=self.workspace.clock.now() + 1))  # the stop may yet be given up
            return
        decision = self.workspace.decide(f"timer:{timer.id}")
        if self.record.sleep is not None:
            self.wake(decision, "the time has come")
        decision.unit.delete_timer(timer.session_id, timer.id)
        decision.submit()

    def _transition(
        self, decision: Decision, action: Action, *, plan: SleepPlan | None = None, reason: str = ""
    ) -> None:
        before = self.record
        self.record = lifecycle.apply(before, action, plan=plan, reason=reason)
        if before.sleep is not None and self.record.sleep is not before.sleep and before.sleep.until is not None:
            self.workspace.scheduler.cancel(self._timer_id)
            decision.unit.delete_timer(self.workspace.session_id, self._timer_id)
        decision.unit.update_agent(self.record)
        if action in _ANNOUNCED:
            decision.tell(_ANNOUNCED[action], {"agentId": self.agent_id, "reason": reason})
        if before.state is not self.record.state:
            decision.tell("agent.state_changed", change_of(before, self.record, action))
        elif before.sleep is not self.record.sleep:
            decision.tell("agent.sleep_changed", change_of(before, self.record, action))


def _cause_of(item: Work) -> str:
    return f"mail:{item.id}" if isinstance(item, MailRecord) else f"task:{item.id}"

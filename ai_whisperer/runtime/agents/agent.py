"""One live agent: its lifecycle, from start to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from ai_whisperer.core import lifecycle
from ai_whisperer.core.lifecycle import Action
from ai_whisperer.core.queueing import Work
from ai_whisperer.core.sleeping import keeps_awake, shown_until, wakes
from ai_whisperer.core.tasks import parent_of, wake_up
from ai_whisperer.domain.agents import AgentRecord, AgentState, SleepPlan
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.notifications.agents import (
    AgentPaused,
    AgentRedefined,
    AgentResumed,
    AgentSleepChanged,
    AgentStarted,
    AgentStateChanged,
    AgentStopped,
    AgentTold,
)
from ai_whisperer.domain.tasks import Origin, TaskRecord
from ai_whisperer.domain.timers import TimerKind, TimerRecord
from ai_whisperer.errors import StateError
from ai_whisperer.models.base import Model
from ai_whisperer.runtime.agents.parts import Parts
from ai_whisperer.runtime.agents.toolkit import Toolkit
from ai_whisperer.runtime.agents.work import AgentWork
from ai_whisperer.runtime.session.background import to_its_end
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.registry import ToolRegistry
from ai_whisperer.tools.workplace import Workplace

_ACTIVE = AgentState.ACTIVE
_ANNOUNCED: dict[Action, type[AgentTold]] = {
    Action.START: AgentStarted,
    Action.PAUSE: AgentPaused,
    Action.RESUME: AgentResumed,
    Action.STOP: AgentStopped,
}


class LiveAgent:
    """What can be done to an agent. A call that does not fit its state raises `StateError` and changes nothing.

    `limits` are those that hold for it. While it `is_being_stopped` nothing can be done to it. One that `is_new` has no
    row yet: whoever creates it writes one, with all that is done to it in the same decision.
    """

    __slots__ = (
        "_stopping_soon",
        "_workplace",
        "agent_id",
        "is_being_stopped",
        "is_new",
        "limits",
        "parts",
        "record",
        "toolkit",
        "work",
    )

    def __init__(self, parts: Parts, record: AgentRecord, own_tools: Iterable[Tool] = ()) -> None:
        self.parts = parts
        self.record = record
        self.agent_id = record.id
        self.toolkit = Toolkit(parts.supplies, own_tools)
        self.work = AgentWork(self)
        self.limits: EffectiveLimits = parts.stated.for_agent(record.definition.limits)
        self._workplace: Workplace | None = None
        self.is_being_stopped = self.is_new = False
        self._stopping_soon: asyncio.Task[None] | None = None

    @property
    def state(self) -> AgentState:
        return self.record.state

    @property
    def missing_tools(self) -> tuple[str, ...]:
        """Tools that it may use and that nobody has provided: without them it waits."""
        return self.toolkit.missing_tools

    def renew_limits(self) -> None:
        """They have changed, or what they follow from has."""
        self.limits = self.parts.stated.for_agent(self.record.definition.limits)
        self._workplace = None

    @property
    def workplace(self) -> Workplace:
        """What of the machine the agent's tools may use."""
        if self._workplace is None:
            self._workplace = self.parts.supplies.folders.of(self.agent_id, self.record.definition, self.limits)
        return self._workplace

    @property
    def own_tools(self) -> tuple[Tool, ...]:
        """The functions that were provided for it alone."""
        return self.toolkit.own_tools

    @property
    def registry(self) -> ToolRegistry:
        return self.toolkit.known_registry or self.toolkit.registry(self.record)

    def model(self, name: str) -> Model:
        return self.toolkit.model(name)

    def barred_models(self) -> Collection[str]:
        """Those of its models that are not asked now, since they refused it."""
        return self.toolkit.barred_models(self.parts.kernel.clock.now)

    def bar_model(self, name: str, until: float) -> None:
        self.toolkit.bar_model(name, until)

    @property
    def may_step(self) -> bool:
        """Whether a loop of this agent may begin another step."""
        held_up = self.is_being_stopped or self.parts.kernel.closing or self.toolkit.missing_tools
        return self.record.state is _ACTIVE and not held_up

    def give_tools(self, decision: Decision, tools: Iterable[Tool]) -> None:
        """Hand the agent tools of its own, and let it go on if it waited for them."""
        self.toolkit.give_tools(self.record, tools)
        # For what it had and was not given again, it goes on waiting.
        names = self.toolkit.tools_to_remember(self.record.definition)
        known = dict.fromkeys((*self.record.own_tools, *names))
        self.redefine(decision, replace(self.record, own_tools=tuple(known)))
        decision.then(self.work.take_up_loops)
        decision.then(self.work.dispatch)

    def accept_mail(self, decision: Decision, mail: MailRecord) -> None:
        """Put a mail into the mailbox; it becomes a task when its turn comes, at once if the agent has nothing to do.

        A sleeper is woken by high or urgent mail, and by any mail if `mail_received` is among its wake events. A mail
        whose sender waits is answered at once, and the agent sleeps on.
        """
        self.work.queue_up(mail)
        if self.record.sleep is not None and not mail.awaited:
            self.wake_for(decision, [mail])
        if lifecycle.takes_calls(self.record):  # whoever starts or resumes it lets it begin what waits
            decision.then(self.work.dispatch)

    def take_mail_back(self, decision: Decision, mails: Sequence[MailRecord]) -> None:
        """Put mails that no model was shown into the mailbox again; like new ones they may end a sleep."""
        for mail in mails:
            self.work.queue_up(mail)
        self.wake_for(decision, [mail for mail in mails if not mail.awaited])

    def check_startable(self) -> None:
        """Raise `StateError` if the agent cannot be started now or is already, `LimitError` if too many are."""
        self._check_not_halting()
        if lifecycle.apply(self.record, Action.START) is self.record:
            raise StateError(
                f"Agent '{self.agent_id}' is {self.state} and already started; nothing was changed. Stop it first: it "
                "takes a new definition when it is started."
            )
        self.parts.started.check(self.agent_id)

    def start(self, decision: Decision) -> None:
        """Begin to take work; nothing happens if the agent does so already. Raises `LimitError` if too many do."""
        self._check_not_halting()
        if not self.record.started:
            self.parts.started.check(self.agent_id)
        self.transition(decision, Action.START)
        self.parts.supervisor.cancel_start(decision, self.agent_id)
        decision.then(self.work.dispatch)

    def pause(self, decision: Decision, reason: str, *, limit: str | None = None) -> None:
        """Let no new step begin. The steps under way go on to their end.

        An agent that is paused for a limit goes on when the limit is raised, all others when they are resumed.
        """
        self._check_not_halting()
        self.transition(decision, Action.PAUSE, reason=reason, limit=limit)
        for loop in self.work.loops.values():
            loop.interrupt_wait()
        self._let_others_pass()

    async def interrupt(self) -> None:
        """Cancel the model requests in flight and return when they are gone. The agent is paused already."""
        await asyncio.gather(*(loop.interrupt_request() for loop in list(self.work.loops.values())))

    def resume(self, decision: Decision) -> None:
        self._check_not_halting()
        self.transition(decision, Action.RESUME)
        if self.work.loops:
            self.transition(decision, Action.WORK)
        self.wake_for(decision, self.work.queue)
        decision.then(self.work.take_up_loops)
        decision.then(self.work.dispatch)

    def sleep(self, decision: Decision, plan: SleepPlan, reason: str) -> None:
        """Sleep as planned, as soon as no loop runs any more.

        Wake-ups, events and mail that would wake the agent may wait in its queue already: then it stays awake for
        them, or what came a moment before the sleep would be slept over.
        """
        self._check_not_halting()
        self.transition(decision, Action.SLEEP, plan=plan, reason=reason)
        if plan.until is not None:
            timer = TimerRecord(
                session_id=self.parts.kernel.session_id,
                id=self.timer_id,
                agent_id=self.agent_id,
                kind=TimerKind.WAKE_AT if plan.by_wall_clock else TimerKind.WAKE,
                due_at=plan.until,
            )
            decision.unit.put_timer(timer)
            self.arm(timer)
        waiting = next((item for item in self.work.queue if self._keeps_awake(item, plan)), None)
        if waiting is not None:
            self.transition(decision, Action.WAKE, reason=f"{waiting.id} is waiting")
            decision.then(self.work.dispatch)

    def wake(
        self,
        decision: Decision,
        reason: str,
        *,
        details: str | None = None,
        cause: str | None = None,
        origin: Origin | None = None,
        by: str | None = None,
    ) -> None:
        """End the sleep and tell the agent why; `details` are more words about it, for the agent alone.

        `by` is the agent, or the user, that broadcast the event which ends the sleep.
        """
        self._check_not_halting()
        self.transition(decision, Action.WAKE, reason=reason)
        task = wake_up(
            self.record,
            details or reason,
            task_id=self.parts.kernel.ids.new(),
            arrival=self.parts.kernel.next_arrival(),
            cause=cause or decision.cause,
            parent_id=parent_of(decision.cause),
            now=decision.at,
            origin=origin,
        )
        self.work.accept_task(decision, task, by=by)

    def wake_for(self, decision: Decision, waiting: Iterable[Work]) -> None:
        """End the sleep, unless the agent is paused, if one of these is a mail or a scheduled task that wakes it."""
        sleep = self.record.sleep
        if sleep is None or self.record.state is AgentState.PAUSED:
            return
        for item in waiting:
            if isinstance(item, MailRecord) and wakes(item, sleep):
                self.transition(decision, Action.WAKE, reason=f"mail {item.id} from {item.sender}")
                return
            if isinstance(item, TaskRecord) and self.parts.schedules.wakes(item):
                self.transition(decision, Action.WAKE, reason=item.cause)
                return

    def listens_for(self, event: str) -> bool:
        """Whether the agent sleeps and the event wakes it."""
        return self.record.sleep is not None and event in self.record.sleep.wake_events and not self.is_being_stopped

    def subscribes_to(self, event: str) -> bool:
        """Whether the event becomes a task of the agent."""
        subscribes = self.record.definition.subscribes
        return bool(subscribes) and (event in subscribes or "*" in subscribes)

    def arm(self, timer: TimerRecord) -> None:
        """Have the timer fire when it is due, at once if it is past."""
        scheduler = self.parts.kernel.timers
        schedule = scheduler.at_wall if timer.kind is TimerKind.WAKE_AT else scheduler.at
        schedule(timer.due_at, timer.id, lambda: self._timer_fired(timer))

    async def stop(self, cause: str, reason: str) -> None:
        """Cancel what runs; when this returns it is gone and the stop is durable. Mail and queue are kept.

        Nothing happens if the agent is stopped already, but that it does not start again by itself; a stop for failures
        that is under way is waited for.
        """
        self.work.check_not_from_inside("stop")
        if self.is_being_stopped and self._stopping_soon is not None:
            await asyncio.wait([self._stopping_soon])
        if self._begin_stop():
            await self._finish_stop(cause, reason)
        else:
            self.parts.supervisor.stays_stopped(self.agent_id, cause)
            await self.parts.kernel.flushed()  # the stop before may still be on its way to the disk

    def stop_soon(self, cause: str, reason: str, *, also: Callable[[Decision], None]) -> None:
        """Begin no new step, and stop as soon as what is under way has been cancelled; nothing if that cannot be.

        What `also` decides is in one unit with the stop.
        """
        with suppress(StateError):
            if self._begin_stop():
                stopping = self._finish_stop(cause, reason, also)
                self._stopping_soon = self.parts.kernel.background.run(stopping, name=f"stop of {self.agent_id}")

    def _begin_stop(self) -> bool:
        """Let nothing new begin; False if the agent is stopped already."""
        self._check_not_halting()
        self.is_being_stopped = lifecycle.apply(self.record, Action.STOP) is not self.record
        self._let_others_pass()
        return self.is_being_stopped

    async def _finish_stop(self, cause: str, reason: str, also: Callable[[Decision], None] = lambda _: None) -> None:
        try:
            await self.work.halt_loops()
        except asyncio.CancelledError:
            self.is_being_stopped = False
            self._go_on_after_all(cause)
            raise
        decision = self.parts.kernel.decide(cause)
        for loop in list(self.work.loops.values()):
            self.parts.task_end.cancel(decision, loop.running, "The agent was stopped.")
        self.parts.task_end.agent_stopped(decision, self.work.waiting)
        self.transition(decision, Action.STOP, reason=reason)
        also(decision)
        durable = decision.submit()
        self.is_being_stopped = False
        models = self.toolkit.take_models()
        self.toolkit.forget_bars()
        try:
            await asyncio.shield(durable)
        finally:  # the session may be closed meanwhile
            if models:
                await to_its_end(_closed(models))  # nobody else has them any more

    async def free(self) -> None:
        """Let go of the model clients."""
        await _closed(self.toolkit.take_models())

    def redefine(self, decision: Decision, record: AgentRecord) -> None:
        """Take a new definition; loops that run use it from their next step on."""
        self.record = record
        self.renew_limits()
        self.toolkit.forget_registry()
        self.toolkit.look_for_missing_tools(record)
        decision.unit.update_definition(record)
        decision.tell(AgentRedefined.of(record, self.toolkit.missing_tools))

    def _let_others_pass(self) -> None:
        """Keep nobody waiting for a resource that a loop of this agent, which may not go on, waits for too."""
        for task_id in self.work.loops:
            self.parts.turns.held_up(task_id)

    def _check_not_halting(self) -> None:
        if self.is_being_stopped:
            raise StateError(f"Agent '{self.agent_id}' is being stopped. Wait until it is stopped, then start it.")

    def _go_on_after_all(self, cause: str) -> None:
        """Whoever wanted the stop gave up waiting for it: it did not happen."""
        self.work.take_up_loops()
        decision = self.parts.kernel.decide(cause)
        self.parts.limit_changes.let_go_on(decision, [self])
        self.work.rest_or_go_on(decision)
        decision.submit()

    def _keeps_awake(self, item: Work, plan: SleepPlan) -> bool:
        """Whether what waits in the queue lets the agent not fall asleep."""
        return keeps_awake(item, plan) or (isinstance(item, TaskRecord) and self.parts.schedules.wakes(item))

    def _timer_fired(self, timer: TimerRecord) -> None:
        if self.is_being_stopped:
            again = replace(timer, kind=TimerKind.WAKE, due_at=self.parts.kernel.clock.now() + 1)
            self.arm(again)  # the stop may yet be given up
            return
        decision = self.parts.kernel.decide(f"timer:{timer.id}")
        if self.record.sleep is not None:
            self.wake(decision, "the sleep time is over")
        decision.unit.delete_timer(timer.session_id, timer.id)
        decision.submit()

    def transition(
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
            self.parts.started.changed(before, self.record)
            if self.record.started:
                self.record = replace(self.record, started_at=decision.at)
        if before.sleep is not None and self.record.sleep is not before.sleep and before.sleep.until is not None:
            self.parts.kernel.timers.cancel(self.timer_id)
            decision.unit.delete_timer(self.parts.kernel.session_id, self.timer_id)
        if not self.is_new:
            decision.unit.update_agent(self.record)
        if action in _ANNOUNCED:
            decision.tell(_ANNOUNCED[action](agent_id=self.agent_id, reason=reason))
        if before.state is not self.record.state:
            decision.tell(AgentStateChanged.of(before, self.record, action, sleeping_until=self._shown_until()))
        elif before.sleep is not self.record.sleep:
            decision.tell(AgentSleepChanged.of(before, self.record, action, sleeping_until=self._shown_until()))

    def _shown_until(self) -> float | None:
        """What the wall clock shows when the agent's sleep is over, if it sleeps and that is known."""
        sleep = self.record.sleep
        return None if sleep is None else shown_until(sleep, offset=self.parts.kernel.clock.offset)

    @property
    def timer_id(self) -> str:
        """The timer that ends the agent's sleep."""
        return f"wake:{self.agent_id}"


async def _closed(models: Iterable[Model]) -> None:
    """Close all of them, whatever becomes of one."""
    for outcome in await asyncio.gather(*(model.close() for model in models), return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome

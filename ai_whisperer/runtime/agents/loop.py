"""The AI loop of one task: model request, tool calls, …, final answer, each step journaled before and after.

The loop asks the running task what comes next. The beginning of a step is written in the same unit as the result of
the step before; when that is durable, the step is done. A loop can end between any two steps (pause, close, crash) and
be begun again from its journal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from ai_whisperer.core.next_step import CallTools, Compact, PendingCall, RequestModel
from ai_whisperer.core.supervising import restart_key
from ai_whisperer.domain.compactions import Compaction
from ai_whisperer.domain.tasks import COMPACTION_TASK, StepRecord, TaskRecord
from ai_whisperer.errors import WhispererError
from ai_whisperer.runtime.agents.compaction import (
    CompactionStep,
    becoming,
    compaction_after,
    compaction_asked_for,
    reason_to_compact,
    with_sizes,
)
from ai_whisperer.runtime.agents.conversation import Conversation
from ai_whisperer.runtime.agents.inquiry import Inquiry
from ai_whisperer.runtime.agents.looking_up import LookUp, look_up_wanted
from ai_whisperer.runtime.agents.mcp import prepare_mcp
from ai_whisperer.runtime.agents.model_step import ModelStep
from ai_whisperer.runtime.agents.model_turn import Asking, NoTurnError, model_turn, waited_for_retry
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.runtime.agents.task import RunningTask, StuckLoopError
from ai_whisperer.runtime.agents.tool_step import run_tool
from ai_whisperer.runtime.session.current import current_loop
from ai_whisperer.runtime.session.decision import Decision

_log = logging.getLogger(__name__)

_SECONDS_UNTIL_TAKEN_UP = 1.0
"""So long nothing goes on after a worker was cut off: the event loop may be ending."""

_LARGE_BYTES = 256 << 10
"""A conversation of this size takes a turn of the event loop by itself."""

_CALLS_AT_ONCE = 50
"""So many calls of one answer begin before others have their turn."""


class AILoop:
    """Does the steps of one running task. Its worker is an asyncio task that the loop owns."""

    __slots__ = (
        "_agent",
        "_dooms",
        "_durable",
        "_has_place",
        "_has_reserved",
        "_interrupted",
        "_next",
        "_tool_waits",
        "asking",
        "conversation",
        "is_waiting",
        "running",
        "worker",
    )

    def __init__(self, agent: Owner, task: TaskRecord, steps: list[StepRecord]) -> None:
        self._agent = agent
        self.running = RunningTask(agent, task, steps)
        self.is_waiting = False
        self.asking: Asking | None = None
        self.worker: asyncio.Task[None] | None = None
        self._dooms = 0
        self._interrupted = False
        self._durable: asyncio.Future[None] | None = None
        self._next: RequestModel | Compact | CallTools | LookUp | None = None
        self._has_place = self._has_reserved = False
        self._tool_waits = 0
        self.conversation = Conversation(agent, self.running.journal)

    @property
    def context_bytes(self) -> int:
        """What its conversation takes in memory."""
        return self.conversation.size

    @property
    def agent(self) -> Owner:
        return self._agent

    @property
    def task(self) -> TaskRecord:
        """The task, with all that it has used so far."""
        self.running.journal.count_up()
        return self.running.journal.task

    def begin(self, decision: Decision) -> None:
        """Decide the next step, journal its beginning, submit, and let the worker do it."""
        self._take_place()  # first: what follows from the decision may begin others
        self._advance(decision)
        self._interrupted = False
        if self._next is not None:
            parts = self._agent.parts
            # In a context of its own: whoever happens to begin this loop, perhaps another one, lends it no variables.
            self.worker = parts.kernel.event_loop.create_task(
                self._work(), name=f"loop {self.running.journal.task.id}", context=parts.kernel.context.copy()
            )
            self.worker.add_done_callback(self._worker_ended)
        else:
            self.give_back_place()
            self.running.settled()

    def interrupt_wait(self) -> None:
        """Cut a wait for the next attempt short: nothing is under way in it."""
        if self.is_waiting and self.worker is not None:
            self._interrupted = True
            self.worker.cancel()

    async def interrupt_request(self) -> None:
        """Cancel a model request in flight; it is repeated when the loop goes on."""
        if isinstance(self._next, RequestModel | Compact):
            await self.halt()

    async def halt(self) -> None:
        """Cancel the worker and return when it has ended, with all that it ran. The journal stays as it is."""
        worker = self.worker
        if worker is not None:
            self._interrupted = True
            worker.cancel()
            await asyncio.wait([worker])
            self._worker_ended(worker)

    def abandon(self) -> None:
        """Cancel the worker without waiting: the store has failed, and nothing it does can be kept."""
        self._dooms += 1
        if self.worker is not None:
            self.worker.cancel()

    def take_up(self) -> None:
        """Go on after having been held up; nothing happens if the worker still works or the agent may not step.

        Whoever calls this may be another loop, or have more to take up: a fault in here is the end of this task alone.
        """
        if self.is_ready and not self.running.only_waits() and self.may_have_place(self.take_up):
            decision = self._decide()
            try:
                if self.running.held_back:
                    self.running.count_start(decision)
                self.begin(decision)
            except Exception as error:  # noqa: BLE001 - as in `_work`
                self._fail(error)
                self._clear()
                self.give_back_place()

    def may_have_place(self, go_on: Callable[[], None]) -> bool:
        """Whether the session has a place for the loop to work. If not, `go_on` is called when there is one."""
        if self.running.journal.task.answers_a_switch:
            return True
        return self._agent.parts.slots.may_begin(self, self.running.journal.task.agent_id, go_on)

    def _take_place(self) -> None:
        """An answer to one that waits takes none, else loops could wait for each other for ever."""
        if not self._has_place and not self.running.journal.task.answers_a_switch:
            self._has_place = True
            self._agent.parts.slots.take()

    def give_back_place(self) -> None:
        """The loop has ended or rests: another may work in its place."""
        if self._has_place:
            self._has_place = False
            self._agent.parts.slots.give_back()

    @asynccontextmanager
    async def without_place(self) -> AsyncIterator[None]:
        """Let another loop work in the place of this one while it only waits: for a task, or for the next attempt.

        Then it goes on when there is a place again, or at once if its wait was cut short.
        """
        self._tool_waits += 1
        self.give_back_place()
        try:
            yield
            if self._tool_waits == 1 and not self.running.journal.task.answers_a_switch:
                task = self.running.journal.task
                await self._agent.parts.slots.take_again(task.agent_id, task.id, self._take_place_again)
        finally:
            self._tool_waits -= 1
            if self._tool_waits:
                self.give_back_place()  # another call of the same answer has begun to wait meanwhile
            else:
                self._take_place_again()

    def _take_place_again(self) -> None:
        if self.worker is not None:
            self._take_place()

    @property
    def is_ready(self) -> bool:
        """Whether the loop would go on if it had something to do: it does nothing now, and nobody holds it up."""
        task = self.running.journal.task
        if self.worker is not None or self._dooms or task.state.ended or self._agent.parts.roster.on_probation:
            return False
        return self._agent.may_step and not self._crashed_a_moment_ago

    @property
    def is_cut_off(self) -> bool:
        """Whether others cancelled the worker: the event loop ends, or some code cancelled what it should not."""
        return self.worker is not None and self.worker.cancelling() > 0 and not (self._interrupted or self._dooms)

    @property
    def rests(self) -> bool:
        """Whether there is nothing to do now: all that the task can do is wait, or its loop crashed a moment ago."""
        return self._crashed_a_moment_ago or self.running.only_waits()

    @property
    def _crashed_a_moment_ago(self) -> bool:
        not_before = self.running.journal.task.not_before
        return not_before is not None and not_before > self._agent.parts.kernel.clock.now()

    def plan_restart(self) -> None:
        """See to it that a loop that crashed goes on when its time has come."""
        if self.task.not_before is not None and not self.task.state.ended:
            self._agent.parts.kernel.timers.at(self.task.not_before, restart_key(self.task.id), self.take_up)

    def spare(self) -> None:
        """Take a `doom` back. The loop goes on unless somebody else wants its end."""
        self._dooms -= 1
        self.take_up()

    async def doom(self) -> None:
        """Halt for good: whatever happens to the agent meanwhile, this loop does not begin again."""
        self._dooms += 1
        await self.halt()

    async def _work(self) -> None:
        """Do the steps until the task ends or the loop is held up; never raise."""
        current_loop.set(self)
        try:
            while (action := self._next) is not None:
                if self._durable is not None:
                    durable, self._durable = self._durable, None
                    await durable
                await self._doing(action)
        except asyncio.CancelledError:
            return
        except Exception as error:  # noqa: BLE001 - a fault of ours ends this task, never the process or another agent
            self._fail(error)
        if self.worker is not None:
            self.worker.remove_done_callback(self._worker_ended)  # what is to be done then is done here
        self._clear()
        self.give_back_place()

    def _clear(self) -> None:
        self._agent.parts.permission.worker_ended(self.running.journal.task.id)
        self.worker = None
        self._agent.parts.spending.release(self.running.journal.task.id)
        self.running.settled()

    def _worker_ended(self, worker: asyncio.Task[None]) -> None:
        """The worker was cancelled, perhaps before it could do anything at all."""
        if self.worker is not worker:
            return
        self._clear()
        if not self._interrupted and not self._dooms:
            # Cut off: then go on, later, and let no other begin in its place before that.
            self._agent.parts.kernel.event_loop.call_later(_SECONDS_UNTIL_TAKEN_UP, self._go_on_after_all)
            return
        self.give_back_place()
        if self._interrupted:
            self._interrupted = False
            self.take_up()  # the agent may have been resumed meanwhile

    def _go_on_after_all(self) -> None:
        if self.worker is None:
            self.give_back_place()
            self.take_up()

    def _doing(self, action: RequestModel | Compact | CallTools | LookUp) -> Coroutine[Any, Any, None]:
        """What does the next step, whose beginning is durable, and decides what comes after it."""
        if type(action) is RequestModel:
            return self._request_model()
        if type(action) is CallTools:
            return self._call_tools(action.calls)
        return self._compact() if type(action) is Compact else self._look_up(action)

    async def _look_up(self, wanted: LookUp) -> None:
        with self._agent.parts.kernel.reads.under_way.one_more():
            self.running.found = await look_up_wanted(self._agent, self.running.journal.task, wanted.action)
            self._advance(self._decide())

    async def _request_model(self) -> None:
        """Ask the model; a request that would be too long becomes a compaction, and is made after it."""
        conversation, journal = self.conversation, self.running.journal
        await conversation.bring_up_to_date()
        if conversation.is_passed_over:
            conversation.widen(widening := self._decide())
            widening.submit()
        if conversation.size > _LARGE_BYTES:
            await asyncio.sleep(0)  # reading it has taken its time, and so does making a request of it
        if journal.task.kind is COMPACTION_TASK:
            self._begin_compaction(journal.steps[-1], compaction_asked_for(self._agent, conversation))
            return
        if not conversation.is_small and journal.steps[-1].retry_at is None:
            wanted = await reason_to_compact(self._agent, conversation, journal.steps)
            if wanted is not None:
                self._begin_compaction(journal.steps[-1], wanted)
                return
        answered = await self._ask(conversation.inquiry)
        if answered is None:
            return
        if answered.error is not None:
            wanted = compaction_after(answered, self._agent, conversation, journal.steps)
            if wanted is not None:
                self._begin_compaction(answered, wanted)
                return
            answered = with_sizes(answered, conversation.tokens(), journal.steps)
        decision = self._decide()
        decision.at = answered.finished_at or decision.at  # the log tells the time that the journal has
        self.running.record_answer(decision, answered)
        self._release()
        self._advance(decision)

    async def _ask(self, inquire: Callable[[], Inquiry]) -> StepRecord | None:
        """Ask a model once. None if the attempt has failed and is to be repeated, or if the loop is held up.

        What is asked is put together when the tools of MCP servers are known.
        """
        if self.running.journal.steps[-1].retry_at is not None and not await waited_for_retry(self._agent, self):
            self._next = None  # held up between two attempts
            return None
        if self._agent.registry.mcp is not None:
            await prepare_mcp(self._agent, self)  # first: whoever waits for a server keeps nothing from others
        inquiry = inquire()
        try:
            asked = await model_turn(self._agent, self, inquiry)
        except NoTurnError as error:
            return ModelStep(self._agent, self, inquiry).given_up(error)
        if asked is None:
            self._next = None  # held up before its turn, or paused for want of tokens or money
            return None
        self._has_reserved = asked.is_limited
        try:
            answered = await ModelStep(self._agent, self, inquiry).run(asked)
        finally:
            asked.turn.end()
        if answered is None:
            self._release()  # others may use it until the next attempt
        return answered

    def _release(self) -> None:
        """What was set aside for a request is counted as used by now, or is not needed."""
        if self._has_reserved:
            self._has_reserved = False
            self._agent.parts.spending.release(self.running.journal.task.id)

    def _begin_compaction(self, step: StepRecord, compaction: Compaction) -> None:
        decision, journal = self._decide(), self.running.journal
        journal.begin_compaction(decision, becoming(step, compaction), refused=step.error)
        self._release()
        self._next = None if self._dooms or not self._agent.may_step else Compact(step=journal.steps[-1])
        self._durable = decision.submit()

    async def _compact(self) -> None:
        """Make the conversation shorter, with the help of a model if need be; the journal says what came of it."""
        conversation, journal = self.conversation, self.running.journal
        await conversation.bring_up_to_date()
        making = CompactionStep(self._agent, journal.steps[-1], conversation, journal.task)
        inquiry = await making.prepare()
        step: StepRecord | None = journal.steps[-1]
        if inquiry is not None:
            step = await self._ask(lambda: inquiry)
        if step is None:
            return
        decision = self._decide()
        ended, compacted = making.finished(step, at=decision.at)
        decision.at = ended.finished_at or decision.at
        self.running.record_compaction(decision, ended, compacted)
        conversation.forget(compacted)
        self._release()
        self._advance(decision)

    async def _call_tools(self, calls: tuple[PendingCall, ...]) -> None:
        begun = [step for pending in calls if (step := self.running.journal.step(pending.number)) is not None]
        if len(begun) == 1:
            result = await run_tool(self._agent, begun[0])
            decision = self._decide()
            self.running.record_outside_result(decision, begun[0], result)
        else:
            async with asyncio.TaskGroup() as group:
                for number, step in enumerate(begun, 1):
                    group.create_task(self._call_tool(step))
                    if number % _CALLS_AT_ONCE == 0:
                        await asyncio.sleep(0)  # others have their turn, however many calls an answer asks for
            decision = self._decide()
        self._advance(decision)

    async def _call_tool(self, step: StepRecord) -> None:
        """Run one of several calls; its result is journaled at once, whatever becomes of the others."""
        result = await run_tool(self._agent, step)
        decision = self._decide()
        self.running.record_outside_result(decision, step, result)
        decision.submit()

    def _advance(self, decision: Decision) -> None:
        try:
            self._next = None if self._dooms else self.running.advance(decision)
        except StuckLoopError as error:
            self._crash(decision, error)
        finally:
            self.running.found = None
        if decision.unit.changes or decision.unit.notes:
            self._durable = decision.submit()

    def _fail(self, error: Exception) -> None:
        self._next = None
        if self._agent.parts.kernel.log.failure is not None:
            return  # the store has failed: everyone was told
        decision = self._decide()
        self._crash(decision, error)
        if decision.unit:
            decision.submit()

    def _crash(self, decision: Decision, error: Exception) -> None:
        self._next = None
        if not isinstance(error, WhispererError) or self.task.state.ended:
            _log.error("loop %s failed", self.task.id, exc_info=error)
        if not self.task.state.ended:
            self.running.crash(decision, error)
            decision.then(self.plan_restart)

    def _decide(self) -> Decision:
        return self._agent.parts.kernel.decide(f"task:{self.running.journal.task.id}")

"""The AI loop of one task: model request, tool calls, …, final answer, each step journaled before and after.

The loop asks `core.journal` what comes next, writes the beginning of it into the same unit as the result of the step
before, waits until that is durable, and does it. It can end between any two steps (pause, close, crash) and be begun
again from its journal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ai_whisperer.core import journal
from ai_whisperer.core.journal import CallTools, Complete, Continue, Fail, PendingCall, RequestModel
from ai_whisperer.errors import ContinuationLimitError, StoreError, WhispererError
from ai_whisperer.records import (
    ChannelResponse,
    Failure,
    StepKind,
    StepRecord,
    StepState,
    TaskKind,
    TaskRecord,
    TaskState,
    ToolResult,
    Turn,
)
from ai_whisperer.runtime.model_step import ModelStep
from ai_whisperer.runtime.notices import channels_of, finished_of, started_of
from ai_whisperer.runtime.tool_step import run_coordination_tool, run_tool
from ai_whisperer.runtime.workspace import Decision
from ai_whisperer.tools.coordination import CoordinationTool

if TYPE_CHECKING:
    from ai_whisperer.runtime.agent_session import AgentSession

_log = logging.getLogger(__name__)


class AILoop:
    """One running task of one agent."""

    __slots__ = (
        "_agent",
        "_doomed",
        "_durable",
        "_history",
        "_next",
        "_worker",
        "is_waiting",
        "on_settled",
        "steps",
        "task",
    )

    def __init__(self, agent: AgentSession, task: TaskRecord, steps: list[StepRecord]) -> None:
        self._agent = agent
        self.task = task
        self.steps = steps
        self.is_waiting = False
        self.on_settled: Callable[[], None] | None = None
        self._doomed = False
        self._worker: asyncio.Task[None] | None = None
        self._durable: asyncio.Future[None] | None = None
        self._next: RequestModel | CallTools | None = None
        self._history: list[Turn] | None = None

    @property
    def is_running(self) -> bool:
        return self._worker is not None

    @property
    def worker(self) -> asyncio.Task[None] | None:
        """The asyncio task that does the steps, while there is one."""
        return self._worker

    def announce(self, decision: Decision) -> None:
        decision.tell(
            "async.task.started",
            {
                "agentId": self.task.agent_id,
                "taskId": self.task.id,
                "threadId": self.task.thread_id,
                "kind": self.task.kind,
                "attempt": self.task.attempts,
                "mailId": self.task.mail_id,
            },
        )

    def begin(self, decision: Decision) -> None:
        """Decide the next step, journal its beginning and let the worker do it."""
        if self._doomed:
            return
        self._advance(decision)
        if self._next is not None:
            self._worker = asyncio.get_running_loop().create_task(self._work(), name=f"loop {self.task.id}")

    def interrupt_wait(self) -> None:
        """Cut a wait for the next attempt short: nothing is under way in it."""
        if self.is_waiting and self._worker is not None:
            self._worker.cancel()

    async def interrupt_request(self) -> None:
        """Cancel a model request in flight; it is repeated when the loop goes on."""
        if isinstance(self._next, RequestModel):
            await self.halt()

    async def halt(self) -> None:
        """Cancel the worker and return when it has ended, with all that it ran. The journal stays as it is."""
        worker = self._worker
        if worker is not None:
            worker.cancel()
            await asyncio.wait([worker])

    def abandon(self) -> None:
        """Cancel the worker without waiting: the store has failed, and nothing it does can be kept."""
        self._doomed = True
        if self._worker is not None:
            self._worker.cancel()

    async def doom(self) -> None:
        """Halt for good: whatever happens to the agent meanwhile, this loop does not begin again."""
        self._doomed = True
        await self.halt()

    def cancel(self, decision: Decision, reason: str) -> None:
        """End the task without a result. The worker has ended already; the caller submits the decision."""
        self._settle_open_steps(decision)
        self.end_cancelled(decision, reason)
        self._agent.remove_loop(self.task)
        self._return_mail(decision, give_up=False)

    def end_cancelled(self, decision: Decision, reason: str) -> None:
        """Record that the task ended without a result, one that has not begun too."""
        self._end(decision, TaskState.CANCELLED, error=Failure(code="cancelled", message=reason))
        decision.tell(
            "async.task.cancelled",
            {"agentId": self.task.agent_id, "taskId": self.task.id, "reason": reason},
        )

    def record_step(self, decision: Decision, step: StepRecord) -> None:
        """Put a step into the journal, in memory and in the unit."""
        if self.steps and self.steps[-1].number >= step.number:
            index = next(i for i, known in enumerate(self.steps) if known.number >= step.number)
            if self.steps[index].number == step.number:
                self.steps[index] = step
            else:
                self.steps.insert(index, step)
        else:
            self.steps.append(step)
        decision.unit.put_step(step)

    def update_task(self, decision: Decision, task: TaskRecord) -> None:
        self.task = task
        decision.unit.update_task(task)

    async def _work(self) -> None:
        """Do the steps until the task ends or the loop is held up; never raise."""
        try:
            while self._next is not None:
                await self._do_next()
        except asyncio.CancelledError:
            _log.debug("loop %s was interrupted", self.task.id)
        except StoreError:
            _log.debug("loop %s ends with the store", self.task.id)
        except Exception as error:
            # A fault of ours must end this task with its reason, never the process or another agent.
            _log.exception("loop %s failed", self.task.id)
            self._worker = None
            self._fail_unexpectedly(error)
        finally:
            self._worker = None
        self._settle()
        if self._agent.may_step and not self.task.state.ended and not self._doomed:
            self.begin(self._decide())  # the agent was resumed while this worker was being interrupted

    async def _do_next(self) -> None:
        if self._durable is not None:
            await self._durable
            self._durable = None
        match self._next:
            case RequestModel():
                await self._request_model()
            case CallTools(calls=calls):
                await self._call_tools(calls)

    async def _request_model(self) -> None:
        if self._history is None:
            self._history = self._load_history()
        turns = (*self._history, *journal.turns(self.task, self.steps))
        answered = await ModelStep(self._agent, self).run(turns)
        if answered is None:
            self._next = None  # held up between two attempts
            return
        decision = self._decide()
        self._record_answer(decision, answered)
        self._advance(decision)

    async def _call_tools(self, calls: tuple[PendingCall, ...]) -> None:
        begun = [step for step in self.steps if step.kind is StepKind.TOOL and step.state is StepState.STARTED]
        if len(calls) == 1:
            decision = self._decide()
            self._record_result(decision, begun[-1], await run_tool(self._agent, begun[-1]))
        else:
            async with asyncio.TaskGroup() as group:
                for step in begun:
                    group.create_task(self._call_tool(step))
            decision = self._decide()
        self._advance(decision)

    async def _call_tool(self, step: StepRecord) -> None:
        result = await run_tool(self._agent, step)
        decision = self._decide()
        self._record_result(decision, step, result)
        decision.submit()

    def _advance(self, decision: Decision) -> None:
        """Decide what comes next, journal its beginning, and submit. Without a next step the worker ends."""
        self._next = None
        limits = self._agent.record.definition.limits
        while True:
            action = journal.next_action(self.steps, max_steps=limits.max_steps_per_task)
            match action:
                case RequestModel() | CallTools() if not self._agent.may_step:
                    self._durable = decision.submit()
                    return
                case RequestModel():
                    self._begin_request(decision, action)
                case CallTools():
                    action = self._begin_calls(decision, action)
                    if not action.calls:
                        continue
                case Complete(response=response):
                    self._complete(decision, response)
                    return
                case Continue(response=response):
                    self._continue(decision, response)
                    return
                case Fail(failure=failure):
                    self._fail(decision, failure, TaskState.FAILED)
                    return
            self._next = action
            self._durable = decision.submit()
            return

    def _begin_request(self, decision: Decision, action: RequestModel) -> None:
        step = action.repeats
        if step is None:
            step = StepRecord(
                task_id=self.task.id,
                number=action.number,
                kind=StepKind.MODEL,
                state=StepState.STARTED,
                started_at=decision.at,
            )
        elif step.retry_at is not None:
            return  # the next attempt is journaled when its time has come
        else:
            step = replace(step, attempt=step.attempt + 1)
        self.record_step(decision, step)
        self.tell_started(decision, step)

    def _begin_calls(self, decision: Decision, action: CallTools) -> CallTools:
        """Journal the beginning of the calls; run those that touch only the store. Returns what is left to do."""
        left: list[PendingCall] = []
        for pending in action.calls:
            step = pending.interrupted or StepRecord(
                task_id=self.task.id,
                number=pending.number,
                kind=StepKind.TOOL,
                state=StepState.STARTED,
                call=pending.call,
                started_at=decision.at,
            )
            tool = self._agent.registry.find(pending.call.name)
            if isinstance(tool, CoordinationTool):
                self._record_result(decision, step, run_coordination_tool(self._agent, self, decision, step, tool))
            elif pending.interrupted is None:
                self.record_step(decision, step)
                self.tell_started(decision, step)
                left.append(pending)
            elif tool is not None and tool.idempotent:
                step = replace(step, attempt=step.attempt + 1)
                self.record_step(decision, step)
                self.tell_started(decision, step)
                left.append(pending)
            else:
                result = ToolResult(content=journal.OUTCOME_UNKNOWN, is_error=True)
                self._record_result(decision, step, result, state=StepState.UNKNOWN)
        return CallTools(calls=tuple(left))

    def _record_answer(self, decision: Decision, step: StepRecord) -> None:
        self._record_progress(decision)
        self.record_step(decision, step)
        self._tell_finished(decision, step)
        post = self._agent.workspace.post
        if self.task.mail_id is not None and step.number == 1:
            post.shown(decision, self.task.mail_id)
        for mail_id in journal.mails_shown_by(self.steps, step):
            post.shown(decision, mail_id)
        if step.answer is not None:
            self.task = replace(self.task, usage=self.task.usage + step.answer.usage)
            self._agent.count_usage(step.answer.usage)

    def _record_result(
        self, decision: Decision, step: StepRecord, result: ToolResult, *, state: StepState = StepState.DONE
    ) -> None:
        self._record_progress(decision)
        step = replace(step, state=state, result=result, finished_at=decision.at)
        self.record_step(decision, step)
        self._tell_finished(decision, step)

    def _record_progress(self, decision: Decision) -> None:
        """A step has ended, so the task is not what kills the process: the count of its starts begins again."""
        if self.task.attempts > 1:
            self.update_task(decision, replace(self.task, attempts=0))
            decision.then(self._settle)

    def _settle(self) -> None:
        """Tell, once, that the loop has shown itself harmless or does not run any more."""
        if self.on_settled is not None:
            settled, self.on_settled = self.on_settled, None
            settled()

    def _complete(self, decision: Decision, response: ChannelResponse) -> None:
        self._end(decision, TaskState.COMPLETED, response=response)
        decision.tell(
            "async.task.completed",
            {"agentId": self.task.agent_id, "taskId": self.task.id, "result": channels_of(response)},
        )
        self._hand_back(decision, give_up=False)

    def _continue(self, decision: Decision, response: ChannelResponse) -> None:
        limit = self._agent.record.definition.limits.max_continuations
        if self.task.continuation >= limit:
            error = ContinuationLimitError(
                f"The task asked to be continued more than {limit} times. Raise max_continuations or split the task."
            )
            self._fail(decision, _failure(error), TaskState.FAILED)
            return
        self._end(decision, TaskState.COMPLETED, response=response)
        following = TaskRecord(
            session_id=self.task.session_id,
            id=continuation_id(self.task),
            agent_id=self.task.agent_id,
            thread_id=self.task.thread_id,
            kind=TaskKind.CONTINUATION,
            prompt="Go on where you stopped.",
            arrival=self.task.arrival,
            cause=f"task:{self.task.id}",
            priority=self.task.priority,
            parent_id=self.task.id,
            continuation=self.task.continuation + 1,
            created_at=decision.at,
        )
        decision.tell(
            "async.task.continuation",
            {
                "agentId": self.task.agent_id,
                "taskId": self.task.id,
                "continuationId": following.id,
                "number": following.continuation,
                "result": channels_of(response),
            },
        )
        self._agent.accept_task(decision, following)
        self._hand_back(decision, give_up=False)

    def _fail(self, decision: Decision, failure: Failure, state: TaskState) -> None:
        self._end(decision, state, error=failure)
        decision.tell(
            "async.task.error",
            {
                "agentId": self.task.agent_id,
                "taskId": self.task.id,
                "state": state,
                "error": {"code": failure.code, "message": failure.message},
            },
        )
        self._hand_back(decision, give_up=True)

    def give_up(self, decision: Decision, error: WhispererError) -> None:
        """Set the task aside as a dead letter. Submits the decision."""
        self._settle_open_steps(decision)
        self._fail(decision, _failure(error), TaskState.DEAD)

    def _fail_unexpectedly(self, error: Exception) -> None:
        if self.task.state.ended:
            return
        decision = self._decide()
        self._settle_open_steps(decision)
        failure = Failure(code="internal", message=f"An internal error ended the task: {type(error).__name__}: {error}")
        self._fail(decision, failure, TaskState.FAILED)

    def _end(
        self,
        decision: Decision,
        state: TaskState,
        *,
        response: ChannelResponse | None = None,
        error: Failure | None = None,
    ) -> None:
        self.update_task(
            decision, replace(self.task, state=state, attempts=0, result=response, error=error, finished_at=decision.at)
        )
        decision.task_ended(self.task)

    def _hand_back(self, decision: Decision, *, give_up: bool) -> None:
        self._return_mail(decision, give_up=give_up)
        self._agent.loop_ended(decision, self.task)

    def _return_mail(self, decision: Decision, *, give_up: bool) -> None:
        for mail in self._agent.workspace.post.task_ended(decision, self.task.id, give_up=give_up):
            self._agent.queue.push(mail)

    def _settle_open_steps(self, decision: Decision) -> None:
        for step in [step for step in self.steps if step.state is StepState.STARTED]:
            if step.kind is StepKind.TOOL:
                result = ToolResult(content=journal.OUTCOME_UNKNOWN, is_error=True)
                settled = replace(step, state=StepState.UNKNOWN, result=result)
            else:
                settled = replace(
                    step, state=StepState.FAILED, error=Failure(code="cancelled", message="The task was ended.")
                )
            settled = replace(settled, finished_at=decision.at, retry_at=None)
            self.record_step(decision, settled)
            self._tell_finished(decision, settled)

    def _load_history(self) -> list[Turn]:
        """What the thread said before this task. What went before is durable by now, and so can be read."""
        if self.task.thread_id == self.task.id:
            return []
        store = self._agent.workspace.store
        earlier = store.tasks_of_thread(self.task.session_id, self.task.agent_id, self.task.thread_id)
        return [
            turn for task in earlier if task.id != self.task.id for turn in journal.turns(task, store.steps(task.id))
        ]

    def _decide(self) -> Decision:
        return self._agent.workspace.decide(f"task:{self.task.id}")

    def tell_started(self, decision: Decision, step: StepRecord) -> None:
        decision.tell("step.started", started_of(self.task, step))

    def _tell_finished(self, decision: Decision, step: StepRecord) -> None:
        decision.tell("step.finished", finished_of(self.task, step))


def continuation_id(task: TaskRecord) -> str:
    """The id of the task that continues this one, so that it can be found from it."""
    return f"{task.id.partition('~')[0]}~{task.continuation + 1}"


def _failure(error: WhispererError) -> Failure:
    return Failure(code=error.code, message=error.message)

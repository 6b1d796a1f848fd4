"""A task that runs: its journal, and the decisions from one step to the next. Nothing here waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from ai_whisperer.core import blame
from ai_whisperer.core.compacting import outcome_of
from ai_whisperer.core.failure_records import failure_from
from ai_whisperer.core.next_step import (
    OUTCOME_UNKNOWN,
    CallTools,
    Compact,
    Complete,
    Continue,
    Fail,
    Next,
    PendingCall,
    RequestModel,
)
from ai_whisperer.core.rambling import says_nothing_new, without_repetition
from ai_whisperer.core.repeating import Repeats, is_refused, not_run_again, refusals_at_end
from ai_whisperer.core.supervising import INTERNAL
from ai_whisperer.core.tasks import summary_of
from ai_whisperer.domain.compactions import CompactedThread
from ai_whisperer.domain.conversation import ChannelResponse, ToolResult
from ai_whisperer.domain.definition import CutAnswers
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.notifications.context import ContextCompacted
from ai_whisperer.domain.notifications.steps import StepFinished
from ai_whisperer.domain.notifications.tasks import (
    TaskRestarting,
    TaskStarted,
)
from ai_whisperer.domain.tasks import (
    COMPACTION_TASK,
    MODEL,
    STARTED,
    TOOL,
    Failure,
    Retried,
    StepKind,
    StepRecord,
    StepState,
    TaskKind,
    TaskRecord,
    TaskState,
    step_id,
)
from ai_whisperer.errors import BudgetError, ContinuationLimitError, LoopError, WhispererError
from ai_whisperer.runtime.agents.journal import TaskJournal
from ai_whisperer.runtime.agents.looking_up import Found, LookUp, is_wanted
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.runtime.agents.tool_step import run_coordination_tool
from ai_whisperer.runtime.limits.deadlines import overdue
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.tools.desk import CoordinationTool
from ai_whisperer.tools.function import Tool


class StuckLoopError(Exception):
    """The next step of a task is the same whatever is done: a fault of ours, which must not take the others' time."""


class RunningTask:
    """One task of one agent, from its first step to its end.

    `on_settled` is called once when the task has finished a step of the kind that was under way when the process died
    (a tool call rather than a model request), and so is not what killed it, or when it does not run any more. A task is
    `held_back` while it is to be seen whether the process dies without it. What was `found` in the store is for the
    decision that follows at once.
    """

    __slots__ = ("_agent", "_counted_out", "_suspected", "found", "held_back", "journal", "on_settled")

    def __init__(self, agent: Owner, task: TaskRecord, steps: list[StepRecord]) -> None:
        self._agent = agent
        self.journal = TaskJournal(agent, task, steps)
        under_way = [step.kind for step in steps if step.state is STARTED]
        self._suspected = TOOL if TOOL in under_way else MODEL
        self._counted_out = False
        self.held_back = False
        self.found: Found | None = None
        self.on_settled: Callable[[], None] | None = None

    def announce(self, decision: Decision) -> None:
        task = self.journal.task
        of_mail = task.kind is TaskKind.MAIL
        decision.tell(
            TaskStarted(
                agent_id=task.agent_id,
                task_id=task.id,
                thread_id=task.thread_id,
                kind=task.kind,
                attempt=task.attempts,
                mail_id=task.mail_id,
                priority=task.priority if of_mail else UNSET,
                summary=summary_of(task) if of_mail else UNSET,
            )
        )

    def advance(self, decision: Decision) -> RequestModel | Compact | CallTools | LookUp | None:
        """Decide what comes next and journal its beginning, or the end of the task. The caller submits.

        Returns what is to be done, or None if the task has ended or may not go on now. Raises `StuckLoopError` if there
        is something to do that leads nowhere; what was decided until then stands.
        """
        while True:
            action = self._on_its_terms(self.journal.next_action(), now=decision.at)
            if not (type(action) is RequestModel or type(action) is CallTools or type(action) is Compact):
                if (
                    type(action) is Complete
                    and self.found is None
                    and is_wanted(self._agent, self.journal.task, action)
                ):
                    return LookUp(action)
                self._end(decision, action)
                return None
            if not self._agent.may_step:
                return None
            if self.found is None and is_wanted(self._agent, self.journal.task, action):
                return LookUp(action)
            if type(action) is RequestModel:
                self._begin_request(decision, action)
                return action
            if type(action) is Compact:
                self.journal.begin_again(decision, action.step)
                return action
            known = len(decision.unit)
            left = self._begin_calls(decision, action)
            if not left.calls and self.only_waits():
                self._count_as_resting(decision)
                return None
            self._count_as_running(decision)
            if left.calls:
                return left
            self._check_progress(decision, known)

    def _end(self, decision: Decision, action: Complete | Continue | Fail) -> None:
        match action:
            case Complete(response=response):
                unseen = () if self.found is None else self.found.unseen
                self._agent.parts.task_end.complete(decision, self, response, unseen=unseen)
            case Continue():
                self._continue(decision, action)
            case Fail(failure=failure):
                self._agent.parts.task_end.fail(decision, self, failure)

    def _check_progress(self, decision: Decision, known: int) -> None:
        """Raise if there is no more in the decision than was known: all that follows would be the same again."""
        if len(decision.unit) == known:
            raise StuckLoopError(f"Nothing comes of the calls of task {self.journal.task.id}.")

    def _on_its_terms(self, action: Next, *, now: float) -> Next:
        """The action if the task has time and budget for it, else that it fails."""
        asks = type(action) is RequestModel
        if not (asks or type(action) is CallTools):
            return self._worth_continuing(action) if type(action) is Continue else action
        task = self.journal.task
        if asks and task.kind is COMPACTION_TASK and self._is_compacted:
            return Complete(response=ChannelResponse(final=outcome_of(self.journal.steps[-1].compaction)))
        if task.origin is not None and (late := overdue(task, now=now)) is not None:
            return Fail(failure=failure_from(late))
        if not asks:
            return action
        refused = refusals_at_end(self.journal.steps)
        if refused and refused >= self._agent.limits.max_same_calls:
            circle = LoopError(
                "The task made the same call with the same result again and again, and repeated it after it was "
                f"told so {refused} times. Tell it what to do instead, or raise max_same_calls."
            )
            return Fail(failure=failure_from(circle))
        if task.origin is not None and task.budget is not None:
            spent = self._agent.parts.trees.spent(task)
            if spent is not None:
                error = BudgetError(
                    f"The budget of the task and of all it caused is spent ({spent}). Give a larger one to a new task."
                )
                return Fail(failure=failure_from(error))
        return action

    def _worth_continuing(self, action: Continue) -> Continue | Complete:
        """The continuation, unless a cut answer is final for the agent, or the model only says the same again."""
        if action.cut and self._agent.record.definition.cut_answers is CutAnswers.FINAL:
            return Complete(response=action.response)
        if self.journal.task.output_schema is not None:
            return action  # what it says has to be the output in the end: a limit holds for what comes until then
        *before, _ = self._agent.parts.continuations.parts_of(self.journal.task)
        earlier = [part.result for part in before if part.result is not None]
        if not earlier or any(step.kind is StepKind.TOOL for step in self.journal.steps):
            return action  # one that has done something may say little about it
        if says_nothing_new(action.response, earlier):
            return Complete(response=without_repetition(action.response))
        return action

    def only_waits(self) -> bool:
        """Whether nothing can be done until the wait of a call is over."""
        waits, admission = self._agent.parts.waits, self._agent.parts.permission
        if not waits.of_task(self.journal.task.id):
            return False
        action = self.journal.next_action()
        return isinstance(action, CallTools) and all(
            admission.holds_back(step_id(self.journal.task.id, pending.number)) for pending in action.calls
        )

    def _count_as_resting(self, decision: Decision) -> None:
        """Take back that the task was begun while it waits for its turn: it cannot be what kills the process then.

        Tasks that wait for a reply or a lock are not begun again after a crash, and need not be counted out.
        """
        if (
            not self._counted_out
            and self.journal.task.attempts
            and self._agent.parts.permission.holds_back_any(self.journal.task.id)
        ):
            self._counted_out = True
            self.journal.update_task(decision, replace(self.journal.task, attempts=self.journal.task.attempts - 1))

    def _count_as_running(self, decision: Decision) -> None:
        if self._counted_out:
            self._counted_out = False
            self.journal.update_task(decision, replace(self.journal.task, attempts=self.journal.task.attempts + 1))

    def _begin_request(self, decision: Decision, action: RequestModel) -> None:
        step = action.repeats
        if step is None:
            step = StepRecord(
                session_id=self.journal.task.session_id,
                task_id=self.journal.task.id,
                number=action.number,
                kind=MODEL,
                state=STARTED,
                started_at=decision.at,
            )
            if steering := self._agent.work.steering:
                step = replace(step, said=steering.said_to(self.journal.task, now=decision.at))
        else:
            self.journal.begin_again(decision, step)
            return
        self.journal.begin(decision, step)

    @property
    def _is_compacted(self) -> bool:
        """Whether a task that only makes the conversation shorter has done so. Its first request becomes that."""
        steps = self.journal.steps
        return bool(steps) and steps[-1].state is not STARTED

    def record_compaction(self, decision: Decision, step: StepRecord, compacted: CompactedThread | None) -> None:
        """The conversation was made shorter, or cannot be."""
        self._clear_of_suspicion(decision, MODEL)
        requests = self.journal.count(step)
        self.journal.record_step(decision, step)
        decision.tell(StepFinished.of(self.journal.task, step, requests=requests))
        if compacted is not None:
            decision.unit.put_compacted(compacted)
            decision.tell(ContextCompacted.of(self.journal.task, step, compacted.compaction))
        if self.journal.task.budget is not None:
            self._count_in_tree()

    def _begin_calls(self, decision: Decision, action: CallTools) -> CallTools:
        """Journal the beginning of the calls; run those that touch only the store. Returns what is left to do."""
        left: list[PendingCall] = []
        repeated = Repeats(self.journal.steps)
        for pending in action.calls:
            step = self.journal.step_of(pending, at=decision.at)
            if self._agent.parts.waits.by_step and self._agent.parts.permission.holds_back(step.id):
                continue
            tool = self._agent.registry.find(pending.call.name)
            repeats = 0 if pending.interrupted is not None else repeated.of(pending.call)
            if repeats and repeats >= self._agent.limits.max_same_calls:
                self._refuse_again(decision, step, repeats)
            elif isinstance(tool, CoordinationTool):
                result = run_coordination_tool(self._agent, self.journal, decision, step, tool, self.found)
                if result is not None:
                    self.journal.record_result(decision, step, result)
                    continue
                self.journal.begin(decision, step)
            elif pending.interrupted is not None and (tool is None or not tool.may_repeat(pending.call.arguments)):
                result = ToolResult(content=OUTCOME_UNKNOWN, is_error=True)
                self.journal.record_result(decision, step, result, state=StepState.UNKNOWN)
            elif self._begins_outside(decision, pending, step, tool):
                left.append(pending)
        return CallTools(calls=tuple(left))

    def _refuse_again(self, decision: Decision, step: StepRecord, repeats: int) -> None:
        """Do not make a call that was made often enough; the model is told so."""
        if step.call is not None:
            if not any(map(is_refused, reversed(self.journal.steps))):  # the last are refused, if any are
                self._agent.parts.reached.refused(decision, self.journal.task, "max_same_calls", used=repeats)
            self.journal.record_result(decision, step, not_run_again(step.call, repeats))

    def _begins_outside(self, decision: Decision, pending: PendingCall, step: StepRecord, tool: Tool | None) -> bool:
        """Journal the beginning of a call with effects outside; False if it waits, or has its result already."""
        held = self._agent.parts.permission.admit(decision, self.journal.task, step, tool)
        if held is None:
            if pending.interrupted is not None:
                step = replace(step, attempt=step.attempt + 1, started_at=decision.at)
            self.journal.begin(decision, step)
        elif isinstance(held, ToolResult):
            shown = self._agent.parts.reached.bounded_result(
                self.journal.task.agent_id, self.journal.task.id, held.content
            )
            self.journal.record_result(decision, step, replace(held, content=shown))
        return held is None

    def record_answer(self, decision: Decision, step: StepRecord) -> None:
        self._clear_of_suspicion(decision, MODEL)
        requests = self.journal.count(step)
        self.journal.record_step(decision, step)
        decision.tell(StepFinished.of(self.journal.task, step, requests=requests))
        if step.answer is not None:
            self.journal.mark_shown(decision, step)
            if step.said is not None:
                self._agent.work.join(decision, step)
            task = self.journal.task
            if task.origin is not None and task.budget is not None:
                self._count_in_tree()

    def _count_in_tree(self) -> None:
        """What the task has used is used of the budget of its tree."""
        self.journal.count_up()
        self._agent.parts.trees.count(self.journal.task)

    def record_outside_result(self, decision: Decision, step: StepRecord, result: ToolResult) -> None:
        """A tool with effects outside has ended."""
        self._clear_of_suspicion(decision, TOOL)
        if result.run is not None and result.run.limit:
            self._agent.parts.reached.tool_ended(decision, self.journal.task, result.run)
        self.journal.record_result(decision, step, result)
        turns = self._agent.parts.turns
        if turns.freed:
            decision.then(turns.hand_over)

    def _clear_of_suspicion(self, decision: Decision, kind: StepKind) -> None:
        """What was under way when the process died has now ended well: count the starts of the task anew."""
        if self.journal.task.attempts > 1 and kind is self._suspected:
            self.journal.update_task(decision, replace(self.journal.task, attempts=0))
            decision.then(self.settled)

    @property
    def was_under_way(self) -> bool:
        """Whether a step had begun when the process died: one that waits for its next attempt does nothing."""
        return any(step.state is STARTED and step.retry_at is None for step in self.journal.steps)

    def let_go(self, decision: Decision, *, attempts: int = 0) -> None:
        """Hold the task back no more, and count so many starts of it."""
        self.held_back = False
        decision.unit.delete_timer(self.journal.task.session_id, blame.trial_key(self.journal.task.id))
        self.journal.update_task(decision, replace(self.journal.task, attempts=attempts, not_before=None))

    def count_start(self, decision: Decision, *, under_way: bool = True) -> None:
        """Count a start of the task before it is one, with its time if it is a trial."""
        if self.held_back:
            self.held_back = False
            decision.unit.delete_timer(self.journal.task.session_id, blame.trial_key(self.journal.task.id))
        attempts = blame.attempts_at_start(self.journal.task.attempts, under_way=under_way)
        not_before = decision.at if attempts > blame.SUSPECT else self.journal.task.not_before
        self.journal.update_task(decision, replace(self.journal.task, attempts=attempts, not_before=not_before))
        self.announce(decision)

    def settled(self) -> None:
        """Tell, once, that the loop has shown itself harmless or does not run any more."""
        if self.on_settled is not None:
            settled, self.on_settled = self.on_settled, None
            settled()

    def _continue(self, decision: Decision, action: Continue) -> None:
        parts, limit = self._agent.parts, self._agent.limits.max_continuations
        if self.journal.task.continuation >= limit:
            error = ContinuationLimitError(
                f"The task asked to be continued more than {limit} times. Raise max_continuations or split the task."
            )
            parts.task_end.fail(decision, self, failure_from(error))
            return
        locks = parts.waits.graph.held_by(self.journal.task.id)
        parts.task_end.continue_in_another(decision, self, action.response, locks=locks, cut=action.cut)

    def accept_continuation(self, decision: Decision, following: TaskRecord) -> None:
        """The same agent continues the task in another."""
        self._agent.work.accept_task(decision, following)

    def left(self, decision: Decision, mails: Sequence[MailRecord]) -> None:
        """The task has ended. Its agent has the mails back that no model was shown, and begins its next task."""
        self._agent.take_mail_back(decision, mails)
        self._agent.work.task_ended(decision, self.journal.task)

    def give_up(self, decision: Decision, error: WhispererError) -> None:
        """Set the task aside as a dead letter."""
        self._agent.parts.task_end.fail(decision, self, failure_from(error), TaskState.DEAD)

    def crash(self, decision: Decision, error: Exception) -> None:
        """The loop broke by a fault of ours or of what it runs: let it begin again after a while, or give it up.

        While the loop waits it keeps its thread and its place; see `AILoop.take_up`.
        """
        failure = failure_from(error)
        delay = None
        if failure.code == INTERNAL:
            delay = self._agent.parts.supervisor.delay_before_restart(self.journal.task)
        if delay is None:
            state = TaskState.DEAD if failure.code == INTERNAL else TaskState.FAILED
            details = error.data if isinstance(error, WhispererError) else {}
            self._agent.parts.task_end.fail(decision, self, failure, state, details)
            return
        self.journal.settle_open_tools(decision)
        not_before = decision.at + delay
        restarted = replace(self.journal.task, restarts=self.journal.task.restarts + 1, not_before=not_before)
        self.journal.update_task(decision, restarted)
        self._agent.parts.counters.retried[Retried.LOOP] += 1
        self.tell_restarting(decision, failure)

    def tell_restarting(self, decision: Decision, failure: Failure) -> None:
        """Say that the task goes on later, and why."""
        task = self.journal.task
        decision.tell(
            TaskRestarting(
                agent_id=task.agent_id,
                task_id=task.id,
                restarts=task.restarts,
                not_before=self._agent.parts.kernel.clock.shown(task.not_before or decision.at),
                error=failure,
            )
        )

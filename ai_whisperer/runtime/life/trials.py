"""Trials of tasks that may be what kills the process: see `core.blame` for which these are, and why."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ai_whisperer.core import blame
from ai_whisperer.domain.tasks import Failure, StepState
from ai_whisperer.domain.timers import TimerKind, TimerRecord
from ai_whisperer.errors import CrashLimitError
from ai_whisperer.runtime.session.workspace import Decision, Workspace

if TYPE_CHECKING:
    from ai_whisperer.runtime.agents.agent import AgentSession
    from ai_whisperer.runtime.agents.loop import AILoop
    from ai_whisperer.runtime.agents.task import RunningTask

_LONGEST_TRIAL_SECONDS = 60.0

CAUSE = "recovery"


def was_under_way(running: RunningTask) -> bool:
    """Whether a step had begun when the process died: one that waits for its next attempt does nothing."""
    return any(step.state is StepState.STARTED and step.retry_at is None for step in running.steps)


def hold_back(workspace: Workspace, running: RunningTask) -> None:
    """Let a task rest at whose start the process died: the process may show now whether it dies without it too."""
    decision = workspace.decide(CAUSE)
    task = running.task
    ran_seconds = decision.at - (task.not_before or decision.at)
    due_at = decision.at + blame.rest_seconds(ran_seconds, chance=workspace.random.random())
    running.held_back = True
    running.update_task(decision, replace(task, not_before=due_at))
    decision.unit.put_timer(
        TimerRecord(
            session_id=task.session_id,
            id=blame.trial_key(task.id),
            agent_id=task.agent_id,
            kind=TimerKind.TRIAL,
            due_at=due_at,
        )
    )
    told = (
        f"The process died at {task.attempts} starts of this task in a row. It resumes later, to see whether the "
        "process dies without it too."
    )
    running.tell_restarting(decision, Failure(code=CrashLimitError.code, message=told))
    decision.submit()


def let_go(running: RunningTask, decision: Decision, *, attempts: int = 0) -> None:
    """Hold the task back no more, and count so many starts of it."""
    running.held_back = False
    decision.unit.delete_timer(running.task.session_id, blame.trial_key(running.task.id))
    running.update_task(decision, replace(running.task, attempts=attempts, not_before=None))


def clear(workspace: Workspace, running: RunningTask) -> None:
    """The process died without the task, which was held back: it is no more than a suspect again."""
    decision = workspace.decide(CAUSE)
    let_go(running, decision, attempts=blame.SUSPECT)
    decision.submit()


def count_start(running: RunningTask, decision: Decision, *, under_way: bool = True) -> None:
    """Count a start of the task before it is one, with its time if it is a trial."""
    if running.held_back:
        running.held_back = False
        decision.unit.delete_timer(running.task.session_id, blame.trial_key(running.task.id))
    attempts = blame.attempts_at_start(running.task.attempts, under_way=under_way)
    not_before = decision.at if attempts > blame.SUSPECT else running.task.not_before
    running.update_task(decision, replace(running.task, attempts=attempts, not_before=not_before))
    running.announce(decision)


def begin_in_turn(workspace: Workspace, agent: AgentSession, loop: AILoop) -> None:
    """Go on with a loop as soon as there is a place for it."""
    if _can_begin(agent, loop) and loop.may_have_place(partial(begin_in_turn, workspace, agent, loop)):
        _begin_again(workspace, loop)


class Trials:
    """Lets suspects run one after the other, each until it has shown itself harmless or cannot run; then all else.

    One that takes too long is no longer waited for: the next suspect, and all else, goes on beside it. While the first
    of them is held back all else goes on, but for the other suspects; so it does while another session of the process
    has the turn.
    """

    def __init__(
        self,
        workspace: Workspace,
        suspects: Sequence[tuple[AgentSession, AILoop]],
        others: Sequence[tuple[AgentSession, AILoop]],
    ) -> None:
        self._workspace = workspace
        self._suspects = deque(suspects)
        self._others = list(others)

    def begin(self) -> None:
        if self._suspects and self._suspects[0][1].running.held_back:
            self._release_others()
        self._try_next()

    def go_on(self) -> None:
        """Whoever was on trial is done with it: it is the turn of another session, or of the next suspect here."""
        self._workspace.trial_turn.give_back(self._workspace)
        self._try_next()

    def _try_next(self) -> None:
        workspace = self._workspace
        while self._suspects and not workspace.closing:
            agent, loop = self._suspects[0]
            rests = loop.running.held_back and loop.rests
            if not (rests or _can_begin(agent, loop)):
                self._suspects.popleft()
            elif workspace.trial_turn.take(workspace, self._try_soon):
                self._try(loop, rests=rests)
                return
            else:
                break
        else:
            workspace.trial_turn.give_back(workspace)
        workspace.scheduler.cancel(CAUSE)
        self._release_others()

    def _try_soon(self) -> None:
        """It is the turn of this session; whoever had it before is still about to do something."""
        self._workspace.event_loop.call_soon(self._try_next)

    def _try(self, loop: AILoop, *, rests: bool) -> None:
        if rests:
            self._workspace.scheduler.at(loop.task.not_before or 0.0, CAUSE, self._try_next)
        elif loop.may_have_place(partial(self._have_place, loop)):
            self._begin(loop)
        elif self._workspace.on_probation:
            self._be_patient_with(loop)

    def _have_place(self, loop: AILoop) -> None:
        """There is a place for the suspect; those who ran before it may have kept all of them."""
        if self._suspects and self._suspects[0][1] is loop:
            self._try_next()

    def _begin(self, loop: AILoop) -> None:
        self._suspects.popleft()
        loop.running.on_settled = self.go_on
        self._be_patient_with(loop)
        _begin_again(self._workspace, loop)

    def _be_patient_with(self, loop: AILoop) -> None:
        due_at = self._workspace.clock.now() + _LONGEST_TRIAL_SECONDS
        self._workspace.scheduler.at(due_at, CAUSE, partial(self._lose_patience, loop))

    def _lose_patience(self, loop: AILoop) -> None:
        loop.running.on_settled = None
        self._release_others()
        self.go_on()

    def _release_others(self) -> None:
        self._workspace.on_probation = False
        others, self._others = self._others, []
        for agent, loop in others:
            begin_in_turn(self._workspace, agent, loop)
        suspects = {loop.task.id for _, loop in self._suspects}
        for agent in self._workspace.agents.values():
            for loop in list(agent.loops.values()):
                if loop.task.id not in suspects:
                    loop.take_up()
            agent.dispatch()
        self._workspace.places.look_again()


def _can_begin(agent: AgentSession, loop: AILoop) -> bool:
    return agent.may_step and loop.task.id in agent.loops and loop.worker is None


def _begin_again(workspace: Workspace, loop: AILoop) -> None:
    decision = workspace.decide(CAUSE)
    count_start(loop.running, decision, under_way=was_under_way(loop.running))
    decision.submit()
    loop.begin(workspace.decide(f"task:{loop.task.id}"))  # what it does now is its own doing, and belongs to its tree

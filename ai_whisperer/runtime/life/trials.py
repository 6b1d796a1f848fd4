"""Trials of tasks that may be what kills the process: see `core.blame` for which these are, and why."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from ai_whisperer.core import blame
from ai_whisperer.domain.tasks import Failure
from ai_whisperer.domain.timers import TimerKind, TimerRecord
from ai_whisperer.errors import CrashLimitError
from ai_whisperer.runtime.agents.agent import LiveAgent
from ai_whisperer.runtime.agents.loop import AILoop
from ai_whisperer.runtime.agents.task import RunningTask
from ai_whisperer.runtime.life.open_session import OpenSession

_LONGEST_TRIAL_SECONDS = 60.0

CAUSE = "recovery"


def hold_back(session: OpenSession, running: RunningTask) -> None:
    """Let a task rest at whose start the process died: the process may show now whether it dies without it too."""
    decision = session.kernel.decide(CAUSE)
    task = running.journal.task
    ran_seconds = decision.at - (task.not_before or decision.at)
    due_at = decision.at + blame.rest_seconds(ran_seconds, chance=session.kernel.random.random())
    running.held_back = True
    running.journal.update_task(decision, replace(task, not_before=due_at))
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


def clear(session: OpenSession, running: RunningTask) -> None:
    """The process died without the task, which was held back: it is no more than a suspect again."""
    decision = session.kernel.decide(CAUSE)
    running.let_go(decision, attempts=blame.SUSPECT)
    decision.submit()


def begin_in_turn(session: OpenSession, agent: LiveAgent, loop: AILoop) -> None:
    """Go on with a loop as soon as there is a place for it."""
    if _can_begin(agent, loop) and loop.may_have_place(partial(begin_in_turn, session, agent, loop)):
        _begin_again(session, loop)


class Trials:
    """Lets suspects run one after the other, each until it has shown itself harmless or cannot run; then all else.

    One that takes too long is no longer waited for: the next suspect, and all else, goes on beside it. While the first
    of them is held back all else goes on, but for the other suspects; so it does while another session of the process
    has the turn.
    """

    def __init__(
        self,
        session: OpenSession,
        suspects: Sequence[tuple[LiveAgent, AILoop]],
        others: Sequence[tuple[LiveAgent, AILoop]],
    ) -> None:
        self._session = session
        self._suspects = deque(suspects)
        self._others = list(others)

    def begin(self) -> None:
        if self._suspects and self._suspects[0][1].running.held_back:
            self._release_others()
        self._try_next()

    def go_on(self) -> None:
        """Whoever was on trial is done with it: it is the turn of another session, or of the next suspect here."""
        self._session.trial_turn.give_back(self._session)
        self._try_next()

    def _try_next(self) -> None:
        session = self._session
        while self._suspects and not session.kernel.closing:
            agent, loop = self._suspects[0]
            rests = loop.running.held_back and loop.rests and loop.task.id in agent.work.loops
            if not (rests or _can_begin(agent, loop)):
                self._suspects.popleft()
            elif session.trial_turn.take(session, self._try_soon):
                self._try(loop, rests=rests)
                return
            else:
                break
        else:
            session.trial_turn.give_back(session)
        session.kernel.timers.cancel(CAUSE)
        self._release_others()

    def _try_soon(self) -> None:
        """It is the turn of this session; whoever had it before is still about to do something."""
        self._session.kernel.event_loop.call_soon(self._try_next)

    def _try(self, loop: AILoop, *, rests: bool) -> None:
        if rests:
            loop.running.on_settled = self.go_on  # it may be cancelled before its rest is over
            self._session.kernel.timers.at(loop.task.not_before or 0.0, CAUSE, self._try_next)
        elif loop.may_have_place(partial(self._have_place, loop)):
            self._begin(loop)
        elif self._session.roster.on_probation:
            self._be_patient_with(loop)

    def _have_place(self, loop: AILoop) -> None:
        """There is a place for the suspect; those who ran before it may have kept all of them."""
        if self._suspects and self._suspects[0][1] is loop:
            self._try_next()

    def _begin(self, loop: AILoop) -> None:
        self._suspects.popleft()
        loop.running.on_settled = self.go_on
        self._be_patient_with(loop)
        _begin_again(self._session, loop)

    def _be_patient_with(self, loop: AILoop) -> None:
        due_at = self._session.kernel.clock.now() + _LONGEST_TRIAL_SECONDS
        self._session.kernel.timers.at(due_at, CAUSE, partial(self._lose_patience, loop))

    def _lose_patience(self, loop: AILoop) -> None:
        loop.running.on_settled = None
        self._release_others()
        self.go_on()

    def _release_others(self) -> None:
        self._session.roster.on_probation = False
        others, self._others = self._others, []
        for agent, loop in others:
            begin_in_turn(self._session, agent, loop)
        suspects = {loop.task.id for _, loop in self._suspects}
        for agent in self._session.roster.agents.values():
            for loop in list(agent.work.loops.values()):
                if loop.task.id not in suspects:
                    loop.take_up()
            agent.work.dispatch()
        self._session.slots.look_again()


def _can_begin(agent: LiveAgent, loop: AILoop) -> bool:
    return agent.may_step and loop.task.id in agent.work.loops and loop.worker is None


def _begin_again(session: OpenSession, loop: AILoop) -> None:
    decision = session.kernel.decide(CAUSE)
    loop.running.count_start(decision, under_way=loop.running.was_under_way)
    decision.submit()
    loop.begin(
        session.kernel.decide(f"task:{loop.task.id}")
    )  # what it does now is its own doing, and belongs to its tree

"""Loops that crash are begun again after a while; an agent that fails too often is stopped, and a person told of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import UNSET, Struct

from ai_whisperer.core.supervising import FAULTS, Fault, ended_in_outage, rest_seconds, restart_delay, too_many
from ai_whisperer.core.text import fitted
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.notifications.agents import AgentFailing
from ai_whisperer.domain.tasks import Priority, TaskRecord, TaskState
from ai_whisperer.domain.timers import TimerKind, TimerRecord
from ai_whisperer.errors import LimitError, StateError
from ai_whisperer.runtime.messaging.mail import Mail
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Roster

_SECONDS_UNTIL_TRIED_AGAIN = 60.0
"""So long an agent that could not be started, since too many are, waits for another chance."""


class _Verdict(Struct, frozen=True):
    """Why an agent is stopped, in short too, and when it starts again, if it does so by itself."""

    reason: str
    restart_at: float | None
    subject: str = "too many of its tasks failed"


class Supervisor:
    """Watches the failures of all agents of a session. One agent's failures never count against another.

    An agent that is stopped for faults of its provider starts again by itself, after a rest that grows with each stop
    until a task of it is completed. That it was stopped is mailed to the user, of stops in a row the first.

    The start that is due is durable; the number of stops in a row is not. After a restart of the process the next stop
    counts as the first: the rest is a short one again, and the user is mailed once more.
    """

    def __init__(self, kernel: Kernel, roster: Roster, mail: Mail) -> None:
        self._kernel = kernel
        self._roster = roster
        self._mail = mail
        self._faults: dict[str, deque[Fault]] = {}
        self._stops: dict[str, int] = {}
        self._starts: set[str] = set()

    def restore(self, failures: Iterable[tuple[str, str, float]]) -> None:
        """Count the failures of the time before as well: a restart of the process is no fresh start, one of it is."""
        agents = self._roster.agents
        for agent_id, code, at in failures:
            if code in FAULTS and agent_id in agents and at > (agents[agent_id].record.started_at or 0.0):
                self._faults.setdefault(agent_id, deque()).append(Fault(at, code))

    def resume(self) -> None:
        """Stop those that were to be stopped when the process died."""
        for agent_id, faults in list(self._faults.items()):
            record = self._roster.agents[agent_id].record
            now = self._kernel.clock.now()
            if record.started and too_many(record.definition.supervision, faults, now=now):
                self._stop(agent_id, "recovery", self._verdict(agent_id, "see the dead letters.", now=now))

    def plan(self, timer: TimerRecord) -> None:
        """Start the agent again when its time has come."""
        self._starts.add(timer.agent_id)
        self._kernel.timers.at(timer.due_at, timer.id, lambda: self._start(timer))

    def delay_before_restart(self, task: TaskRecord) -> float | None:
        """How long to wait until a loop that crashed begins again; None if it should not."""
        policy = self._roster.agents[task.agent_id].record.definition.supervision
        return restart_delay(policy, restarts=task.restarts, chance=self._kernel.random.random)

    def task_ended(self, decision: Decision, task: TaskRecord) -> None:
        """Judge the agent by how its task has ended."""
        if task.state.is_dead_letter:
            self._task_failed(decision, task)
        elif task.state is TaskState.COMPLETED:
            self._stops.pop(task.agent_id, None)  # it can do its work: what was before is no reason for a longer rest

    def _task_failed(self, decision: Decision, task: TaskRecord) -> None:
        """A task has failed for good: stop its agent if there were too many."""
        if task.error is None or task.error.code not in FAULTS:
            return
        agent_id = task.agent_id
        policy = self._roster.agents[agent_id].record.definition.supervision
        faults = self._faults.setdefault(agent_id, deque())
        faults.append(Fault(decision.at, task.error.code))
        if not too_many(policy, faults, now=decision.at):
            return
        verdict = self._verdict(agent_id, task.error.message, now=decision.at)
        restart_at = UNSET if verdict.restart_at is None else self._kernel.clock.shown(verdict.restart_at)
        decision.tell(AgentFailing(agent_id=agent_id, task_id=task.id, reason=verdict.reason, restart_at=restart_at))
        decision.then(lambda: self._stop(agent_id, f"task:{task.id}", verdict))

    def cancel_start(self, decision: Decision, agent_id: str) -> None:
        """The agent does not start by itself: somebody has started or stopped it, or its time has come.

        When it was somebody, the next stop is the first of a row again.
        """
        if decision.cause != f"timer:{_timer_id(agent_id)}":
            self._stops.pop(agent_id, None)
        if agent_id in self._starts:
            self._starts.discard(agent_id)
            self._kernel.timers.cancel(_timer_id(agent_id))
            decision.unit.delete_timer(self._kernel.session_id, _timer_id(agent_id))

    def forget(self, decision: Decision, agent_id: str) -> None:
        """The agent is deleted."""
        self.cancel_start(decision, agent_id)
        self._faults.pop(agent_id, None)

    def stays_stopped(self, agent_id: str, cause: str) -> None:
        """Somebody has stopped an agent that is stopped already: it does not start again by itself."""
        if agent_id in self._starts:
            decision = self._kernel.decide(cause)
            self.cancel_start(decision, agent_id)
            decision.submit()

    def _verdict(self, agent_id: str, last: str, *, now: float) -> _Verdict:
        """What follows from the faults that the agent has now, which are forgotten with that."""
        self._stops[agent_id] = self._stops.get(agent_id, 0) + 1
        policy, faults = self._roster.agents[agent_id].record.definition.supervision, self._faults.pop(agent_id)
        is_outage = ended_in_outage(faults)
        failed = f"{policy.max_failures} tasks failed within {policy.window_seconds:g} seconds, the last one: {last}"
        if is_outage:
            failed = f"The provider is down for longer than a task waits for it: {last}"
        rest = rest_seconds(
            [faults[-1]] if is_outage else faults, stops=self._stops[agent_id], chance=self._kernel.random.random
        )
        if rest is None:
            return _Verdict(f"{failed} Fix the cause, then start the agent.", None)
        shown = datetime.fromtimestamp(self._kernel.clock.shown(now + rest), tz=UTC)
        again = f"The cause is the provider, so the agent starts again by itself at {shown:%Y-%m-%d %H:%M:%S} UTC."
        reason = f"{failed} {again}"
        return _Verdict(reason, now + rest, "its provider is down") if is_outage else _Verdict(reason, now + rest)

    def _stop(self, agent_id: str, cause: str, verdict: _Verdict) -> None:
        agent = self._roster.agents[agent_id]
        agent.stop_soon(cause, verdict.reason, also=lambda decision: self._stopped(decision, agent_id, verdict))

    def _stopped(self, decision: Decision, agent_id: str, verdict: _Verdict) -> None:
        """Plan the start, in one unit with the stop, and tell the user; of stops in a row the first is enough."""
        if verdict.restart_at is not None:
            timer = TimerRecord(
                session_id=self._kernel.session_id,
                id=_timer_id(agent_id),
                agent_id=agent_id,
                kind=TimerKind.START,
                due_at=verdict.restart_at,
            )
            decision.unit.put_timer(timer)
            self.plan(timer)
            if self._stops.get(agent_id, 0) > 1:
                return
        self._mail.send(
            decision,
            sender=agent_id,
            to=USER,
            subject=f"{agent_id} was stopped: {verdict.subject}",
            body=fitted(verdict.reason, self._mail.max_bytes(USER)),
            priority=Priority.HIGH,
            is_result=True,
        )

    def _start(self, timer: TimerRecord) -> None:
        agent = self._roster.agents[timer.agent_id]
        decision = self._kernel.decide(f"timer:{timer.id}")
        try:
            agent.start(decision)
        except (LimitError, StateError):
            due_at = self._kernel.clock.now() + _SECONDS_UNTIL_TRIED_AGAIN
            self._kernel.timers.at(due_at, timer.id, lambda: self._start(timer))
            return
        decision.submit()


def _timer_id(agent_id: str) -> str:
    return f"start:{agent_id}"

"""Taking a session up again where the process before left it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from ai_whisperer.errors import CrashLimitError
from ai_whisperer.records import AgentState, MailState, TaskState
from ai_whisperer.runtime.agent_session import AgentSession
from ai_whisperer.runtime.ai_loop import AILoop
from ai_whisperer.runtime.workspace import Workspace
from ai_whisperer.store.base import SessionSnapshot
from ai_whisperer.tools.function import Tool

MAX_ATTEMPTS = 3
"""So many times a task may be running when the process dies before it is set aside."""

_LONGEST_PROBATION_SECONDS = 60.0

CAUSE = "recovery"


def restore(workspace: Workspace, snapshot: SessionSnapshot, own_tools: Mapping[str, Sequence[Tool]]) -> None:
    """Bring agents, queues, mail and timers back into memory. Nothing runs yet."""
    for record in snapshot.agents:
        agent = AgentSession(workspace, record, own_tools.get(record.id, ()))
        agent.used = snapshot.usage.get(record.id, agent.used)
        agent.was_active(snapshot.active_at.get(record.id, 0.0))
        agent.equipment.look_for_missing_tools(record)
        workspace.agents[record.id] = agent
        workspace.limits.started += record.started
        workspace.book.add(record.id, record.definition)
    for mail in snapshot.mails:
        if mail.state is not MailState.QUEUED:
            workspace.post.take_up(mail)
        elif mail.recipient in workspace.agents:
            workspace.agents[mail.recipient].queue_up(mail)
    workspace.locks.restore(snapshot.locks)
    for task in snapshot.tasks:
        agent = workspace.agents[task.agent_id]
        if task.state is TaskState.QUEUED:
            agent.queue_up(task)
        else:
            workspace.deadlines.watch(task)
            loop = AILoop(agent, task, workspace.store.steps(task.session_id, task.id))
            agent.add_loop(loop)
            agent.count_usage(loop.task.usage)
            if task.answers_a_switch:
                workspace.switchboard.task_began(task)
    workspace.waits.restore(snapshot.waits)
    workspace.approvals.restore(snapshot.approvals)
    workspace.supervisor.restore()


def resume(workspace: Workspace, snapshot: SessionSnapshot) -> None:
    """Go on: interrupted tasks at their next step, due timers at once, waiting work in its order.

    A task is counted as begun before it runs. One that was running at each of the last deaths of the process may be
    what kills it: at its last try it runs alone, and all else waits until it has shown itself harmless, so that the
    innocent are not counted out together with the guilty. All else waits for a minute at most.
    """
    if snapshot.last_seq:
        decision = workspace.decide(CAUSE)
        offset = workspace.clock.offset
        decision.tell("session.opened", {"clockOffsetSeconds": offset} if offset else {})
        decision.submit()
    for agent in workspace.agents.values():
        if agent.equipment.missing_tools:
            decision = workspace.decide(CAUSE)
            decision.tell(
                "agent.tools_missing", {"agentId": agent.agent_id, "tools": list(agent.equipment.missing_tools)}
            )
            decision.submit()
    for timer in snapshot.timers:
        workspace.agents[timer.agent_id].arm(timer)
    workspace.waits.resume()
    workspace.locks.resume()
    workspace.supervisor.resume()
    suspects: deque[tuple[AgentSession, AILoop]] = deque()
    others: list[tuple[AgentSession, AILoop]] = []
    # Listed beforehand: the first that goes on may send mail which starts a loop of another agent.
    interrupted = [(agent, loop) for agent in workspace.agents.values() for loop in agent.loops.values()]
    workspace.on_probation = any(loop.task.attempts == MAX_ATTEMPTS - 1 and not loop.rests for _, loop in interrupted)
    for agent, loop in interrupted:
        if loop.rests:
            loop.plan_restart()
            continue  # it does nothing, and so cannot be what kills the process
        if loop.task.attempts >= MAX_ATTEMPTS:
            _set_aside(workspace, loop)
        elif agent.state is not AgentState.ACTIVE or agent.equipment.missing_tools:
            continue
        elif loop.task.attempts == MAX_ATTEMPTS - 1:
            suspects.append((agent, loop))
        else:
            others.append((agent, loop))
    _Probation(workspace, suspects, others).go_on()
    _let_go_on(workspace)


def _let_go_on(workspace: Workspace) -> None:
    """Resume the agents that were paused for a limit which was raised meanwhile, by the settings of the server."""
    decision = workspace.decide(CAUSE)
    workspace.limits.let_go_on(decision, workspace.agents.values())
    if decision.unit:
        decision.submit()


class _Probation:
    """Lets suspects run one after the other, each until it has shown itself harmless or cannot run; then all else.

    One that takes too long is no longer waited for: the next suspect, and all else, goes on beside it.
    """

    def __init__(
        self,
        workspace: Workspace,
        suspects: deque[tuple[AgentSession, AILoop]],
        others: list[tuple[AgentSession, AILoop]],
    ) -> None:
        self._workspace = workspace
        self._suspects = suspects
        self._others = others

    def go_on(self) -> None:
        while self._suspects:
            agent, loop = self._suspects[0]
            if _can_begin(agent, loop):
                if loop.may_have_place(partial(self._have_turn, loop)):
                    self._begin(loop)
                elif self._workspace.on_probation:
                    self._be_patient_with(loop)
                return
            self._suspects.popleft()
        self._workspace.scheduler.cancel(CAUSE)
        self._release_others()

    def _have_turn(self, loop: AILoop) -> None:
        """There is a place for the suspect; those who ran before it may have kept all of them."""
        if self._suspects and self._suspects[0][1] is loop:
            self.go_on()

    def _begin(self, loop: AILoop) -> None:
        self._suspects.popleft()
        loop.running.on_settled = self.go_on
        self._be_patient_with(loop)
        _begin_again(self._workspace, loop)

    def _be_patient_with(self, loop: AILoop) -> None:
        due_at = self._workspace.clock.now() + _LONGEST_PROBATION_SECONDS
        self._workspace.scheduler.at(due_at, CAUSE, partial(self._lose_patience, loop))

    def _lose_patience(self, loop: AILoop) -> None:
        loop.running.on_settled = None
        self._release_others()
        self.go_on()

    def _release_others(self) -> None:
        self._workspace.on_probation = False
        others, self._others = self._others, []
        for agent, loop in others:
            _begin_in_turn(self._workspace, agent, loop)
        suspects = {loop.task.id for _, loop in self._suspects}
        for agent in self._workspace.agents.values():
            for loop in list(agent.loops.values()):
                if loop.task.id not in suspects:
                    loop.take_up()
            agent.dispatch()
        self._workspace.places.look_again()


def _can_begin(agent: AgentSession, loop: AILoop) -> bool:
    return agent.may_step and loop.task.id in agent.loops and loop.worker is None


def _begin_in_turn(workspace: Workspace, agent: AgentSession, loop: AILoop) -> None:
    """Go on with a loop as soon as there is a place for it."""
    if _can_begin(agent, loop) and loop.may_have_place(partial(_begin_in_turn, workspace, agent, loop)):
        _begin_again(workspace, loop)


def _begin_again(workspace: Workspace, loop: AILoop) -> None:
    decision = workspace.decide(CAUSE)
    loop.running.update_task(decision, replace(loop.task, attempts=loop.task.attempts + 1))
    loop.running.announce(decision)
    decision.submit()
    loop.begin(workspace.decide(f"task:{loop.task.id}"))  # what it does now is its own doing, and belongs to its tree


def _set_aside(workspace: Workspace, loop: AILoop) -> None:
    decision = workspace.decide(CAUSE)
    error = CrashLimitError(
        f"The process died each of the {loop.task.attempts} times this task ran, so it was set aside. "
        "Mend the cause, then retry the task."
    )
    loop.running.give_up(decision, error)
    decision.submit()

"""Taking a session up again where the process before left it."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence

from msgspec.structs import replace

from ai_whisperer.core.blame import SUSPECT, Verdict, judge, trial_key
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.mail import MailState
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.domain.timers import TimerKind
from ai_whisperer.errors import CrashLimitError
from ai_whisperer.runtime.agents.agent import AgentSession
from ai_whisperer.runtime.agents.loop import AILoop
from ai_whisperer.runtime.life.trials import CAUSE, Trials, clear, hold_back, was_under_way
from ai_whisperer.runtime.session.workspace import Workspace
from ai_whisperer.store.base import SessionSnapshot
from ai_whisperer.tools.function import Tool

_log = logging.getLogger(__name__)

_NAMED_AGENTS = 5


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

    A task is counted as begun before it runs. One that may be what kills the process is tried apart from the others:
    see `core.blame`.
    """
    if snapshot.last_seq:
        decision = workspace.decide(CAUSE)
        offset = workspace.clock.offset
        decision.tell("session.opened", {"clockOffsetSeconds": offset} if offset else {})
        decision.submit()
    _tell_missing_tools(workspace)
    _remember_tools(workspace)
    for timer in snapshot.timers:
        if timer.kind is TimerKind.START:
            workspace.supervisor.plan(timer)
        elif timer.kind is not TimerKind.TRIAL:
            workspace.agents[timer.agent_id].arm(timer)
    workspace.waits.resume()
    workspace.locks.resume()
    workspace.supervisor.resume()
    _take_up(workspace, held_back={timer.id for timer in snapshot.timers if timer.kind is TimerKind.TRIAL})
    _let_go_on(workspace)


def _tell_missing_tools(workspace: Workspace) -> None:
    """Say which agents wait for tools that nobody has provided."""
    waiting = [agent for agent in workspace.agents.values() if agent.equipment.missing_tools]
    for agent in waiting:
        decision = workspace.decide(CAUSE)
        decision.tell("agent.tools_missing", {"agentId": agent.agent_id, "tools": list(agent.equipment.missing_tools)})
        decision.submit()
    if waiting:
        missing = dict.fromkeys(name for agent in waiting for name in agent.equipment.missing_tools)
        some = ", ".join(agent.agent_id for agent in waiting[:_NAMED_AGENTS])
        _log.warning(
            "session '%s': %d of its agents wait for tools that nobody has provided (%s): %s%s. Provide these tools "
            "(tools=, agent_tools=, give_tools, a file in .whisperer/tools), or stop the agent and start it with a new "
            "definition.",
            workspace.session_id,
            len(waiting),
            ", ".join(missing),
            some,
            "" if len(waiting) <= _NAMED_AGENTS else ", …",
        )


def _remember_tools(workspace: Workspace) -> None:
    """Agents that have all tools have those too that were not there when they were created.

    Those that have become optional since are forgotten: nobody waits for them where they are not provided again.
    """
    decision = workspace.decide(CAUSE)
    shared = {tool.name for tool in workspace.tools if tool.optional}
    for agent in workspace.agents.values():
        names = agent.equipment.tools_to_remember(agent.record.definition)
        optional = shared.union(tool.name for tool in agent.equipment.own_tools if tool.optional)
        known = tuple(dict.fromkeys(name for name in (*agent.record.own_tools, *names) if name not in optional))
        if known != agent.record.own_tools:
            agent.record = replace(agent.record, own_tools=known)
            decision.unit.update_definition(agent.record)
    if decision.unit:
        decision.submit()


def _take_up(workspace: Workspace, *, held_back: Container[str]) -> None:
    """Go on with the tasks that were interrupted, as far as they may."""
    by_verdict: dict[Verdict, list[tuple[AgentSession, AILoop]]] = {verdict: [] for verdict in Verdict}
    # All are judged beforehand: the first that goes on may send mail which starts a loop of another agent.
    for loop in list(workspace.running.values()):
        agent = workspace.agents[loop.task.agent_id]
        verdict = _judged(workspace, loop, held_back=trial_key(loop.task.id) in held_back)
        may_run = agent.state is AgentState.ACTIVE and not agent.equipment.missing_tools
        if verdict is not None and (may_run or verdict is Verdict.SET_ASIDE):
            by_verdict[verdict].append((agent, loop))
    resting, suspects = by_verdict[Verdict.HOLD_BACK], by_verdict[Verdict.TRY]
    workspace.on_probation = bool(suspects) and not resting
    for _, loop in resting:
        hold_back(workspace, loop.running)
    for _, loop in by_verdict[Verdict.SET_ASIDE]:
        _set_aside(workspace, loop)
    Trials(workspace, [*resting, *suspects], by_verdict[Verdict.GO_ON]).begin()


def _judged(workspace: Workspace, loop: AILoop, *, held_back: bool) -> Verdict | None:
    """What becomes of a task that was running; None if it does nothing now, and so cannot be what kills the process."""
    if held_back:
        clear(workspace, loop.running)
    # What is tried has been started, whatever `not_before` says: clocks may be set back.
    if loop.running.only_waits() or (loop.rests and loop.task.attempts <= SUSPECT):
        loop.plan_restart()
        return None
    return judge(loop.task.attempts, under_way=was_under_way(loop.running), held_back=held_back)


def _let_go_on(workspace: Workspace) -> None:
    """Resume the agents that were paused for a limit which was raised meanwhile, by the settings of the server."""
    decision = workspace.decide(CAUSE)
    workspace.limits.let_go_on(decision, workspace.agents.values())
    if decision.unit:
        decision.submit()


def _set_aside(workspace: Workspace, loop: AILoop) -> None:
    decision = workspace.decide(CAUSE)
    error = CrashLimitError(
        f"The process died at {loop.task.attempts} starts of this task in a row, and not while it was held back "
        "between them, so it was moved to the dead letters. Fix the cause, then retry the task."
    )
    loop.running.give_up(decision, error)
    decision.submit()

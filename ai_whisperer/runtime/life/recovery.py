"""Taking a session up again where the process before left it."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ai_whisperer.core.blame import SUSPECT, Verdict, judge, trial_key
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.mail import MailState
from ai_whisperer.domain.notifications.agents import AgentToolsMissing
from ai_whisperer.domain.notifications.sessions import SessionOpened
from ai_whisperer.domain.tasks import StepRecord, TaskRecord, TaskState
from ai_whisperer.domain.timers import TimerKind
from ai_whisperer.errors import CrashLimitError
from ai_whisperer.runtime.agents.agent import LiveAgent
from ai_whisperer.runtime.agents.loop import AILoop
from ai_whisperer.runtime.life.open_session import OpenSession
from ai_whisperer.runtime.life.trials import CAUSE, Trials, clear, hold_back
from ai_whisperer.runtime.messaging.continuations import Earlier, earlier_of
from ai_whisperer.store.base import SessionSnapshot
from ai_whisperer.tools.function import Tool

_log = logging.getLogger(__name__)

_NAMED_AGENTS = 5


class Past(Struct, frozen=True):
    """What is read besides the snapshot: of open tasks the steps, what came before and the trees; and the failures."""

    steps: Mapping[str, list[StepRecord]]
    earlier: Mapping[str, Earlier]
    trees: Mapping[str, Sequence[TaskRecord]]
    failures: Sequence[tuple[str, str, float]]


async def read_past(session: OpenSession, snapshot: SessionSnapshot) -> Past:
    """Read all that is needed before anything is brought back: then nothing waits until the session goes on."""
    reads, tasks = session.kernel.reads, snapshot.tasks
    running = [task for task in tasks if task.state is TaskState.RUNNING]
    roots = dict.fromkeys(task.root_id for task in running if task.budget is not None)
    windows = [agent.definition.supervision.window_seconds for agent in snapshot.agents]
    since = session.kernel.clock.now() - max(windows, default=0.0)
    return Past(
        steps=await reads.open_steps(),
        earlier={task.id: await earlier_of(reads, task) for task in tasks if task.continuation},
        trees={root_id: await reads.tasks_of_tree(root_id) for root_id in roots},
        failures=await reads.failures_since(since),
    )


def restore(
    session: OpenSession, snapshot: SessionSnapshot, past: Past, own_tools: Mapping[str, Sequence[Tool]]
) -> None:
    """Bring agents, queues, mail and timers back into memory. Nothing runs yet."""
    session.roster.former = snapshot.totals.get("")
    for record in snapshot.agents:
        agent = LiveAgent(session, record, own_tools.get(record.id, ()))
        if record.id in snapshot.totals:
            agent.work.restore_totals(snapshot.totals[record.id])
        agent.toolkit.look_for_missing_tools(record)
        session.roster.agents[record.id] = agent
        session.started.count += record.started
        session.roster.book.add(record.id, record.definition)
    for mail in snapshot.mails:
        if mail.state is not MailState.QUEUED:
            session.mail.take_up(mail)
        elif mail.recipient in session.roster.agents:
            session.roster.agents[mail.recipient].work.queue_up(mail)
    session.locks.restore(snapshot.locks)
    for task in snapshot.tasks:
        agent = session.roster.agents[task.agent_id]
        steps = past.steps.get(task.id, [])
        session.continuations.take_up(task, past.earlier.get(task.id, Earlier()))
        if task.state is TaskState.QUEUED:
            agent.work.queue_up(task, steps)
        else:
            session.deadlines.watch(task)
            loop = AILoop(agent, task, steps)
            agent.work.add_loop(loop)
            if task.budget is not None:
                session.trees.know(task.root_id, past.trees[task.root_id])
            agent.work.was_active(task.started_at or 0.0)
            if task.answers_a_switch:
                session.switch.task_began(task)
    session.waits.restore(snapshot.waits)
    session.approvals.restore(snapshot.approvals)
    session.questions.restore(snapshot.questions)
    session.supervisor.restore(past.failures)


def resume(session: OpenSession, snapshot: SessionSnapshot) -> None:
    """Go on: interrupted tasks at their next step, due timers at once, waiting work in its order.

    A task is counted as begun before it runs. One that may be what kills the process is tried apart from the others:
    see `core.blame`.
    """
    if snapshot.last_seq:
        decision = session.kernel.decide(CAUSE)
        offset = session.kernel.clock.offset
        decision.tell(SessionOpened(clock_offset_seconds=offset or UNSET))
        decision.submit()
    _tell_missing_tools(session)
    _remember_tools(session)
    for timer in snapshot.timers:
        if timer.kind is TimerKind.START:
            session.supervisor.plan(timer)
        elif timer.kind is not TimerKind.TRIAL:
            session.roster.agents[timer.agent_id].arm(timer)
    session.waits.resume()
    session.locks.resume()
    session.supervisor.resume()
    _take_up(session, held_back={timer.id for timer in snapshot.timers if timer.kind is TimerKind.TRIAL})
    _let_go_on(session)


def _tell_missing_tools(session: OpenSession) -> None:
    """Say which agents wait for tools that nobody has provided."""
    waiting = [agent for agent in session.roster.agents.values() if agent.missing_tools]
    for agent in waiting:
        decision = session.kernel.decide(CAUSE)
        decision.tell(AgentToolsMissing(agent_id=agent.agent_id, tools=list(agent.toolkit.missing_tools)))
        decision.submit()
    if waiting:
        missing = dict.fromkeys(name for agent in waiting for name in agent.missing_tools)
        some = ", ".join(agent.agent_id for agent in waiting[:_NAMED_AGENTS])
        _log.warning(
            "session '%s': %d of its agents wait for tools that nobody has provided (%s): %s%s. Provide these tools "
            "(tools=, agent_tools=, give_tools, a file in .whisperer/tools), or stop the agent and start it with a new "
            "definition.",
            session.kernel.session_id,
            len(waiting),
            ", ".join(missing),
            some,
            "" if len(waiting) <= _NAMED_AGENTS else ", …",
        )


def _remember_tools(session: OpenSession) -> None:
    """Agents that have all tools have those too that were not there when they were created.

    Those that have become optional since are forgotten: nobody waits for them where they are not provided again.
    """
    decision = session.kernel.decide(CAUSE)
    shared = {tool.name for tool in session.supplies.tools if tool.optional}
    for agent in session.roster.agents.values():
        names = agent.toolkit.tools_to_remember(agent.record.definition)
        optional = shared.union(tool.name for tool in agent.toolkit.own_tools if tool.optional)
        known = tuple(dict.fromkeys(name for name in (*agent.record.own_tools, *names) if name not in optional))
        if known != agent.record.own_tools:
            agent.record = replace(agent.record, own_tools=known)
            decision.unit.update_definition(agent.record)
    if decision.unit:
        decision.submit()


def _take_up(session: OpenSession, *, held_back: Container[str]) -> None:
    """Go on with the tasks that were interrupted, as far as they may."""
    by_verdict: dict[Verdict, list[tuple[LiveAgent, AILoop]]] = {verdict: [] for verdict in Verdict}
    # All are judged beforehand: the first that goes on may send mail which starts a loop of another agent.
    for loop in list(session.roster.running.values()):
        agent = session.roster.agents[loop.task.agent_id]
        verdict = _judged(session, loop, held_back=trial_key(loop.task.id) in held_back)
        may_run = agent.state is AgentState.ACTIVE and not agent.missing_tools
        if verdict is not None and (may_run or verdict is Verdict.SET_ASIDE):
            by_verdict[verdict].append((agent, loop))
    resting, suspects = by_verdict[Verdict.HOLD_BACK], by_verdict[Verdict.TRY]
    session.roster.on_probation = bool(suspects) and not resting
    for _, loop in resting:
        hold_back(session, loop.running)
    for _, loop in by_verdict[Verdict.SET_ASIDE]:
        _set_aside(session, loop)
    Trials(session, [*resting, *suspects], by_verdict[Verdict.GO_ON]).begin()


def _judged(session: OpenSession, loop: AILoop, *, held_back: bool) -> Verdict | None:
    """What becomes of a task that was running; None if it does nothing now, and so cannot be what kills the process."""
    if held_back:
        clear(session, loop.running)
    # What is tried has been started, whatever `not_before` says: clocks may be set back.
    if loop.running.only_waits() or (loop.rests and loop.task.attempts <= SUSPECT):
        loop.plan_restart()
        return None
    return judge(loop.task.attempts, under_way=loop.running.was_under_way, held_back=held_back)


def _let_go_on(session: OpenSession) -> None:
    """Resume the agents that were paused for a limit which was raised meanwhile, by the settings of the server."""
    decision = session.kernel.decide(CAUSE)
    session.limit_changes.let_go_on(decision, session.roster.agents.values())
    if decision.unit:
        decision.submit()


def _set_aside(session: OpenSession, loop: AILoop) -> None:
    decision = session.kernel.decide(CAUSE)
    error = CrashLimitError(
        f"The process died at {loop.task.attempts} starts of this task in a row, and not while it was held back "
        "between them, so it was moved to the dead letters. Fix the cause, then retry the task."
    )
    loop.running.give_up(decision, error)
    decision.submit()

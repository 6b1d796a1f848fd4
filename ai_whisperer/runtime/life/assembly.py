"""Puts the parts of a session together. Nothing else sees all of them being made."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ai_whisperer.core.blame import trial_key
from ai_whisperer.core.queueing import Work
from ai_whisperer.core.recorded_calls import RecordedCalls
from ai_whisperer.core.supervising import restart_key
from ai_whisperer.domain.agents import AgentRecord
from ai_whisperer.domain.clock import Clock, IdSource
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.domain.waits import WaitKind
from ai_whisperer.mcp_config import McpServerConfig
from ai_whisperer.models.base import ModelFactory
from ai_whisperer.runtime.agents.agent import LiveAgent
from ai_whisperer.runtime.agents.creation import AgentCreation, Stage
from ai_whisperer.runtime.agents.folders import Folders
from ai_whisperer.runtime.agents.loop import AILoop
from ai_whisperer.runtime.agents.mcp import teller_of
from ai_whisperer.runtime.agents.stall import StallWatch
from ai_whisperer.runtime.agents.supervision import Supervisor
from ai_whisperer.runtime.agents.supplies import Supplies
from ai_whisperer.runtime.agents.task_end import TaskEnd
from ai_whisperer.runtime.life.open_session import OpenSession
from ai_whisperer.runtime.life.trial_turn import TrialTurn
from ai_whisperer.runtime.limits.changing import LimitChanges
from ai_whisperer.runtime.limits.deadlines import Deadlines
from ai_whisperer.runtime.limits.failing import TaskFailures
from ai_whisperer.runtime.limits.provider_gates import ProviderGates
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.limits.slots import LoopSlots
from ai_whisperer.runtime.limits.spending import Spending
from ai_whisperer.runtime.limits.started import StartedAgents
from ai_whisperer.runtime.limits.stated import StatedLimits
from ai_whisperer.runtime.limits.trees import Trees
from ai_whisperer.runtime.messaging.continuations import Continuations
from ai_whisperer.runtime.messaging.delegation import Delegation
from ai_whisperer.runtime.messaging.events import Events
from ai_whisperer.runtime.messaging.mail import Mail
from ai_whisperer.runtime.messaging.notices import Notices
from ai_whisperer.runtime.messaging.rooms import Rooms
from ai_whisperer.runtime.messaging.schedules import Schedules
from ai_whisperer.runtime.messaging.switch import Switch
from ai_whisperer.runtime.session.clock import SessionClock
from ai_whisperer.runtime.session.counters import Counters
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.log import NotificationBus
from ai_whisperer.runtime.session.reads import Reads
from ai_whisperer.runtime.session.roster import LiveRoster
from ai_whisperer.runtime.waiting.approvals import Approvals
from ai_whisperer.runtime.waiting.cycles import Cycles
from ai_whisperer.runtime.waiting.locks import Locks
from ai_whisperer.runtime.waiting.permission import Permission
from ai_whisperer.runtime.waiting.questions import Questions
from ai_whisperer.runtime.waiting.recalling import ApprovalsInFork, PermissionInFork
from ai_whisperer.runtime.waiting.turns import Turns, lines_of
from ai_whisperer.runtime.waiting.waits import Waits
from ai_whisperer.store.base import SessionSnapshot, Store
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.mcp.servers import McpServers


class Outside(Struct, kw_only=True, frozen=True, eq=False):
    """What comes into a session from outside: time, chance, models, tools, folders, and what holds by default."""

    clock: Clock
    random: random.Random
    ids: IdSource
    model_factory: ModelFactory
    default_model: str
    tools: Sequence[Tool]
    stage: Stage
    folders: Folders
    limits: SessionLimits
    mcp_servers: Mapping[str, McpServerConfig]
    trial_turn: TrialTurn


def assemble(
    session_id: str,
    store: Store,
    snapshot: SessionSnapshot,
    stated: StatedLimits,
    outside: Outside,
    *,
    recorded: RecordedCalls | None = None,
) -> OpenSession:
    """The session as the snapshot has it, without its agents: see `recovery.restore`.

    `recorded` are the calls that a fork does not repeat.
    """
    reads = Reads(store, session_id)
    log = NotificationBus(
        session_id,
        store,
        reads,
        last_seq=snapshot.last_seq,
        last_at=snapshot.last_at,
        first_seq=snapshot.first_seq,
    )
    roster: LiveRoster[LiveAgent, AILoop] = LiveRoster()
    kernel = Kernel(
        session_id,
        store=store,
        reads=reads,
        log=log,
        clock=SessionClock(outside.clock, after=snapshot.last_at),
        random=outside.random,
        ids=outside.ids,
        last_arrival=snapshot.last_arrival,
        roster=roster,
    )
    counters = Counters(session_id, snapshot.links, dead_tasks=snapshot.dead_tasks, dead_mails=snapshot.dead_mails)
    supplies = Supplies(
        model_factory=outside.model_factory,
        default_model=outside.default_model,
        tools=outside.tools,
        mcp=McpServers(outside.mcp_servers, clock=outside.clock, tell=teller_of(kernel)),
        folders=outside.folders,
        stalls=StallWatch(kernel.event_loop),
    )

    reached = ReachedLimits(kernel, roster)
    started = StartedAgents(stated, reached)
    trees = Trees(kernel, roster, reached)
    slots = LoopSlots(kernel, stated, reached)
    gates = ProviderGates(kernel, stated, reached)
    spending = Spending(kernel, roster, stated, trees, reached)
    deadlines = Deadlines(kernel, roster)

    waits = Waits(kernel, roster)
    lines = lines_of(roster)
    cycles = Cycles(kernel, roster, waits, lines)
    turns = Turns(kernel, roster, waits, cycles, lines, shown=outside.folders.shown)
    approvals = (
        Approvals(kernel, roster, waits, turns)
        if snapshot.fork is None
        else ApprovalsInFork(kernel, roster, waits, turns, effects=snapshot.fork.effects)
    )
    questions = Questions(kernel, roster, waits, bounded=reached.bounded_result)
    permission = (
        Permission(waits, approvals, turns) if recorded is None else PermissionInFork(waits, approvals, turns, recorded)
    )
    locks = Locks(kernel, waits, cycles)

    mail = Mail(
        kernel,
        roster,
        stated,
        reached,
        trees,
        waits,
        counters,
        sequences=dict(snapshot.mail_sequences),
        received=dict(snapshot.mails_received),
        on_reply=lambda *reply: switch.replied(*reply),  # noqa: PLW0108 - it is made below
    )
    kernel.erasing.restore(snapshot.erasures)
    kernel.erasing.spared = mail.is_in_use
    continuations = Continuations(mail)
    switch = Switch(kernel, roster, reached, waits, cycles, mail, continuations, counters)
    events = Events(kernel, roster)
    schedules = Schedules(kernel, roster, events)

    delegation = Delegation(kernel, roster, reached, trees, mail, continuations)
    notices = Notices(roster, mail, continuations)
    rooms = Rooms(kernel, roster, reached, continuations, snapshot.rooms, snapshot.rooms_last_at)
    supervisor = Supervisor(kernel, roster, mail)
    task_failures = TaskFailures(roster, stated, reached, trees, spending)

    def restart_is_off(decision: Decision, task: TaskRecord) -> None:
        if task.not_before is not None:
            kernel.timers.cancel(restart_key(task.id))
            decision.unit.delete_timer(task.session_id, trial_key(task.id))

    def waits_are_over(decision: Decision, task: TaskRecord) -> None:
        for wait in waits.of_task(task.id):
            if wait.kind is WaitKind.REPLY:
                switch.abandon(decision, wait)
            elif wait.kind is WaitKind.RESOURCE:
                turns.abandon(wait)
            else:
                locks.abandon(decision, wait)

    def locks_are_free(decision: Decision, item: Work) -> None:
        if isinstance(item, TaskRecord):
            locks.release_all(decision, item)

    task_end = TaskEnd(
        counters,
        mail,
        task_failures,
        completed=rooms.task_completed,
        ended=(
            deadlines.task_ended,
            restart_is_off,
            approvals.task_ended,
            questions.task_ended,
            waits_are_over,
            locks.release_all,
            switch.task_ended,
            delegation.task_ended,
            notices.task_ended,
            rooms.task_ended,
            supervisor.task_ended,
            continuations.task_ended,
        ),
        continued=(
            deadlines.task_ended,
            approvals.task_continued,
            locks.task_continued,
            switch.task_continued,
            continuations.task_continued,
        ),
        put_off=(switch.put_off, locks_are_free),
    )

    def live(record: AgentRecord, own_tools: Sequence[Tool]) -> LiveAgent:
        return LiveAgent(session, record, own_tools)

    session = OpenSession(
        kernel=kernel,
        roster=roster,
        supplies=supplies,
        counters=counters,
        stated=stated,
        started=started,
        reached=reached,
        trees=trees,
        slots=slots,
        gates=gates,
        spending=spending,
        deadlines=deadlines,
        limit_changes=LimitChanges(kernel, roster, stated, spending, slots, gates, deadlines),
        task_failures=task_failures,
        waits=waits,
        cycles=cycles,
        turns=turns,
        approvals=approvals,
        questions=questions,
        permission=permission,
        locks=locks,
        mail=mail,
        switch=switch,
        continuations=continuations,
        delegation=delegation,
        events=events,
        schedules=schedules,
        rooms=rooms,
        supervisor=supervisor,
        task_end=task_end,
        creation=AgentCreation(kernel, roster, supplies, stated, started, reached, schedules, outside.stage, live=live),
        trial_turn=outside.trial_turn,
    )
    return session

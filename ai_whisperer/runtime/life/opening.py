"""The life of an open session: taken up from the store, closed cleanly, or stopped when the store fails."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ai_whisperer.domain.clock import Clock, IdSource
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.errors import ClosedError
from ai_whisperer.mcp_config import McpServerConfig
from ai_whisperer.models.base import ModelFactory
from ai_whisperer.runtime.agents.creation import AgentCreation, Stage
from ai_whisperer.runtime.agents.folders import Workplaces
from ai_whisperer.runtime.agents.mcp import teller_of
from ai_whisperer.runtime.life import recovery
from ai_whisperer.runtime.life.trial_turn import TrialTurn
from ai_whisperer.runtime.life.trials import let_go
from ai_whisperer.runtime.limits.deadlines import Deadlines
from ai_whisperer.runtime.limits.failures import Supervisor
from ai_whisperer.runtime.limits.reached import Breaches
from ai_whisperer.runtime.limits.slots import LoopPlaces
from ai_whisperer.runtime.limits.spending import Reservations
from ai_whisperer.runtime.limits.stated import LimitKeeper
from ai_whisperer.runtime.limits.trees import Trees
from ai_whisperer.runtime.messaging.events import Events
from ai_whisperer.runtime.messaging.mail import PostOffice
from ai_whisperer.runtime.messaging.rooms import Rooms
from ai_whisperer.runtime.messaging.schedules import Schedules
from ai_whisperer.runtime.messaging.switch import Switchboard
from ai_whisperer.runtime.session.clock import SessionClock
from ai_whisperer.runtime.session.counters import Tallies
from ai_whisperer.runtime.session.log import NotificationBus
from ai_whisperer.runtime.session.workspace import Workspace
from ai_whisperer.runtime.waiting.approvals import Approvals
from ai_whisperer.runtime.waiting.cycles import Circles
from ai_whisperer.runtime.waiting.locks import Locks
from ai_whisperer.runtime.waiting.permission import Admission
from ai_whisperer.runtime.waiting.waits import Waits
from ai_whisperer.store.base import SERVER, Store
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.mcp.servers import McpServers

_log = logging.getLogger(__name__)


def open_workspace(
    session_id: str,
    store: Store,
    *,
    clock: Clock,
    random: random.Random,
    ids: IdSource,
    model_factory: ModelFactory,
    default_model: str,
    tools: Sequence[Tool],
    stage: Stage,
    workplaces: Workplaces,
    limits: SessionLimits,
    mcp_servers: Mapping[str, McpServerConfig],
    trial_turn: TrialTurn,
) -> Workspace:
    """Bring the session into memory and go on where it was; raises a `StoreError` if it cannot be read."""
    snapshot = store.load(session_id)
    bus = NotificationBus(session_id, store, last_seq=snapshot.last_seq, last_at=snapshot.last_at)
    workspace = Workspace(
        session_id,
        store=store,
        bus=bus,
        clock=SessionClock(clock, after=snapshot.last_at),
        random=random,
        ids=ids,
        model_factory=model_factory,
        default_model=default_model,
        tools=tools,
        workplaces=workplaces,
        last_arrival=snapshot.last_arrival,
        trial_turn=trial_turn,
    )
    workspace.limits = LimitKeeper(
        workspace, setting=limits, server=store.limits(SERVER), session=store.limits(session_id)
    )
    workspace.creation = AgentCreation(workspace, stage)
    workspace.breaches = Breaches(workspace)
    workspace.places = LoopPlaces(workspace)
    workspace.reservations = Reservations(workspace)
    workspace.tallies = Tallies(
        session_id, snapshot.links, dead_tasks=snapshot.dead_tasks, dead_mails=snapshot.dead_mails
    )
    workspace.post = PostOffice(
        workspace, sequences=dict(snapshot.mail_sequences), received=dict(snapshot.mails_received)
    )
    workspace.mcp = McpServers(mcp_servers, clock=clock, tell=teller_of(workspace))
    workspace.waits = Waits(workspace)
    workspace.approvals = Approvals(workspace)
    workspace.admission = Admission(workspace)
    workspace.circles = Circles(workspace)
    workspace.switchboard = Switchboard(workspace)
    workspace.locks = Locks(workspace)
    workspace.events = Events(workspace)
    workspace.deadlines = Deadlines(workspace)
    workspace.trees = Trees(workspace)
    workspace.supervisor = Supervisor(workspace)
    workspace.schedules = Schedules(workspace)
    workspace.rooms = Rooms(workspace, snapshot.rooms, snapshot.rooms_last_at)
    workspace.on_refused = lambda failure: fail_workspace(workspace, failure)
    store.listen(session_id, bus.publish, workspace.on_refused)
    recovery.restore(workspace, snapshot, stage.agent_tools)
    workspace.schedules.restore(snapshot.schedules)
    recovery.resume(workspace, snapshot)
    workspace.schedules.arm_all()
    return workspace


async def close_workspace(workspace: Workspace, *, grace_seconds: float) -> None:
    """Let the steps under way finish for so long and cancel what is left. When this returns all of it is on disk."""
    workspace.closing = True
    workspace.locks.close(ClosedError("The session was closed before the lock was free. Ask again when it is back."))
    workspace.scheduler.close()
    loops = list(workspace.running.values())
    for loop in loops:
        loop.interrupt_wait()
    workers = [worker for loop in loops if (worker := loop.worker) is not None]
    try:
        if workers:
            await asyncio.wait(workers, timeout=grace_seconds)
        await asyncio.gather(*(agent.halt_loops() for agent in workspace.agents.values()))
        if workspace.bus.failure is None:
            _count_no_crash(workspace)  # before all that can hang: whoever is killed in that has harmed no task
        await workspace.chores.close()
        await workspace.mcp.close()
        for outcome in await asyncio.gather(
            *(agent.free() for agent in workspace.agents.values()), return_exceptions=True
        ):
            if isinstance(outcome, Exception):
                _log.warning("a model client could not be closed: %r", outcome)
        await workspace.store.flushed()
        await workspace.workplaces.close()
    finally:
        workspace.trial_turn.give_back(workspace)
        workspace.store.unlisten(workspace.session_id)
        workspace.release_waiters(ClosedError("The session was closed before the task ended; the task resumes later."))
        if not workspace.bus.closed:
            workspace.bus.close()


def _count_no_crash(workspace: Workspace) -> None:
    """A task that stops here does so by no fault of its own: it is not counted as begun any more."""
    decision = workspace.decide("shutdown")
    for loop in workspace.running.values():
        if loop.running.held_back:
            let_go(loop.running, decision)
        elif loop.task.attempts:
            loop.running.update_task(decision, replace(loop.task, attempts=0))
    if decision.unit:
        decision.submit()


def fail_workspace(workspace: Workspace, failure: BaseException) -> None:
    """The store has failed, or refused what memory already holds: nothing more may happen that it does not know of."""
    workspace.closing = True
    workspace.scheduler.close()
    workspace.trial_turn.give_back(workspace)
    for loop in workspace.running.values():
        loop.abandon()
    workspace.locks.close(failure)
    workspace.release_waiters(failure)
    workspace.bus.close(failure)

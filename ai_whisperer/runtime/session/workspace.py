"""What the agents of one session share: store, time, chance, the log, and each other."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from contextvars import copy_context
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ai_whisperer.core.addresses import AddressBook
from ai_whisperer.domain.clock import IdSource
from ai_whisperer.domain.limits import Limits
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.errors import ClosedError
from ai_whisperer.models.base import ModelFactory
from ai_whisperer.runtime.agents.folders import Workplaces
from ai_whisperer.runtime.agents.stall import StallWatch
from ai_whisperer.runtime.life.trial_turn import TrialTurn
from ai_whisperer.runtime.session.background import Chores
from ai_whisperer.runtime.session.cause import forget_caller
from ai_whisperer.runtime.session.clock import SessionClock
from ai_whisperer.runtime.session.clock_watch import ClockWatch
from ai_whisperer.runtime.session.log import NotificationBus
from ai_whisperer.runtime.session.timers import Scheduler
from ai_whisperer.store.base import FailureListener, Store, Unit
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.mcp.servers import McpServers
from ai_whisperer.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from ai_whisperer.runtime.agents.agent import AgentSession
    from ai_whisperer.runtime.agents.creation import AgentCreation
    from ai_whisperer.runtime.agents.loop import AILoop
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
    from ai_whisperer.runtime.session.counters import Tallies
    from ai_whisperer.runtime.waiting.approvals import Approvals
    from ai_whisperer.runtime.waiting.cycles import Circles
    from ai_whisperer.runtime.waiting.locks import Locks
    from ai_whisperer.runtime.waiting.permission import Admission
    from ai_whisperer.runtime.waiting.waits import Waits


_NOTHING_STATED = Limits()


class Decision:
    """A change that was decided: the unit that makes it durable, and what follows from it.

    What is decided is true in memory at once and goes to the store in the order in which it was decided: there is
    never an await between a change in memory and its `submit`.
    """

    __slots__ = ("_durable_calls", "_ended", "_follow_ups", "_workspace", "at", "cause", "unit")

    def __init__(self, workspace: Workspace, cause: str) -> None:
        self._workspace = workspace
        self._follow_ups: list[Callable[[], object]] | None = None
        self._ended: list[TaskRecord] | None = None
        self._durable_calls: list[Callable[[], object]] | None = None
        self.unit = Unit(workspace.on_refused)
        self.cause = cause
        self.at = workspace.decided_at = workspace.clock.now()

    def tell(self, name: str, params: dict[str, Any]) -> None:
        self.unit.notes.append((self._workspace.session_id, name, self.cause, self.at, params))

    def then(self, follow_up: Callable[[], object]) -> None:
        """Call this right after the unit was handed to the store: what it decides comes later in the log."""
        if self._follow_ups is None:
            self._follow_ups = []
        self._follow_ups.append(follow_up)

    def task_ended(self, task: TaskRecord) -> None:
        """Whoever waits for this task is told once the unit is durable."""
        if self._ended is None:
            self._ended = []
        self._ended.append(task)

    def when_durable(self, callback: Callable[[], object]) -> None:
        """Call this when the unit is durable, or when it never will be."""
        if self._durable_calls is None:
            self._durable_calls = []
        self._durable_calls.append(callback)

    def submit(self) -> asyncio.Future[None]:
        """Hand the unit to the store. The future is done when it is durable: only then tell the outside."""
        durable = self._workspace.store.submit(self.unit)
        for task in self._ended or ():
            self._workspace.tell_waiters(task, durable)
        for callback in self._durable_calls or ():
            durable.add_done_callback(lambda _, callback=callback: callback())  # type: ignore[misc]
        for follow_up in self._follow_ups or ():
            follow_up()
        return durable

    async def commit(self) -> None:
        """Submit and wait until it is durable. A caller that gives up waiting takes nothing back."""
        durable = self.submit()
        await (asyncio.shield(durable) if self._durable_calls or self._ended else durable)


class Workspace:
    """The inside of one session."""

    agents: dict[str, AgentSession]
    running: dict[str, AILoop]
    creation: AgentCreation
    limits: LimitKeeper
    breaches: Breaches
    places: LoopPlaces
    reservations: Reservations
    admission: Admission
    approvals: Approvals
    post: PostOffice
    mcp: McpServers
    waits: Waits
    circles: Circles
    switchboard: Switchboard
    locks: Locks
    events: Events
    deadlines: Deadlines
    trees: Trees
    supervisor: Supervisor
    schedules: Schedules
    rooms: Rooms
    tallies: Tallies

    def __init__(
        self,
        session_id: str,
        *,
        store: Store,
        bus: NotificationBus,
        clock: SessionClock,
        random: random.Random,
        ids: IdSource,
        model_factory: ModelFactory,
        default_model: str,
        tools: Iterable[Tool],
        workplaces: Workplaces,
        last_arrival: int,
        trial_turn: TrialTurn,
    ) -> None:
        self.session_id = session_id
        self.store = store
        self.bus = bus
        self.clock = clock
        self.decided_at = clock.now()  # the time of the last decision
        self.random = random
        self.ids = ids
        self.model_factory = model_factory
        self.default_model = default_model
        self.tools = tuple(tools)
        self.workplaces = workplaces
        self.trial_turn = trial_turn
        self.event_loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self.context = copy_context()
        self.context.run(forget_caller)
        self.clock_watch = ClockWatch(self)
        self.scheduler = Scheduler(clock, on_look=self.clock_watch.look)
        self.stalls = StallWatch(self.event_loop)
        self.chores = Chores(self.event_loop)
        self.book = AddressBook()
        self.agents = {}
        self.running = {}
        self.returning: dict[str, TaskRecord] = {}  # tasks that are taken up again, on their way into the queue
        self.closing = False
        self.on_refused: FailureListener | None = None
        self.on_probation = False  # a suspect runs alone: see recovery
        self._arrival = last_arrival
        self._waiters: dict[str, set[asyncio.Future[TaskRecord]]] = {}
        self._registries: dict[tuple[str, ...] | None, ToolRegistry] = {}

    def decide(self, cause: str) -> Decision:
        """Begin a decision; raises what the store failed with, if it did."""
        if self.bus.failure is not None:
            raise self.bus.failure
        if not self.running and (self.clock.offset or self.clock.is_off):
            self.clock_watch.look()
        return Decision(self, cause)

    def decide_at_once(self, cause: str) -> Decision:
        """Begin a decision about what was just noticed, without another look at the clock."""
        return Decision(self, cause)

    def check_event_loop(self) -> None:
        """Raise `ClosedError` if the caller runs in another event loop than the session; one in none may read.

        To ask for the running loop costs a system call, so that is done only if this is not the session's thread.
        """
        if get_ident() == self._thread and self.event_loop.is_running():
            return
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            return
        if running is not self.event_loop:
            raise ClosedError(
                "The session was opened in another event loop. Open, use and close it within one asyncio.run(); from "
                "another thread, hand calls over with asyncio.run_coroutine_threadsafe. Nothing was changed."
            )

    def mail_limit(self, recipient: str) -> int:
        """How many bytes a mail to this agent, or to the person, may have."""
        agent = self.agents.get(recipient)
        return (self.limits.for_agent(_NOTHING_STATED) if agent is None else agent.limits).max_mail_bytes

    def next_arrival(self) -> int:
        self._arrival += 1
        return self._arrival

    def registry(self, granted: tuple[str, ...] | None, own: Iterable[Tool]) -> ToolRegistry:
        """The tools of an agent. Agents with the same grants and none of their own share one."""
        own = tuple(own)
        if own:
            return ToolRegistry((*self.tools, *own), granted=granted, mcp=self.mcp.granted(granted))
        if granted not in self._registries:
            self._registries[granted] = ToolRegistry(self.tools, granted=granted, mcp=self.mcp.granted(granted))
        return self._registries[granted]

    async def wait_for(self, task_id: str) -> TaskRecord:
        """Wait for the end of the task and return it as it ended."""
        waiter: asyncio.Future[TaskRecord] = self.event_loop.create_future()
        self._waiters.setdefault(task_id, set()).add(waiter)
        try:
            return await waiter
        finally:
            self._forget_waiter(task_id, waiter)

    def _forget_waiter(self, task_id: str, waiter: asyncio.Future[TaskRecord]) -> None:
        waiters = self._waiters.get(task_id)
        if waiters is not None:
            waiters.discard(waiter)
            if not waiters:
                del self._waiters[task_id]

    def tell_waiters(self, task: TaskRecord, durable: asyncio.Future[None]) -> None:
        """Tell those who wait for the task, once its end is durable."""

        def tell(future: asyncio.Future[None]) -> None:
            failure = None if future.cancelled() else future.exception()
            for waiter in self._waiters.pop(task.id, ()):
                if waiter.done():
                    continue
                if failure is not None:
                    waiter.set_exception(failure)
                else:
                    waiter.set_result(task)

        durable.add_done_callback(tell)

    def release_waiters(self, failure: BaseException) -> None:
        """Nothing more will end here: tell those who still wait."""
        for waiters in list(self._waiters.values()):
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(failure)
        self._waiters.clear()

"""The process of a universe: it runs in the order that the schedule says, and may die in the middle of anything."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import cache
from inspect import CORO_CREATED, getcoroutinestate
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.models.base import Model
from ai_whisperer.settings import LOCAL
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import EPOCH, SimulationStalledError
from ai_whisperer.storm.faults import Kill, Schedule
from ai_whisperer.storm.injecting import FaultyModel, FaultyPace, FaultyTool, Injection, Order
from ai_whisperer.templates.library import TemplateLibrary, library_of
from ai_whisperer.testing.process import SimulatedProcess
from ai_whisperer.testing.team_loop import TeamLoop
from ai_whisperer.tools.function import Tool

_T = TypeVar("_T")

_MOST = 1_000_000


class Setting(Struct, frozen=True, kw_only=True):
    """What a session is given from outside: its model and its tools. `more` are settings of the manager."""

    model: Model
    tools: Sequence[Tool] = ()
    agent_tools: Mapping[str, Sequence[Tool]] = {}
    more: Mapping[str, Any] = {}

    @property
    def all_tools(self) -> list[Tool]:
        return [*self.tools, *(tool for own in self.agent_tools.values() for tool in own)]


class DiedError(Exception):
    """The process was killed while it did what was asked of it. It is up again."""


class RestlessError(Exception):
    """The universe does not come to an end."""


class UniverseLoop(TeamLoop):
    """A loop in the order of a universe. It can be halted from within: then nothing of it runs any more."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._halted: tuple[list[asyncio.Handle], list[asyncio.TimerHandle]] = ([], [])
        super().__init__(0)

    def idle(self, timeout: float | None) -> None:
        order = self._order
        order.rounds += 1
        if order.rounds > order.most_rounds:
            raise RestlessError
        ready = self._ready  # type: ignore[attr-defined]
        if ready:
            if len(ready) > 1:
                mixed = order.mix(list(ready))
                ready.clear()
                ready.extend(mixed)
        elif timeout is None:
            raise SimulationStalledError
        else:
            self._virtual_time += max(timeout, 0.0)

    def halt(self) -> None:
        """Let nothing run from now on, not even what is ready."""
        ready, nothing = self._ready, asyncio.Handle(int, (), self)  # type: ignore[attr-defined]
        self._halted = (list(ready), self._scheduled)
        self._scheduled: list[asyncio.TimerHandle] = []
        ready.clear()
        ready.extend([nothing] * len(self._halted[0]))  # the round that goes on has counted them
        self.stop()

    def take_up(self) -> None:
        """Have again what was halted, so that it can end."""
        ready, scheduled = self._halted
        self._ready.extend(ready)  # type: ignore[attr-defined]
        self._scheduled = scheduled


class UniverseProcess(SimulatedProcess):
    """A session with faults; the time that `now` tells is that of the universe, over all its lives."""

    def __init__(self, setting: Setting, schedule: Schedule, *, session_id: str) -> None:
        self.injection = Injection(schedule, die=self._die, now=self.elapsed)
        tools = self._watched(setting.tools)
        agent_tools = {agent: self._watched(own) for agent, own in setting.agent_tools.items()}
        super().__init__(
            model=FaultyModel(setting.model, self.injection),
            provided=lambda: {"tools": tools, "agent_tools": agent_tools},
            disk=SimulatedDisk(pace=FaultyPace(self.injection)),
            session_id=session_id,
            **{"templates": _templates(), **setting.more},
        )
        self._session_id = session_id
        self._died: Kill | None = None

    def _watched(self, tools: Sequence[Tool]) -> list[Tool]:
        return [FaultyTool(tool, self.injection) for tool in tools]

    async def entries(self, after: int) -> list[Notification]:
        """What is in the log on disk, whatever life has written it."""
        store = self._disk.store
        return [] if store is None else await store.notifications(self._session_id, after=after, limit=_MOST)

    def elapsed(self) -> float:
        """Seconds since the universe began."""
        return self._seconds_now() - EPOCH

    def do(self, work: Coroutine[Any, Any, _T], *, within: float) -> _T:
        """Run it to its end; raises `DiedError` if the process dies before, and starts it again."""
        try:
            if not self.is_alive:
                self.start()
            done = self.run(work, patience=within)
        except RuntimeError:  # the event loop was stopped; what was under way is kept as it is
            if self._died is None:
                raise
            if getcoroutinestate(work) == CORO_CREATED:
                work.close()
        else:
            self.come_back()  # it may have died when all was done
            return done
        self.come_back()
        raise DiedError

    def come_back(self) -> None:
        """Start again what died, as often as it dies while it starts."""
        while self._died is not None:
            died, self._died = self._died, None
            self._bury()
            self.start_again(down_seconds=died.down_seconds)

    def start_again(self, *, down_seconds: float = 0.0) -> None:
        try:
            self.restart(down_for=down_seconds)
        except RuntimeError:
            if self._died is None:
                raise
        self.come_back()

    def end(self) -> None:
        """Let go of everything. Nothing is closed in order: it is over."""
        self.injection.order.rounds = 0
        if self.is_alive:
            self.die()
        self._bury()
        for loop, _ in self._dead:
            if isinstance(loop, UniverseLoop):
                loop.take_up()
        with suppress(RestlessError):
            self.close()

    def keep(self, folder: Path, *, title: str) -> None:
        """Kill the process, and copy what the disk has to a data folder."""
        if self.is_alive:
            self.die()
        session = SessionRecord(id=self._session_id, title=title, owner=LOCAL, created_at=EPOCH)
        self._disk.keep(folder, session)

    def _die(self, kill: Kill) -> None:
        self._died = kill
        loop = self._loop
        self.die()
        if isinstance(loop, UniverseLoop):
            loop.halt()

    def new_loop(self, seed: int) -> TeamLoop:
        del seed  # the schedule has its own
        return UniverseLoop(self.injection.order)


@cache
def _templates() -> TemplateLibrary:
    """The templates that a server would find here; they are read once for all universes."""
    return library_of(None)

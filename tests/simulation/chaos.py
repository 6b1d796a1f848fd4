"""Random lives of a session: random work, random orders, random deaths; then the promises are checked.

Everything comes from one seed: the order of callbacks, the speed of the disk, the ids, what people and models do.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any

from ai_whisperer import AsyncAgentSessionManager, WhispererError
from ai_whisperer.domain.tasks import StepState
from ai_whisperer.models.base import Model
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import simulate
from ai_whisperer.store.base import Store
from tests.simulation.people import People
from tests.simulation.promises import check
from tests.simulation.provider import CrowdedProvider
from tests.simulation.world import AGENTS, FaultListener

_SESSION = "default"

LIFE_SECONDS = 60.0
CLOCK_JUMPS = (-3600.0, 3600.0, -3600.0, 3600.0, -7.0, 7.0, 0.3)


class Chaos(People):
    """One run of several lives on one disk."""

    def __init__(self, seed: int, *, lives: int = 3) -> None:
        super().__init__(seed)
        self.disk = SimulatedDisk(seed, slowest_commit_seconds=0.05, slowest_read_seconds=0.1 if seed % 2 else 0.0)
        self._lives = lives
        self._is_crowded = seed % 4 in (1, 2)
        self.log: list[tuple[int, str, str]] = []
        self.faults: list[str] = []
        self._listener = FaultListener(self.faults)

    def run(self) -> None:
        """Live, die, live again; in the last life let all work end and check what was promised."""
        loggers = [logging.getLogger(name) for name in ("ai_whisperer", "asyncio")]
        for logger in loggers:
            logger.addHandler(self._listener)
        try:
            with self.world.faulty_loops():
                for life in range(self._lives):
                    self.play(self._live(), seed=self.seed * 100 + life)
                self.play(self._finish(), seed=self.seed * 100 + 99)
        finally:
            for logger in loggers:
                logger.removeHandler(self._listener)
            self.crash()
            self.disk.close()

    def play(self, life: Coroutine[Any, Any, None], *, seed: int) -> None:
        simulate(life, seed=seed)

    async def store(self) -> Store:
        """A store for a new process."""
        return self.disk.open()

    def crash(self) -> None:
        """The process dies now."""
        self.disk.crash()

    async def _open(self) -> AsyncAgentSessionManager:
        store = await self.store()
        model: Model = FunctionModel(self.world.answer, latency_seconds=1.0)
        if self._is_crowded:
            model = CrowdedProvider(self.world.answer, most=1 + self.seed % 3, latency_seconds=1.0)
        self.world.opened_after.append((await store.load(_SESSION)).last_seq)
        manager = AsyncAgentSessionManager(
            session_id=_SESSION,
            store=store,
            tools=self.world.tools(),
            model_factory=lambda _: model,
            clock=self._clock,
            limits={"max_concurrent_loops": 1 + self.seed % 5},  # fewer than there is work for, in most runs
            random=random.Random(self._random.random()),
        )
        self._listener.is_deaf = False
        await manager.open()
        self.world.opened_at.append(manager._session.kernel.clock.now())
        self.world.settled = await self._settled_steps(manager)
        for name in AGENTS:
            if name not in manager.active_sessions:
                await manager.create_agent(name, self.definition(name))
        return manager

    async def check_more(self, manager: AsyncAgentSessionManager) -> None:
        """Check at the end what holds for lives of this kind alone."""

    async def _settled_steps(self, manager: AsyncAgentSessionManager) -> set[str]:
        return {
            step.id
            for name in manager.active_sessions
            for task in await manager.list_tasks(name, limit=10_000)
            for step in await manager.list_steps(task.id)
            if step.state in (StepState.DONE, StepState.UNKNOWN)
        }

    async def _live(self) -> None:
        manager = await self._open()
        people = [asyncio.ensure_future(self._meddle(manager)) for _ in range(3)]
        people += [asyncio.ensure_future(self._set_the_clock())] if self._clock_is_set else []
        lifetime = self._random.random() * LIFE_SECONDS
        await asyncio.wait(people, timeout=lifetime)
        gently = self._random.random() < 0.2
        for person in people:
            person.cancel()
        await asyncio.wait(people)
        for person in people:
            if not person.cancelled():
                person.result()
        if gently:
            self.world.closed_at.append(manager._session.kernel.clock.now())
            await manager.close()
        assert not self.faults, f"a loop broke: {self.faults}"
        self.crash()
        self._listener.is_deaf = True
        down_for = self._random.choice((0.0, 100.0))
        self._clock = self._clock.later(asyncio.get_running_loop().time() + down_for)
        if self._clock_is_set:
            self._clock.set(self._settings.choice(CLOCK_JUMPS))

    async def _set_the_clock(self) -> None:
        """Somebody sets the wall clock now and then."""
        while True:
            await asyncio.sleep(self._settings.random() * 20)
            self._clock.set(self._settings.choice(CLOCK_JUMPS))

    async def _finish(self) -> None:
        manager = await self._open()
        await asyncio.gather(self._meddle(manager), self._meddle(manager))
        await self._let_all_end(manager)
        await asyncio.sleep(1)  # whoever waited for the last commit has been told
        assert not self.faults, f"a loop broke: {self.faults}"
        await check(manager, self.world)
        await self.check_more(manager)
        self.log = [(note.seq, note.name, note.cause) for note in await manager.notifications(limit=100_000)]
        await manager.close()


def failure_of(seed: int, kind: type[Chaos] = Chaos) -> str | None:
    """What a run with this seed broke, if anything."""
    return failure_in(lambda: kind(seed).run())


def failure_in(run: Callable[[], None]) -> str | None:
    """What the run broke, if anything.

    A step that nobody finds any more is a `StopIteration`, which is a `RuntimeError` outside of its coroutine.
    """
    try:
        run()
    except (
        AssertionError,
        WhispererError,
        TimeoutError,
        ExceptionGroup,
        LookupError,
        ValueError,
        RuntimeError,
    ) as failure:
        first: BaseException = failure
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        return f"{type(first).__name__}: {first}".splitlines()[0]
    return None

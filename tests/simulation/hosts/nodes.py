"""A node of the simulated cluster: what `whisperer serve` does on a machine, life after life."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from ai_whisperer.cluster import beating, joining
from ai_whisperer.cluster.beating import Beating
from ai_whisperer.cluster.clock import ClusterClock
from ai_whisperer.cluster.membership import membership_of
from ai_whisperer.domain.nodes import NodeCard
from ai_whisperer.errors import WhispererError
from ai_whisperer.runtime.session import background
from ai_whisperer.server.duties import Duties
from ai_whisperer.server.host import SessionHost
from ai_whisperer.simulation.loop import EPOCH
from ai_whisperer.store.postgresql import connecting, lane, migrating, pool, registry
from ai_whisperer.templates.library import TemplateLibrary
from tests.simulation.hosts.machines import Machine, MachineLoop, context_here, this_machine
from tests.simulation.hosts.server import Database
from tests.simulation.hosts.wire import Prepared

SESSION = "default"
GRACE_SECONDS = 3.0
_PATIENCE_SECONDS = 30.0
_CLOSE_SECONDS = 20.0
_AGAIN_SECONDS = 0.5


class Node:
    """A name under which one process after the other joins, each on a machine that is as good as new."""

    def __init__(self, name: str, database: Database, chance: random.Random, **supplies: Any) -> None:
        self.name = name
        self._database = database
        self._chance = chance
        self._supplies = supplies
        self.machine = Machine(name)
        self.host: SessionHost | None = None
        self.is_there = asyncio.Event()
        self._asked_to_stop = self._ended = asyncio.Event()
        self.lives = 0
        self.down_seconds = 0.0

    @property
    def loop(self) -> MachineLoop:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, MachineLoop)
        return loop

    async def live(self) -> None:
        """Live for ever: when a process has ended, the next one is started after a while. Runs on no machine."""
        while True:
            self.machine = machine = Machine(self.name, ahead=self._chance.choice((0.0, 0.0, 0.4, 600.0, -600.0)))
            self.lives += 1
            self._asked_to_stop = asyncio.Event()
            self.down_seconds = _AGAIN_SECONDS
            self._ended = ended = asyncio.Event()
            life = machine.run(self._serve(self._asked_to_stop))
            life.add_done_callback(lambda _, ended=ended: ended.set())  # type: ignore[misc]
            await ended.wait()
            self._disappear()
            if life.done() and not machine.is_dead:
                life.result()
                self.kill()
            await asyncio.sleep(self.down_seconds)

    def kill(self) -> None:
        """The process ends at once. The database hears of it as soon as the way to it lets it."""
        self.loop.kill(self.machine)
        self._disappear()
        self._ended.set()
        self._database.cut(self.machine, by_the_machine=True)

    def _appear(self, host: SessionHost) -> None:
        self.host = host
        self.is_there.set()

    def _disappear(self) -> None:
        self.host = None
        self.is_there.clear()

    def stop(self) -> None:
        """Ask the process to end in order."""
        self._asked_to_stop.set()

    async def _serve(self, asked_to_stop: asyncio.Event) -> None:
        """As `serving` does: join, take up sessions, go on until the store fails or somebody asks to stop."""
        card = NodeCard(name=self.name, address=f"http://{self.name}", version="0.1.0", serves=True)
        try:
            store = await joining.join("simulated", card, patience_seconds=_PATIENCE_SECONDS)
        except (WhispererError, OSError):
            return  # it is started again
        host = SessionHost(store, templates=TemplateLibrary([]), membership=membership_of(store), **self._supplies)
        host._manager_of = partial(host._manager_of, random=random.Random(self._chance.random()))
        duties: Duties | None = None
        try:
            await host.start(session_id=SESSION)
            duties = Duties(host, grace_seconds=GRACE_SECONDS)
            self._appear(host)
            stopping = asyncio.ensure_future(asked_to_stop.wait())
            ends: list[asyncio.Future[Any]] = [host.failed, stopping]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
        except (WhispererError, OSError):
            pass  # as above
        finally:
            self._disappear()
            with suppress(TimeoutError, WhispererError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    if duties is not None:
                        await duties.close()
                    await host.close(grace_seconds=GRACE_SECONDS)
                    await store.close()


class SimulatedBeating(Beating):
    """Beats in the event loop of the machine: virtual time knows no threads."""

    _beats: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._beats = asyncio.create_task(self._beat())

    async def stop(self) -> None:
        self.abandon()
        if self._beats is not None:
            await asyncio.wait([self._beats], timeout=_CLOSE_SECONDS)


class MachineClock(ClusterClock):
    """The clock of the machine, corrected as that of a real one is."""

    def now(self) -> float:
        return _machine_time() + self.ahead

    def elapsed(self) -> float:
        return asyncio.get_running_loop().time()


def _machine_time() -> float:
    machine = this_machine()
    return EPOCH + asyncio.get_running_loop().time() + (0.0 if machine is None else machine.ahead)


async def _nothing(*_: object) -> None:
    """The simulated database is as it should be."""


@contextmanager
def simulated_nodes(database: Database, seed: int) -> Iterator[None]:
    """Within, whoever joins does so on the simulated database, at virtual time."""
    chance = random.Random(f"ids {seed}")
    with ExitStack() as stack:
        for owner, name, replacement in (
            (lane, "connect", database.connect),
            (pool, "connect", database.connect),
            (registry, "connect", database.connect),
            (lane, "statement_of", lambda parts, *, holds: Prepared(parts, holds)),
            (connecting, "check_server", _nothing),
            (migrating, "migrate", _nothing),
            (migrating, "check_ready", _nothing),
            (background, "Context", context_here),
            (registry, "time", SimpleNamespace(time=_machine_time)),
            (beating, "now", lambda: asyncio.get_running_loop().time()),
            (joining, "Beating", SimulatedBeating),
            (joining, "ClusterClock", MachineClock),
            (joining, "secrets", SimpleNamespace(token_hex=lambda _: f"{chance.getrandbits(64):016x}")),
        ):
            stack.enter_context(patch.object(owner, name, replacement))
        yield

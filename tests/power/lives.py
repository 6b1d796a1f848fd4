"""Random lives of a session, each of which ends with a power cut, or with a disk that fails and then a cut.

One seed decides all of it: what people, models and tools do, in which order callbacks run, at which call the power
goes, and what of the unsynced writes has reached the disk by then.
"""

from __future__ import annotations

import asyncio
import errno
import random
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ai_whisperer import AsyncAgentSessionManager, WhispererError
from ai_whisperer.core.blame import LONGEST_REST_SECONDS
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.schedules import ScheduleRecord
from ai_whisperer.errors import StoreCorruptError, StoreFailedError, StoreLostError
from ai_whisperer.store import durable_folders
from ai_whisperer.store.base import Store
from ai_whisperer.store.sqlite import SqliteStore, acknowledged
from ai_whisperer.testing.power import WrittenTree
from ai_whisperer.testing.power_vfs import KINDS, Interruption, PoweredDisk, PoweredSystem, PowerVFS
from tests.power.committing import committing_on_the_loop
from tests.power.witness import Witness
from tests.simulation.chaos import Chaos

LIVES = 8
_LIFE_SECONDS = 20.0
_OTHER_OUTCOMES = 2
"""So many other outcomes of the same cut are looked at beside the one with which life goes on."""
_MOST_CALLS = {
    "database.write": 60,
    "database.sync": 3,
    "wal.write": 300,
    "wal.sync": 30,
    "journal.write": 7,
    "journal.sync": 4,
    "open": 6,
    "read": 300,
    "delete": 2,
    "truncate": 2,
    "note.write": 20,
    "note.sync": 1,
    "folder.sync": 2,
}
"""Up to which call of a kind the power is cut: not more than there are in most lives."""
_ONLY_AT_FIRST = ("journal.write", "journal.sync")
_MOST_CALLS_OF_ALL = 700
_FAILING = ("database.write", "database.sync", "wal.write", "wal.sync", "note.write", "note.sync")
_SCHEDULE = "rounds"
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder in it has a random name
"""No disk is waited for, where there is such a place."""
_EACH_SECONDS = 15.0


class PowerLives(Chaos):
    """One run of several lives on one disk. `cuts` counts where the power went, `outcomes` what was looked at."""

    synchronous = "FULL"

    def __init__(self, seed: int, *, lives: int = LIVES, first: Interruption | None = None) -> None:
        super().__init__(seed, lives=lives)
        self._clock_is_set = False
        self._cutting = random.Random(f"power {seed}")
        self._life = 0
        self._first = first
        self._places_of_lives = tempfile.TemporaryDirectory(
            prefix="whisperer-power-", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None
        )
        self._root = Path(self._places_of_lives.name)
        self.witness = Witness(self.world)
        self.cuts: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.outcomes = 0
        self.stopped = 0
        """How often the store took nothing more before the power went."""
        self._over = asyncio.Event()
        self._lived_seconds = 0.0
        self._store: SqliteStore | None = None
        self._power = self._disk_with(None)

    def run(self) -> None:
        checkpoint_pages = self._cutting.choice((8, 25, 100))
        system = PoweredSystem(lambda: self._power)
        with ExitStack() as stack:
            stack.callback(self._places_of_lives.cleanup)
            stack.enter_context(
                committing_on_the_loop(self._cutting, lambda: self._power.is_on, checkpoint_pages=checkpoint_pages)
            )
            for module in (acknowledged, durable_folders):
                stack.enter_context(patch.object(module, "os", system))
            super().run()

    async def store(self) -> Store:
        """The store of a new process, which has all that was told."""
        disk = self._power
        self._store = store = self._opened(disk)
        publish = store._groups._publish

        def heard(notes: Any, sizes: Any) -> None:
            if disk.is_on:
                self.witness.hear(notes)
            publish(notes, sizes)

        store._groups._publish = heard  # type: ignore[method-assign, assignment]
        with disk.unwatched():
            self.witness.look_into(store)
        return store

    def crash(self) -> None:
        """The power is cut, if it is not off already; then it is back, and the disk has what it has."""
        self._power.cut()
        store, self._store = self._store, None
        if store is not None:
            store.abandon()
        self.witness.open_eyes()

    def play(self, life: Coroutine[Any, Any, None], *, seed: int) -> None:
        super().play(life, seed=seed)
        if not self._power.is_on:
            self._after_the_cut()

    async def _live(self) -> None:
        self._over = asyncio.Event()
        self._power.plans = self._planned()
        self._life += 1
        life = asyncio.ensure_future(self._live_until_the_cut())
        await asyncio.wait([life, asyncio.ensure_future(self._over.wait())], return_when=asyncio.FIRST_COMPLETED)
        self._power.cut()
        self._listener.is_deaf = True
        self._lived_seconds = asyncio.get_running_loop().time()
        if self._store is not None:
            self.stopped += self._store.health.failure is not None
            self._store._groups.stop(StoreFailedError("The power is off."))  # so that nobody waits for a commit
        failure = life.exception() if life.done() else None
        if failure is not None and not self._is_due_to_the_disk(failure):
            raise failure
        assert self._power.failed_at or not self.faults, f"a loop broke: {self.faults}"

    def _is_due_to_the_disk(self, failure: BaseException) -> bool:
        is_harm = isinstance(failure, (StoreLostError, StoreCorruptError))
        return bool(self._power.failed_at) and isinstance(failure, WhispererError) and not is_harm

    async def _live_until_the_cut(self) -> None:
        manager = await self._open()
        people = [asyncio.ensure_future(self._meddle(manager)) for _ in range(3)]
        lifetime = self._cutting.random() * _LIFE_SECONDS
        done, _ = await asyncio.wait(people, timeout=lifetime, return_when=asyncio.FIRST_EXCEPTION)
        if self._power.failed_at:
            await asyncio.sleep(self._cutting.random())  # whatever it says now has to be true
        for person in done:
            person.result()
        if self._cutting.random() < 0.3:
            for person in people:
                person.cancel()
            await asyncio.wait(people)
            await self._close(manager)

    async def _close(self, manager: AsyncAgentSessionManager) -> None:
        """End as one who is asked to: the log is copied into the database, and deleted."""
        self.world.closed_at.append(self._clock.now())
        await manager.close()
        if self._store is not None:
            await self._store.close()

    def _choose(self) -> Callable[[AsyncAgentSessionManager, str], Awaitable[object]]:
        return self._come_and_go if self._cutting.random() < 0.06 else super()._choose()

    async def _come_and_go(self, *_: object) -> None:
        """Somebody opens another session, works in it, and deletes it: nobody may miss it then."""
        if (store := self._store) is None:
            return
        self._sent += 1
        name = f"other{self._sent}"
        others = self.witness.others
        async with AsyncAgentSessionManager(session_id=name, store=store, clock=self._clock) as other:
            await other.create_agent("eve")
            others[name] = "there"
            await asyncio.sleep(self._cutting.random())
        others[name] = "anything"
        await store.delete_session(name)
        others[name] = "gone"

    def _after_the_cut(self) -> None:
        disk = self._power
        self.crash()
        self.cuts[disk.cut_at or "no call"] += 1
        self.failures.update(disk.failed_at[:1])
        self.faults.clear()
        for _ in range(_OTHER_OUTCOMES):
            self._look_at_another_outcome(disk)
        self._power = self._disk_with(disk.tree)
        down_for = self._cutting.choice((0.0, 100.0))
        self._clock = self._clock.later(self._lived_seconds + down_for)

    def _look_at_another_outcome(self, disk: PoweredDisk) -> None:
        another = self._disk_with(disk.tree)
        self._power = another
        with another.unwatched():
            store = self._opened(another)
            try:
                self.witness.look_into(store)
            finally:
                store.abandon()

    async def _open(self) -> AsyncAgentSessionManager:
        started = self._clock.now()
        self.world.opened_at.append(started)
        manager = await super()._open()
        if _SCHEDULE not in {each.id for each in manager.list_schedules()}:
            await manager.create_schedule(
                "ann", interval_seconds=_EACH_SECONDS, prompt="work", missed="all", schedule_id=_SCHEDULE
            )
        return manager

    async def _let_all_end(self, manager: AsyncAgentSessionManager) -> None:
        created = await manager.delete_schedule(_SCHEDULE)
        await super()._let_all_end(manager)
        await asyncio.sleep(LONGEST_REST_SECONDS)  # so long a suspect may rest, also one that was cancelled meanwhile
        self._check_rounds(await manager.notifications(limit=1_000_000), created)

    def _check_rounds(self, log: list[Notification], schedule: ScheduleRecord) -> None:
        """Each instant at which the schedule was due has happened once, or it is told why it has not."""
        told = [note for note in log if note.name in ("schedule.fired", "schedule.missed")]
        due = [note.params["dueAt"] for note in told if note.name == "schedule.fired"]
        assert due == sorted(set(due)), "a schedule has fired twice for one instant"
        assert len(due) == schedule.fired, "a schedule has fired and does not know it"
        missed = sum(note.params["count"] for note in told if note.name == "schedule.missed")
        instants = round((due[-1] - schedule.created_at) / _EACH_SECONDS) if due else 0
        assert len(due) + missed >= instants, "an instant of a schedule is missing"

    def _opened(self, disk: PoweredDisk) -> SqliteStore:
        vfs = PowerVFS(disk)
        store = SqliteStore.open(disk.path, vfs=vfs.name)
        store._vfs = vfs  # type: ignore[attr-defined] # it is there as long as somebody has it
        if self.synchronous != "FULL":
            store._writing.pragma("synchronous", self.synchronous)
        return store

    def _disk_with(self, before: WrittenTree | None) -> PoweredDisk:
        """What there is after a cut, in a place of its own."""
        files = None if before is None else before.after_cut(self._cutting)
        self.outcomes += before is not None
        outer = Path(tempfile.mkdtemp(dir=self._root))
        path = outer / "data"
        if files is not None:
            path.mkdir()
            for name, content in files.items():
                (path / name).write_bytes(content)
        return PoweredDisk(path, WrittenTree(files), on_cut=self._cut)

    def _cut(self) -> None:
        self.witness.close_eyes()
        self._over.set()

    def _planned(self) -> tuple[Interruption, ...]:
        chance = self._cutting
        if self._life == 0 and self._first is not None:
            return (self._first,)
        if self._life == 0:
            kind = chance.choice((*_ONLY_AT_FIRST, "delete", *KINDS))
        else:
            kind = chance.choice([each for each in KINDS if each not in _ONLY_AT_FIRST])
        late = chance.random() < 0.5
        if chance.random() < 0.6:
            plan = Interruption(kind=kind, number=chance.randint(1, _MOST_CALLS[kind]), late=late)
        else:
            plan = Interruption(number=chance.randint(1, _MOST_CALLS_OF_ALL), late=late)
        if chance.random() < 0.75:
            return (plan,)
        kind = chance.choice(_FAILING)
        fault = Interruption(
            kind=kind,
            number=chance.randint(1, _MOST_CALLS[kind]),
            error=chance.choice((errno.EIO, errno.ENOSPC)),
            lasting=chance.random() < 0.3,
        )
        return (plan, fault)

"""The keeper: looks how many nodes there are to be, and does what there is to do about it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import Final, NamedTuple, Protocol

from ai_whisperer.cluster.ray.chores import Chore, Kind, chores, names_of
from ai_whisperer.cluster.ray.scaling import Watch, choose
from ai_whisperer.cluster.ray.shell import SETTLED_SECONDS, pause_after
from ai_whisperer.domain.cluster import NodeState, RayStatus
from ai_whisperer.errors import RayError, StoreError
from ai_whisperer.store.postgresql.launching import LaunchBook

ROUND_SECONDS: Final = 0.5

_log = logging.getLogger(__name__)


class Crew(Protocol):
    """The actors. All raise `RayError` if Ray does not answer."""

    def names(self) -> Collection[str]: ...

    def start(self, name: str) -> None: ...

    def restart(self, name: str) -> bool:
        """Whether the actor has a process, which leaves now and is followed by another."""
        ...

    def end(self, name: str, *, has_node: bool) -> None:
        """End the actor, after its process. One that has no node may not even be placed yet."""
        ...


class NoCrew:
    """There is no Ray any more: what it has left is ended through the database alone."""

    def names(self) -> Collection[str]:
        return ()

    def start(self, name: str) -> None:
        """Nobody can."""

    def restart(self, name: str) -> bool:  # noqa: ARG002
        return False

    def end(self, name: str, *, has_node: bool) -> None:
        """There is none."""


class _Starts(NamedTuple):
    """How often the actor of a name was started of late, and when it was for the last time."""

    number: int
    at: float


class Hands:
    """Does the chores. One that takes its time, as a process does that has to leave, keeps no other waiting."""

    def __init__(self, book: LaunchBook, crew: Crew, *, now: Callable[[], float] = time.monotonic) -> None:
        self._book = book
        self._crew = crew
        self._now = now
        self._under_way: dict[str, tuple[Chore, asyncio.Task[bool]]] = {}
        self._starts: dict[str, _Starts] = {}

    async def do(self, wanted: int, actors: Collection[str]) -> bool:
        """Begin all that can be done now; returns whether everything is as it is wanted."""
        await self._settle()
        todo = chores(wanted, actors, await self._book.run_nodes())
        for chore in todo:
            if chore.name in self._under_way:
                continue
            if chore.kind in (Kind.DRAIN, Kind.REMOVE):
                await self._tell_book(chore)
            elif chore.kind is not Kind.START or self._may_start(chore.name):
                told = asyncio.create_task(asyncio.to_thread(_told_crew, chore, self._crew))
                self._under_way[chore.name] = (chore, told)
        return not todo and not self._under_way

    async def _settle(self) -> None:
        """See what came of that which was under way."""
        for name, (chore, told) in list(self._under_way.items()):
            if told.done():
                del self._under_way[name]
                if not await told:
                    await self._tell_book(chore)

    async def _tell_book(self, chore: Chore) -> None:
        """Do it through the database. A node that is let go stops, as one taken for dead does."""
        if chore.node is None:
            return
        if chore.kind is not Kind.DRAIN:
            await self._book.remove(chore.node.host_id)
        elif chore.node.state is NodeState.JOINED:
            await self._book.drain(chore.name, force=True)  # how many there are to be was decided before

    def _may_start(self, name: str) -> bool:
        """Whether it is time: one that never comes to be, as where nothing is installed, is tried ever less often."""
        now = self._now()
        before = self._starts.get(name)
        if before is not None and now < before.at + pause_after(before.number):
            return False
        is_again = before is not None and now < before.at + SETTLED_SECONDS + pause_after(before.number)
        self._starts[name] = _Starts(before.number + 1 if before is not None and is_again else 1, now)
        return True


def _told_crew(chore: Chore, crew: Crew) -> bool:
    """Do what is for the actors; returns whether nothing is left to be done through the database."""
    match chore.kind:
        case Kind.START:
            crew.start(chore.name)
        case Kind.END:
            crew.end(chore.name, has_node=chore.node is not None)
        case Kind.RESTART:
            return crew.restart(chore.name)
    return True


class Rounds:
    """What a keeper does again and again, for one Ray: none, once the nodes are another Ray's."""

    def __init__(self, book: LaunchBook, crew: Crew, address: str) -> None:
        self._book = book
        self._crew = crew
        self._address = address
        self._hands = Hands(book, crew)
        self._watch = Watch()

    async def once(self) -> None:
        ray = await self._book.ray()
        if ray is not None and ray.address != self._address:
            return
        actors = await asyncio.to_thread(self._crew.names)
        await self._book.kept()
        await self._hands.do(0 if ray is None else await self._chosen(ray), actors)

    async def _chosen(self, ray: RayStatus) -> int:
        """How many nodes there are to be, after a look at what they have to do."""
        if ray.least == ray.most:
            self._watch = Watch()  # what was seen before is long ago once there is a choice again
            return ray.wanted
        nodes = [each for each in await self._book.run_nodes() if each.name in names_of(ray.wanted)]
        choice = choose(ray, nodes, await self._book.waiting(), self._watch, time.monotonic())
        self._watch = choice.watch
        if choice.move is not None:
            await self._book.shed(*choice.move)
        if choice.wanted == ray.wanted or not await self._book.choose(choice.wanted, choice.why, before=ray.wanted):
            return ray.wanted
        return choice.wanted


class Keeper:
    """An actor that keeps until it is killed. It is made anew, elsewhere, if its machine dies."""

    def __init__(self, store: str, crew: Crew, address: str) -> None:
        self._store = store
        self._crew = crew
        self._address = address
        threading.Thread(target=lambda: asyncio.run(self._keep()), daemon=True).start()

    def ping(self) -> None:
        """Answers when it is there."""

    async def _keep(self) -> None:
        rounds = Rounds(LaunchBook(self._store), self._crew, self._address)
        while True:
            try:
                await rounds.once()
            except (ConnectionError, StoreError, RayError) as error:
                _log.warning("not kept: %s", error)
            await asyncio.sleep(ROUND_SECONDS)

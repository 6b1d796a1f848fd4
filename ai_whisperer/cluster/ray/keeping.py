"""The keeper: looks how many nodes there are to be, and does what there is to do about it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Collection
from typing import Final, Protocol

from ai_whisperer.cluster.ray.chores import Chore, Kind, chores
from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.domain.nodes import RunNode
from ai_whisperer.errors import RayError, StoreError
from ai_whisperer.store.postgresql.launching import LaunchBook

ROUND_SECONDS: Final = 0.5
SILENT_SECONDS: Final = 10.0
"""A keeper that was not heard of for so long is taken for gone: it is heard of each round."""

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


async def keep(book: LaunchBook, crew: Crew) -> bool:
    """Do all that can be done now; returns whether everything is as it is wanted."""
    ray = await book.ray()
    actors = await asyncio.to_thread(crew.names)
    if isinstance(crew, NoCrew):
        todo = chores(0, (), await book.run_nodes())
    else:
        await book.kept()
        todo = chores(0 if ray is None else ray.wanted, actors, await book.run_nodes())
    done = await asyncio.gather(*(asyncio.to_thread(_told_crew, chore, crew) for chore in todo))
    for chore, is_done in zip(todo, done, strict=True):
        if not is_done and chore.node is not None:
            await _told_book(chore.kind, chore.node, book)
    return not todo


def _told_crew(chore: Chore, crew: Crew) -> bool:
    """Do it, if it is for the actors. Processes take their time to leave: all of them at once."""
    match chore.kind:
        case Kind.START:
            crew.start(chore.name)
        case Kind.END:
            crew.end(chore.name, has_node=chore.node is not None)
        case Kind.RESTART:
            return crew.restart(chore.name)
        case _:
            return False
    return True


async def _told_book(kind: Kind, node: RunNode, book: LaunchBook) -> None:
    """Do it through the database, on its one connection. A node that is let go stops, as one taken for dead does."""
    if kind is not Kind.DRAIN:
        await book.remove(node.host_id)
    elif node.state is NodeState.JOINED:
        await book.drain(node.name)


class Keeper:
    """An actor that keeps until it is killed. It is made anew, elsewhere, if its machine dies."""

    def __init__(self, store: str, crew: Crew) -> None:
        self._store = store
        self._crew = crew
        threading.Thread(target=lambda: asyncio.run(self._keep()), daemon=True).start()

    def ping(self) -> None:
        """Answers when it is there."""

    async def _keep(self) -> None:
        book = LaunchBook(self._store)
        while True:
            try:
                await keep(book, self._crew)
            except (ConnectionError, StoreError, RayError) as error:
                _log.warning("not kept: %s", error)
            await asyncio.sleep(ROUND_SECONDS)

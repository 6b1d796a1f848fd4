"""The keeper: looks how many nodes there are to be, and does what there is to do about it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Collection
from typing import Final, Protocol

from ai_whisperer.cluster.ray.chores import Chore, Kind, chores
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
    await asyncio.gather(*(_do(chore, book, crew) for chore in todo))
    return not todo


async def _do(chore: Chore, book: LaunchBook, crew: Crew) -> None:
    _log.info("%s %s", chore.kind, chore.name)
    match chore.kind:
        case Kind.START:
            await asyncio.to_thread(crew.start, chore.name)
        case Kind.END:
            await asyncio.to_thread(crew.end, chore.name, has_node=chore.node is not None)
        case Kind.RESTART:
            if not await asyncio.to_thread(crew.restart, chore.name):
                await _remove(chore, book)
        case Kind.DRAIN:
            if chore.node is not None and chore.node.state != "draining":
                await book.drain(chore.name)
        case Kind.REMOVE:
            await _remove(chore, book)


async def _remove(chore: Chore, book: LaunchBook) -> None:
    """Let a node go that nobody here has started: its process stops, as one does that was taken for dead."""
    if chore.node is not None:
        await book.remove(chore.node.id)


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

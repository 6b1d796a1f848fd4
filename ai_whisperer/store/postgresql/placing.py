"""Which sessions this process has, where several share the database: each is claimed before it is opened."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

import msgspec
from asyncpg import Connection

from ai_whisperer.core.tags import having, listed, nobody_has
from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.errors import NodeFencedError, SessionElsewhereError
from ai_whisperer.store.postgresql import node_queries as queries
from ai_whisperer.store.postgresql.pool import Readers
from ai_whisperer.store.postgresql.registry import node_from

_JUDGED_SECONDS: Final = 4.0
"""So long it is waited for that a node whose connection is gone comes back, or is found to be gone too."""
_PAUSE_SECONDS: Final = 0.1


class Placing:
    """The claims of one process: the sessions that are its own, and the epoch of each, which every group proves.

    Each call takes effect once over lost connections: what was claimed without an answer is found to be ours.
    """

    def __init__(self, host_id: str, readers: Readers) -> None:
        self.host_id = host_id
        self._readers = readers
        self.claims: dict[str, int] = {}
        self._pinned: set[str] = set()
        self._changing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def claim(self, session_id: str) -> bool:
        """Have the session; returns whether it was not ours before. Raises `SessionElsewhereError`."""
        async with self._changing.setdefault(session_id, asyncio.Lock()):
            return await self._claimed(session_id)

    async def _claimed(self, session_id: str) -> bool:
        if session_id in self.claims:
            return False
        loop = asyncio.get_running_loop()
        until = loop.time() + _JUDGED_SECONDS
        while True:
            epoch, elsewhere = await self._readers.read(lambda connection: self._claim(connection, session_id))
            if session_id in self.claims:
                return False  # somebody else here was sooner
            if epoch is not None:
                self.claims[session_id] = epoch
                return True
            if elsewhere is not None and (elsewhere.has_lock or loop.time() >= until):
                raise SessionElsewhereError(
                    f"The node '{elsewhere.name}'{_at(elsewhere.address)} has the session '{session_id}'. Ask that "
                    "one, or wait until it has let the session go.",
                    node=elsewhere.name,
                    address=elsewhere.address,
                )
            if elsewhere is None:
                await self._check_taking(session_id)
                if loop.time() >= until:
                    raise SessionElsewhereError(f"The session '{session_id}' is on its way to another node. Ask again.")
            await asyncio.sleep(_PAUSE_SECONDS)

    async def release(self, session_id: str, *, files_left: bool = False) -> None:
        """Let others have the session, unless it is pinned. All that was decided in it must be committed.

        If it was deleted and has `files_left` here, that is not forgotten.
        """
        async with self._changing.setdefault(session_id, asyncio.Lock()):
            epoch = self.claims.get(session_id)
            if epoch is None or session_id in self._pinned:
                return

            async def free(connection: Connection) -> None:
                await connection.execute(queries.RELEASE, self.host_id, session_id, epoch)
                await connection.execute(queries.FORGET, session_id)
                if not files_left:
                    await connection.execute(queries.FORGET_FILES, self.host_id, session_id)

            await self._readers.read(free)
            if self.claims.get(session_id) == epoch:
                del self.claims[session_id]

    @contextmanager
    def pinned(self, session_id: str) -> Iterator[None]:
        """Within, the session is not released."""
        self._pinned.add(session_id)
        try:
            yield
        finally:
            self._pinned.discard(session_id)

    async def is_ours(self, session_id: str) -> bool:
        """Whether the database still says so."""
        epoch = self.claims.get(session_id)
        if epoch is None:
            return False
        held = (self.host_id, session_id, epoch)
        return await self._readers.read(lambda each: each.fetchval(queries.STILL_MINE, *held)) is not None

    async def want(self, session_ids: Sequence[str]) -> None:
        """Let sessions with work that no node ever had be taken by one."""
        await self._readers.read(lambda connection: connection.execute(queries.WANT, list(session_ids)))

    async def take(self, limit: int) -> list[str]:
        """Claim up to so many of the sessions that have work and nobody; returns which they are."""
        attempts = 0

        async def take(connection: Connection) -> list[tuple[str, int]]:
            nonlocal attempts
            attempts += 1
            rows = await connection.fetch(queries.TAKE, self.host_id, limit)
            if attempts > 1:  # an answer was lost: what it told of is ours already
                rows = await connection.fetch(queries.MINE, self.host_id)
            return [(session_id, epoch) for session_id, epoch in rows]

        taken = {each: epoch for each, epoch in await self._readers.read(take) if each not in self.claims}
        self.claims.update(taken)
        return list(taken)

    async def was_cut_off(self, session_id: str) -> bool:
        """Whether the node that had the session before may not have ended by itself."""
        return await self._readers.read(lambda each: each.fetchval(queries.WAS_CUT_OFF, session_id)) is not None

    async def is_deleted(self, session_id: str) -> bool:
        """Whether the session was being deleted or imported when its node ended."""
        return await self._readers.read(lambda each: each.fetchval(queries.IS_DELETED, session_id)) is not None

    async def _claim(self, connection: Connection, session_id: str) -> tuple[int | None, _Holder | None]:
        epoch = await connection.fetchval(queries.CLAIM, self.host_id, session_id)
        if epoch is not None:
            return epoch, None
        found = await connection.fetchrow(queries.HOLDER, session_id)
        if found is None:
            return None, None
        writer_id, held_epoch, name, address, has_lock = found
        if writer_id == self.host_id:
            return held_epoch, None
        return None, _Holder(name, address, has_lock)

    async def _check_taking(self, session_id: str) -> None:
        """Raise if it is this node that does not take the session."""
        rows = await self._readers.read(lambda connection: connection.fetch(queries.NODES))
        nodes = [node_from(tuple(row)) for row in rows]
        own = next((each for each in nodes if each.id == self.host_id), None)
        if own is None:
            raise NodeFencedError("The database no longer has this node, so it stops; its log says why.")
        needs = await self._readers.read(lambda each: each.fetchval(queries.NEEDS, session_id))
        needed: tuple[str, ...] = tuple(msgspec.json.decode(needs))
        takers = {each.name: each for each in nodes if each.serves and each.state is NodeState.JOINED}
        tags = {name: each.tags for name, each in takers.items()}
        fitting = [takers[name] for name in having(needed, tags)]
        other = max(fitting, key=lambda each: each.strength, default=None)
        if own.state is not NodeState.JOINED:
            why = f"The node '{own.name}' is being drained and does not take the session '{session_id}'"
        elif not having(needed, {own.name: own.tags}):
            why = f"The session '{session_id}' needs {listed(needed)}, which the node '{own.name}' does not have"
        elif await self._readers.read(lambda each: each.fetchval(queries.IS_FOR_STRONGER, self.host_id, session_id)):
            why = (
                f"Agents of the session '{session_id}' run programs, which the sandbox of the node '{own.name}' "
                f"({own.sandbox or 'none'}) holds less than others do"
            )
        else:
            return
        if other is not None:
            whom = f"ask the node '{other.name}'{_at(other.address)}."
        elif takers:
            whom = nobody_has(needed, tags)
        else:
            whom = "start another."
        name, address = ("", "") if other is None else (other.name, other.address)
        raise SessionElsewhereError(f"{why}: {whom}", node=name, address=address)


class _Holder(NamedTuple):
    """The node that has a session."""

    name: str
    address: str
    has_lock: bool


def _at(address: str) -> str:
    return f" at {address}" if address else ""

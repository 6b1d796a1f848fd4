"""The book of the nodes, in the database: who has joined, how often each has beaten, and who is let go."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import asyncpg
import msgspec
from asyncpg import Connection

from ai_whisperer.core.tags import having
from ai_whisperer.domain.cluster import ClusterStatus, NodeState, NodeStatus, PlacedSession, RayStatus
from ai_whisperer.domain.nodes import Absence, Draining, Load, NodeCard, Seen, SeenNode
from ai_whisperer.store.postgresql import node_queries as queries
from ai_whisperer.store.postgresql.connecting import LOST, connect, explained, in_words
from ai_whisperer.store.tables import Row, encode

_CLOSE_SECONDS: Final = 1.0
_EXACT_SECONDS: Final = 0.5
"""An answer that took longer does not tell what time it is."""
_CONNECT_SECONDS: Final = 2.0
"""For each host of the address: one that does not even refuse must not keep a node from beating at the next."""


def name_of(host_id: str) -> str:
    """How the connections of a node are called in the database, at their beginning."""
    return f"whisperer {host_id}"


class Registry:
    """One connection to the book. A call on which it is lost raises `ConnectionError`; the next makes another.

    For a node that has joined the connection holds a lock: it tells others that the process lives.
    """

    def __init__(self, address: str, host_id: str, *, holds_lock: bool = False) -> None:
        self._address = address
        self._id = host_id
        self._name = f"{name_of(host_id)} {'beating' if holds_lock else 'asking'}"
        self._holds_lock = holds_lock
        self._connection: Connection | None = None

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and not self._connection.is_closed()

    async def beat(self, load: Load) -> Seen | Absence:
        """Say that this node lives and what it has to do, and look who else does; or why it is not in the book."""
        async with self.at_work() as connection:
            if await connection.fetchval(queries.BEAT, self._id, load.lag_seconds, load.busy) is None:
                was_let_go = await connection.fetchval(queries.HAS_DEPARTED, self._id)
                return Absence.LET_GO if was_let_go else Absence.NEVER_SEEN
            return await self._seen(connection)

    async def look(self) -> Seen:
        """What `beat` sees, without saying anything."""
        async with self.at_work() as connection:
            return await self._seen(connection)

    async def join(self, card: NodeCard, *, folder_id: str = "") -> bool:
        """Enter this node, which has files of sessions in that folder; False if there is one of that name."""
        values = (
            card.name,
            card.address,
            card.version,
            card.settings,
            card.sandbox,
            card.serves,
            card.strength,
            folder_id,
            encode(card.tags).decode(),
        )
        async with self.at_work() as connection:
            return await connection.fetchval(queries.JOIN, self._id, *values) is not None

    async def cluster(self) -> tuple[str, str]:
        """The id of the cluster, and the oldest version that may join."""
        async with self.at_work() as connection:
            return tuple(await connection.fetchrow(queries.CLUSTER))

    async def secret(self) -> str:
        """What nodes of this cluster show to each other."""
        async with self.at_work() as connection:
            return str(await connection.fetchval(queries.SHOWN_TO_NODES))

    async def raise_min_version(self, version: str) -> None:
        async with self.at_work() as connection:
            await connection.execute(queries.RAISE_MIN_VERSION, version)

    async def remove(self, host_id: str, beat: int | None = None, *, has_ended: bool = True) -> bool:
        """Let a node go: it writes nothing after this. With `beat` only if it has not beaten since.

        `has_ended` is whether its process is known to have ended; else it may be frozen or cut off.

        Its connections are ended first: one of a process that is frozen may hold what has to be changed.
        """
        async with self.at_work() as connection:
            if host_id != self._id:
                if beat is not None and all((n.id, n.beat) != (host_id, beat) for n in await _nodes(connection)):
                    return False
                await connection.execute(queries.END_CONNECTIONS, name_of(host_id))
            return bool(await connection.fetchval(queries.REMOVE, host_id, beat, has_ended))

    async def drain(self, name: str, *, force: bool) -> Draining | None:
        """Let a node give its sessions to others; None if there is none of that name that takes any.

        The last that takes sessions is only drained by `force`.
        """
        async with self.at_work() as connection:
            told = await connection.fetchval(queries.DRAIN, name, force)
            return None if told is None else Draining(told)

    async def needs(self, session_id: str) -> tuple[str, ...]:
        """The tags that the session needs; none if there is no such session."""
        async with self.at_work() as connection:
            return _tags(await connection.fetchval(queries.NEEDS, session_id))

    async def need(self, session_id: str, needs: Sequence[str]) -> bool:
        """Let the session need these tags, and go to a node that has them; False if there is no such session."""
        async with self.at_work() as connection:
            return bool(await connection.fetchval(queries.NEED, session_id, encode(needs).decode()))

    async def move(self, session_id: str, name: str) -> None:
        """Let the session go to that node, as soon as the one that has it has let it go."""
        async with self.at_work() as connection:
            await connection.execute(queries.MOVE, session_id, name)

    async def deleted_elsewhere(self) -> list[str]:
        """The sessions that are there no more, and of which the folder of this node may have files."""
        async with self.at_work() as connection:
            return [row[0] for row in await connection.fetch(queries.DELETED_ELSEWHERE, self._id)]

    async def placed(self, session_id: str) -> PlacedSession:
        async with self.at_work() as connection:
            found = await connection.fetchrow(queries.PLACED, session_id)
        node, address, epoch = ("", "", 0) if found is None else found
        return PlacedSession(session_id=session_id, node=node, address=address, epoch=epoch)

    async def status(self) -> ClusterStatus:
        async with self.at_work() as connection:
            cluster_id, min_version = await connection.fetchrow(queries.CLUSTER)
            counts: dict[str, int] = dict(map(tuple, await connection.fetch(queries.SESSION_COUNTS)))
            ray = ray_from(await connection.fetchrow(queries.RAY))
            waiting_for = [_tags(needs) for (needs,) in await connection.fetch(queries.NEEDS_OF_WAITING)]
            seen = await self._seen(connection)
        own = next((each.settings for each in seen.nodes if each.id == self._id), "")
        nodes = (
            NodeStatus(
                name=each.name,
                address=each.address,
                state=each.state,
                version=each.version,
                sandbox=each.sandbox,
                serves=each.serves,
                sessions=counts.get(each.id, 0),
                started_at=each.started_at,
                is_this=each.id == self._id,
                has_same_settings=each.settings == own or not each.serves,
                lag_seconds=each.load.lag_seconds,
                busy=each.load.busy,
                tags=each.tags,
            )
            for each in seen.nodes
        )
        takers = {each.name: each.tags for each in seen.nodes if each.serves and each.state is NodeState.JOINED}
        return ClusterStatus(
            cluster_id=cluster_id,
            min_version=min_version,
            nodes=tuple(nodes),
            waiting=seen.wanted,
            ray=ray,
            unmet=tuple(sorted(needs for needs in waiting_for if not having(needs, takers))),
        )

    def lose(self) -> None:
        """Let go of the connection at once."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*LOST):
                await connection.close(timeout=_CLOSE_SECONDS)

    async def _seen(self, connection: Connection) -> Seen:
        nodes = await _nodes(connection)
        wanted, moving, limits = await connection.fetchrow(queries.CHORES, self._id)
        asked_at = time.time()
        incarnation, at = await connection.fetchrow(queries.INCARNATION)
        answered_at = time.time()
        is_exact = 0 <= answered_at - asked_at < _EXACT_SECONDS
        return Seen(
            nodes=nodes,
            incarnation=incarnation,
            wanted=wanted,
            moving=tuple(moving),
            limits=limits,
            clock_ahead=at - (asked_at + answered_at) / 2 if is_exact else None,
        )

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[Connection]:
        """The connection, for one call."""
        try:
            yield await self._connected()
        except LOST as error:
            self.lose()
            raise ConnectionError(in_words(error)) from error
        except asyncpg.PostgresError as error:
            raise explained(error) from error
        except BaseException:  # given up in the middle of a statement
            self.lose()
            raise

    async def _connected(self) -> Connection:
        """The connection. A former one of this node that the database still has is ended: it may have the lock."""
        if self._connection is None or self._connection.is_closed():
            connection = await connect(self._address, name=self._name, seconds=_CONNECT_SECONDS)
            try:
                if self._holds_lock:
                    await connection.execute(queries.END_CONNECTIONS, self._name)
                    await connection.fetchval(queries.LOCK, self._id)
            except BaseException:
                connection.terminate()
                raise
            self._connection = connection
        return self._connection


async def _nodes(connection: Connection) -> tuple[SeenNode, ...]:
    return tuple(node_from(tuple(row)) for row in await connection.fetch(queries.NODES))


def ray_from(row: Row) -> RayStatus | None:
    address, wanted, silent_seconds, least, most, sessions_each, why = row
    if not address:
        return None
    return RayStatus(
        address=address,
        wanted=wanted,
        silent_seconds=float(silent_seconds),
        least=least,
        most=most,
        sessions_each=sessions_each,
        why=why,
    )


def node_from(row: Row) -> SeenNode:
    host_id, name, address, version, settings, sandbox, strength, serves, state, beat, started_at, has_lock, *rest = row
    lag_seconds, busy, tags = rest
    return SeenNode(
        id=host_id,
        name=name,
        address=address,
        version=version,
        settings=settings,
        sandbox=sandbox,
        strength=strength,
        serves=serves,
        state=NodeState(state),
        beat=beat,
        started_at=started_at,
        has_lock=has_lock,
        load=Load(lag_seconds, busy),
        tags=_tags(tags),
    )


_tags = msgspec.json.Decoder(tuple[str, ...]).decode

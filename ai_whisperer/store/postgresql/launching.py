"""The part of the book that says which nodes Ray is to run, and what those that it runs do."""

from __future__ import annotations

import secrets

from ai_whisperer.domain.cluster import RayStatus
from ai_whisperer.domain.nodes import RunNode
from ai_whisperer.store.postgresql import node_queries as queries
from ai_whisperer.store.postgresql.registry import Registry, ray_from


class LaunchBook(Registry):
    """The book of the nodes, for whoever runs them and is none."""

    def __init__(self, address: str) -> None:
        super().__init__(address, f"launcher-{secrets.token_hex(8)}")

    async def order(self, ray: str, launch: str, *, sessions_each: int = 1) -> None:
        """Say which Ray is to run nodes, and how; with an empty address, that none does."""
        async with self.at_work() as connection:
            await connection.execute(queries.ORDER, ray, launch, sessions_each)

    async def want(self, least: int, most: int) -> None:
        """Say how many nodes there are to be: as many as there are, if that is neither too few nor too many."""
        async with self.at_work() as connection:
            await connection.execute(queries.WANT_BETWEEN, least, most)

    async def choose(self, wanted: int, why: str, *, before: int) -> bool:
        """Let there be so many nodes, instead of the number before; False if a person has chosen since."""
        async with self.at_work() as connection:
            return await connection.fetchval(queries.CHOOSE, wanted, why, before) is not None

    async def shed(self, host_id: str, name: str) -> str | None:
        """Let a session of one node go to another; returns which, or None if one is on its way somewhere already."""
        async with self.at_work() as connection:
            found = await connection.fetchval(queries.SHED, host_id, name)
            return None if found is None else str(found)

    async def waiting(self) -> int:
        """How many sessions have work and nobody."""
        return (await self.look()).wanted

    async def ray(self) -> RayStatus | None:
        async with self.at_work() as connection:
            return ray_from(await connection.fetchrow(queries.RAY))

    async def launch(self) -> str:
        """What `order` was given for the nodes."""
        async with self.at_work() as connection:
            return str(await connection.fetchval(queries.LAUNCH))

    async def kept(self) -> None:
        """Note that Ray answers."""
        async with self.at_work() as connection:
            await connection.execute(queries.KEPT)

    async def run_nodes(self) -> tuple[RunNode, ...]:
        """The nodes that serve, with what their keeper needs to know of them."""
        async with self.at_work() as connection:
            counts: dict[str, int] = dict(map(tuple, await connection.fetch(queries.SESSION_COUNTS)))
            seen = await self._seen(connection)
        return tuple(
            RunNode(
                host_id=each.id,
                name=each.name,
                address=each.address,
                state=each.state,
                beat=each.beat,
                has_lock=each.has_lock,
                sessions=counts.get(each.id, 0),
                load=each.load,
            )
            for each in seen.nodes
            if each.serves
        )

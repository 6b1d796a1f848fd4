"""All connections of one client to its server."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import TypeVar
from weakref import WeakSet

from ai_whisperer.client.address import ServerAddress
from ai_whisperer.client.connection import Connection
from ai_whisperer.client.events import EventStream
from ai_whisperer.client.route import Route
from ai_whisperer.domain.clock import IdSource
from ai_whisperer.errors import ClosedError, StateError
from ai_whisperer.protocol.method import Method, Params

P = TypeVar("P", bound=Params)
R = TypeVar("R")

_WAITS_OF_A_CONNECTION = 64
"""The server lets a connection wait for so many tasks and no more; how many is its decision, this is few enough."""


class Hub:
    """One connection for requests, more for those that the server answers late, and one for each stream of events."""

    def __init__(self, address: ServerAddress, *, reconnect_seconds: float, ids: IdSource, chance: Random) -> None:
        self.ids = ids
        self._route = Route(address)
        self._reconnect_seconds = reconnect_seconds
        self._chance = chance
        self._is_open = False
        self._lanes: list[Connection] = []
        self._waits: Counter[Connection] = Counter()
        self._apart: set[Connection] = set()
        self._streams: WeakSet[EventStream] = WeakSet()

    async def open(self) -> None:
        """Connect; raises `UnauthorizedError` or `ConnectionLostError` at once if that is not possible."""
        if self._is_open:
            raise StateError("The client is open already. Close it first, or make another.")
        self._is_open = True
        main = self._connection()
        try:
            await main.open()
        except BaseException:
            self._is_open = False
            raise
        self._lanes = [main]

    async def close(self) -> None:
        """End all streams and requests."""
        self._is_open = False
        lanes, self._lanes = self._lanes, []
        streams = [stream.close() for stream in self._streams]
        await asyncio.gather(*streams, *(lane.close() for lane in (*lanes, *self._apart)))

    @property
    def main(self) -> Connection:
        """The connection for requests that are answered at once."""
        if not self._lanes:
            raise ClosedError("The client is not open. Enter it with `async with` first.")
        return self._lanes[0]

    async def ask_late(self, method: Method[P, R], params: P) -> R:
        """Like `ask`, for requests that the server may answer much later: however many, they hold up no others."""
        _ = self.main
        lane = next((each for each in self._lanes if self._waits[each] < _WAITS_OF_A_CONNECTION), None)
        if lane is None:
            lane = self._connection()
            self._lanes.append(lane)
        self._waits[lane] += 1
        try:
            return await lane.ask(method, params)
        finally:
            self._waits[lane] -= 1

    async def do_apart(self, method: Method[P, R], params: P) -> R:
        """Like `do`, on a connection of its own: it goes when the caller gives up, and so the server finds out."""
        _ = self.main
        lane = self._connection()
        self._apart.add(lane)
        try:
            return await lane.do(method, params)
        finally:
            self._apart.discard(lane)
            await lane.close()

    def stream(self, session_id: str, *, after: int | None, deltas: bool) -> EventStream:
        """The notifications of a session, from there on."""
        _ = self.main
        stream = EventStream(
            self._route,
            session_id=session_id,
            after=after,
            deltas=deltas,
            reconnect_seconds=self._reconnect_seconds,
            chance=self._chance,
        )
        self._streams.add(stream)
        return stream

    def _connection(self) -> Connection:
        return Connection(self._route, reconnect_seconds=self._reconnect_seconds, chance=self._chance)

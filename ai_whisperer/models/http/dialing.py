"""From the name of a host to an open connection: its addresses are looked up once for all who ask, and tried in turn.

A lookup stands in line for a thread of this process, so it is waited for before the time of a provider begins.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from itertools import chain, zip_longest
from typing import TypeVar

_NEXT_SECONDS = 0.25
"""When an address has not taken the connection for so long, the next one is tried beside it."""

Made = TypeVar("Made", bound=asyncio.Protocol)


class Lookups:
    """The lookups of one event loop that are under way: one for each host, whoever waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._under_way: dict[str, asyncio.Task[list[str]]] = {}

    async def addresses_of(self, host: str, *, seconds: float) -> list[str] | None:
        """The addresses in the order in which they are tried; None if that takes longer. Raises `OSError`."""
        if ":" in host or host.replace(".", "").isdigit():  # it is one already
            return [host]
        lookup = self._under_way.get(host)
        if lookup is None:
            lookup = self._under_way[host] = self._loop.create_task(self._looked_up(host))
            lookup.add_done_callback(lambda done: self._forget(host, done))
        await asyncio.wait((lookup,), timeout=seconds)
        return lookup.result() if lookup.done() and not lookup.cancelled() else None

    def close(self) -> None:
        """Nobody waits any longer."""
        for lookup in self._under_way.values():
            lookup.cancel()

    async def _looked_up(self, host: str) -> list[str]:
        found = await self._loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        families: dict[int, list[str]] = {}
        for family, *_, address in found:
            families.setdefault(family, []).append(str(address[0]))
        in_turn = chain.from_iterable(zip_longest(*families.values()))  # one kind of address may lead nowhere
        return list(dict.fromkeys(address for address in in_turn if address is not None))

    def _forget(self, host: str, lookup: asyncio.Task[list[str]]) -> None:
        self._under_way.pop(host, None)
        if not lookup.cancelled():
            lookup.exception()  # those who waited may have left


async def dialed(
    loop: asyncio.AbstractEventLoop, addresses: Sequence[str], port: int, make: Callable[[], Made]
) -> Made:
    """The first connection that one of the addresses takes; raises `OSError` if none does."""
    if len(addresses) == 1:
        return (await loop.create_connection(make, addresses[0], port))[1]
    left = list(reversed(addresses))
    tries: set[asyncio.Task[tuple[asyncio.Transport, Made]]] = set()
    errors: list[OSError] = []
    try:
        while left or tries:
            if left:
                tries.add(loop.create_task(loop.create_connection(make, left.pop(), port)))
            done, _ = await asyncio.wait(
                tries, timeout=_NEXT_SECONDS if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for each in done:
                tries.discard(each)
                try:
                    return each.result()[1]
                except OSError as error:
                    errors.append(error)
    finally:
        for each in tries:
            each.cancel()
            each.add_done_callback(_hang_up)
    if len({str(error) for error in errors}) == 1:
        raise errors[0]
    raise OSError("; ".join(str(error) for error in errors) or "it has no address")


def _hang_up(late: asyncio.Task[tuple[asyncio.Transport, Made]]) -> None:
    """Close a connection that came when there was one already."""
    if not late.cancelled() and late.exception() is None:
        late.result()[0].abort()

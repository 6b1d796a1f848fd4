"""The way to a server where several will do: it begins with the one that answered last."""

from __future__ import annotations

import asyncio
from collections import deque

from websockets.asyncio.client import ClientConnection

from ai_whisperer.client.address import ServerAddress
from ai_whisperer.client.dialing import UnreachableError, dial

_NEXT_SECONDS = 3.0
"""So long one of several servers may take until the next is tried."""


class Route:
    """The servers of one client, for all its connections. One that does not answer is tried after all others."""

    def __init__(self, address: ServerAddress) -> None:
        self.named = address.named
        self._servers = deque((address, *address.others))

    async def dial(self) -> tuple[ServerAddress, ClientConnection]:
        """The first server that answers, and an open WebSocket to it; raises what `dialing.dial` does."""
        several = len(self._servers) > 1
        for server in tuple(self._servers):
            try:
                async with asyncio.timeout(_NEXT_SECONDS if several else None):
                    return server, await dial(server)
            except TimeoutError:
                last = UnreachableError("it does not answer in time")
            except UnreachableError as error:
                last = error
            self.pass_over(server)
        raise last

    def pass_over(self, server: ServerAddress) -> None:
        """Begin with the next one from now on: this one did not do what it was asked for."""
        if self._servers[0] is server:  # or else another connection has found that out already
            self._servers.rotate(-1)

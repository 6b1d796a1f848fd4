"""What is on the way to one client: no more than it takes.

Notifications come from its `feeds`, or from the `audience` that it belongs to, and answers from its `connection`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from ai_whisperer.errors import ConnectionLostError
from ai_whisperer.server.socket import SlowClientError

CLOSED_AS_SLOW = 4008
CLOSED_AS_FENCED = 1012
"""By a node that was taken for dead: the service is started again, and there are other nodes."""
_MOST_GATHERED_BYTES = 16 << 10


class Socket(Protocol):
    """What an outbox needs of a WebSocket."""

    @property
    def is_open(self) -> bool: ...

    @property
    def is_drained(self) -> bool: ...

    def put(self, frames: bytes) -> None: ...

    async def drained(self, *, patience_seconds: float) -> None: ...

    def drop(self, code: int, reason: str) -> None: ...


class Outbox:
    """Writes to one client as fast as it reads, and drops it when it does not read at all.

    Whoever has something to say waits for its turn, so that a client which falls behind holds one piece in the buffer
    of its socket, and not what everybody has to say.
    """

    def __init__(self, socket: Socket, *, patience_seconds: float, last_word: Callable[[], str]) -> None:
        """`last_word` is asked for when the client is dropped: the reason that it is given."""
        self._socket = socket
        self._patience_seconds = patience_seconds
        self._last_word = last_word
        self._turn = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0

    @property
    def is_ready(self) -> bool:
        """Whether the client has taken what it was sent, and nobody waits for a turn."""
        return self._socket.is_drained and not self._turn.locked()

    async def send(self, frames: bytes) -> None:
        """Write the frames when it is their turn; nothing happens if the client is gone by then."""
        if self.is_ready:
            self.put(frames)
        else:
            async with self._turn:
                await self._drained()
                self.put(frames)

    def put(self, frames: bytes) -> None:
        """Write the frames, soon: what is put before the event loop has gone round is written together.

        Each write is a system call. Whoever comes here without waiting for a turn looks at `is_ready` first.
        """
        if not self._gathered:
            self._loop.call_soon(self.flush)
        self._gathered.append(frames)
        self._gathered_bytes += len(frames)
        if self._gathered_bytes >= _MOST_GATHERED_BYTES:
            self.flush()

    def put_now(self, frames: bytes) -> None:
        """Write the frames, and what was put before. Look at `is_ready` first."""
        if self._gathered:
            self._gathered.append(frames)
            self.flush()
        else:
            self._socket.put(frames)

    def flush(self) -> None:
        """Write what was put."""
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        if gathered:
            self._socket.put(b"".join(gathered))

    async def drained(self) -> None:
        """Wait until the client has taken what it was sent, or is gone."""
        if not self.is_ready:
            async with self._turn:
                await self._drained()

    async def ready(self) -> None:
        """Wait until the client has taken what it was sent: what is worked out then need not be kept for it.

        Raises `ConnectionLostError` if the client is gone: nothing need be worked out for it at all.
        """
        await self.drained()
        if not self._socket.is_open:
            raise ConnectionLostError("The client has gone before it was answered.")

    def drop(self, code: int, reason: str) -> None:
        """Close the connection."""
        self.flush()
        self._socket.drop(code, reason)

    async def _drained(self) -> None:
        try:
            await self._socket.drained(patience_seconds=self._patience_seconds)
        except SlowClientError:
            if self._socket.is_open:
                self.drop(CLOSED_AS_SLOW, self._last_word())

"""The connections that read: a few, kept open, each used by one read at a time. A lost one is replaced."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import asyncpg
from asyncpg import Connection

from ai_whisperer.errors import StoreFailedError
from ai_whisperer.store.postgresql.connecting import LOST, connect, in_words

MOST_READERS = 4
_PAUSE_SECONDS = 0.2
_CLOSE_SECONDS = 2.0

_log = logging.getLogger(__name__)

_T = TypeVar("_T")


class Readers:
    """Runs what reads. What a lost connection leaves unread is read again, for so long as the store has patience."""

    def __init__(self, address: str, *, name: str, patience_seconds: float) -> None:
        self._address = address
        self._name = name
        self._patience_seconds = patience_seconds
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._places = asyncio.Semaphore(MOST_READERS)
        self._is_closed = False

    async def read(self, reading: Callable[[Connection], Awaitable[_T]]) -> _T:
        """What the reading returns, with a connection of its own."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience_seconds
        while True:
            try:
                async with self._places, self._connection() as connection:
                    return await reading(connection)
            except asyncpg.QueryCanceledError as error:
                if self._is_closed:
                    raise _closed() from error
                raise
            except LOST as error:
                if self._is_closed:
                    raise _closed() from error
                if loop.time() >= until:
                    raise StoreFailedError(
                        f"PostgreSQL has not answered for {self._patience_seconds:g} s ({in_words(error)})."
                    ) from error
                _log.info("a read is tried again: %s", error or type(error).__name__)
                await asyncio.sleep(_PAUSE_SECONDS)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        self._check_open()
        connection = self._idle.pop() if self._idle else await connect(self._address, name=self._name)
        self._open.add(connection)
        try:
            self._check_open()  # it may have been closed meanwhile
            yield connection
        except asyncpg.PostgresError as error:
            if isinstance(error, LOST):
                self._drop(connection)
            else:
                self._idle.append(connection)
            raise
        except BaseException:  # also one that was given up in the middle of a read
            self._drop(connection)
            raise
        self._idle.append(connection)

    def _check_open(self) -> None:
        if self._is_closed:
            raise _closed()

    def _drop(self, connection: Connection) -> None:
        self._open.discard(connection)
        connection.terminate()

    async def close(self) -> None:
        """Close all connections. What is being read on one fails, and nothing is read after this."""
        self._is_closed = True
        self._idle.clear()
        while self._open:
            with suppress(*LOST):
                await self._open.pop().close(timeout=_CLOSE_SECONDS)

    def abandon(self) -> None:
        self._is_closed = True
        self._idle.clear()
        while self._open:
            self._open.pop().terminate()


def _closed() -> StoreFailedError:
    return StoreFailedError("The store is closed, and nothing can be read in it now.")

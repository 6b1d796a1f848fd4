"""The connections to providers that one event loop keeps: opened in turn, used again, shared by all models.

A crowd of requests that begin at once opens its connections one after the other, some at a time, and what they wait for
in that line is our doing: no time that a provider is given runs meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import deque
from contextlib import suppress
from functools import cache
from weakref import WeakKeyDictionary

import certifi

from ai_whisperer.errors import ModelError, ModelUnavailableError
from ai_whisperer.models import failures
from ai_whisperer.models.http.address import Origin
from ai_whisperer.models.http.connecting import ConnectTimeoutError, Patience
from ai_whisperer.models.http.connection import Connection
from ai_whisperer.models.http.dialing import Lookups, dialed

CONNECTS_AT_ONCE = 64
"""So many connections to one host are opened at the same time."""
CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 30.0
"""A connection that nobody has used for so long is closed."""
_END_SECONDS = 1.0
"""So long the end of a response is waited for that has no more to say."""
_OTHER_FILES = 256
"""So many files the rest of the process may have open beside the connections."""
_LEAST = 64
_MOST = 20_000


class Pool:
    """The connections of one event loop. Whoever uses it says so with `enter` and `leave`; the last one closes it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._users = 0
        self._idle: dict[Origin, deque[Connection]] = {}
        self._lookups = Lookups(loop)
        self._connects: dict[Origin, asyncio.Semaphore] = {}
        self._ending: dict[Connection, None] = {}
        self._most = _room()
        self._open = 0
        self._room = asyncio.Semaphore(self._most)
        self._sweep: asyncio.TimerHandle | None = None

    def enter(self) -> None:
        self._users += 1

    async def leave(self) -> None:
        self._users -= 1
        if self._users == 0:
            self._close_idle(since=float("inf"))
            while self._ending:
                self._close_ending()
            if self._sweep is not None:
                self._sweep.cancel()
                self._sweep = None
            self._lookups.close()
            _pools.pop(self._loop, None)
            await asyncio.sleep(0)  # the transports close their sockets

    async def take(self, origin: Origin, *, connect_seconds: float, turn_seconds: float) -> Connection | None:
        """A connection, which goes back with `give_back`; None if the turn to open one has not come for so long.

        Raises `ModelError` if there cannot be one.
        """
        if not await _acquired(self._room, turn_seconds):
            return None
        connection: Connection | None = None
        try:
            connection = self._kept(origin) or await self._opened(origin, connect_seconds, turn_seconds)
        finally:
            if connection is None:
                self._room.release()
        return connection

    def give_back(self, origin: Origin, connection: Connection, *, is_over: bool) -> None:
        """The request is over; what can be used again is kept.

        `is_over` says that the response has no more to say, so that its end comes in a moment if it has not yet.
        """
        self._room.release()
        if connection.is_done or not is_over or self._users == 0:
            self._ended(origin, connection)
        else:
            self._ending[connection] = None
            connection.when_done(_END_SECONDS, lambda: self._settled(origin, connection))

    def _settled(self, origin: Origin, connection: Connection) -> None:
        if connection in self._ending:
            del self._ending[connection]
            self._ended(origin, connection)

    def _ended(self, origin: Origin, connection: Connection) -> None:
        if not connection.end() or self._users == 0:
            self._close(connection)
            return
        connection.idle_since = self._loop.time()
        self._idle.setdefault(origin, deque()).append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(_IDLE_SECONDS, self._sweep_idle)

    def _kept(self, origin: Origin) -> Connection | None:
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()  # the one that was used last: the others may be closed the sooner
            if connection.is_fresh:
                return connection
            self._close(connection)
        return None

    async def _opened(self, origin: Origin, connect_seconds: float, turn_seconds: float) -> Connection | None:
        try:
            addresses = await self._lookups.addresses_of((origin.proxy or origin).host, seconds=turn_seconds)
        except OSError as error:
            raise _no_connection(error) from None
        if addresses is None:
            return None
        connects = self._connects.setdefault(origin, asyncio.Semaphore(CONNECTS_AT_ONCE))
        if not await _acquired(connects, turn_seconds):
            return None
        try:
            # Somebody may have given one back while we stood in line.
            return self._kept(origin) or await self._added(origin, addresses, connect_seconds)
        finally:
            connects.release()

    async def _added(self, origin: Origin, addresses: list[str], connect_seconds: float) -> Connection:
        """One more connection. If there are as many as may be, one that nobody uses makes room for it."""
        connection: Connection | None = None
        self._open += 1
        try:
            if self._open > self._most:
                self._close_oldest()
                await asyncio.sleep(0)  # its transport closes the socket
            connection = await _connected(self._loop, origin, addresses, connect_seconds)
        finally:
            if connection is None:
                self._open -= 1
        return connection

    def _close_oldest(self) -> None:
        """Close the connection that has been idle for the longest time, or else one whose response is at its end."""
        idle = min((each for each in self._idle.values() if each), key=lambda each: each[0].idle_since, default=None)
        if idle is not None:
            self._close(idle.popleft())
        elif self._ending:
            self._close_ending()

    def _close_ending(self) -> None:
        connection = next(iter(self._ending))
        del self._ending[connection]
        connection.end()
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        connection.abort()
        self._open -= 1

    def _sweep_idle(self) -> None:
        self._sweep = None
        self._close_idle(since=self._loop.time() - _IDLE_SECONDS)
        if self._idle:
            self._sweep = self._loop.call_later(_IDLE_SECONDS, self._sweep_idle)

    def _close_idle(self, *, since: float) -> None:
        for origin, idle in list(self._idle.items()):
            while idle and idle[0].idle_since <= since:
                self._close(idle.popleft())
            if not idle:
                del self._idle[origin]


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = WeakKeyDictionary()


def pool_of(loop: asyncio.AbstractEventLoop) -> Pool:
    """The pool that all models of the event loop share."""
    pool = _pools.get(loop)
    if pool is None:
        pool = _pools[loop] = Pool(loop)
    return pool


async def _acquired(semaphore: asyncio.Semaphore, seconds: float) -> bool:
    """Whether it was our turn within so many seconds."""
    if not semaphore.locked():
        await semaphore.acquire()
        return True
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await semaphore.acquire()
            return True
    return False


async def _connected(
    loop: asyncio.AbstractEventLoop, origin: Origin, addresses: list[str], seconds: float
) -> Connection:
    """Open a connection; raises `ModelError`."""
    try:
        context = await _trusted() if origin.is_secure or (origin.proxy or origin).is_secure else None
        async with Patience(seconds):
            return await _connect(loop, origin, addresses, context)
    except ConnectTimeoutError:
        said = failures.told(f"it took no connection within {seconds:g} seconds")
        raise failures.unreachable(None, said) from None
    except OSError as error:
        raise _no_connection(error) from None


def _no_connection(error: OSError) -> ModelError:
    said = failures.told(str(error) or type(error).__name__)
    fault = error if error.errno is not None else None
    return failures.lasting_fault_of_system(fault, said) or failures.unreachable(fault, said)


async def _connect(
    loop: asyncio.AbstractEventLoop, origin: Origin, addresses: list[str], context: ssl.SSLContext | None
) -> Connection:
    first = origin.proxy or origin
    connection = await dialed(loop, addresses, first.port, lambda: Connection(loop))
    try:
        if context is not None and first.is_secure:
            await connection.secure(context, first.host)
        if context is not None and origin.is_secure and origin.proxy is not None:
            await _open_tunnel(connection, origin)
            await connection.secure(context, origin.host)
    except BaseException:
        connection.abort()
        raise
    return connection


async def _open_tunnel(connection: Connection, origin: Origin) -> None:
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    lines = [f"CONNECT {host}:{origin.port} HTTP/1.1", f"Host: {host}:{origin.port}"]
    if origin.proxy_authorization:
        lines.append(f"Proxy-Authorization: {origin.proxy_authorization}")
    connection.begin("\r\n".join([*lines, "", ""]).encode("latin-1"), patience_seconds=None)
    status = (await connection.head()).status
    if status != 200:
        said = failures.told(f"the proxy answered with the status {status}")
        raise failures.lasting_status(status, said) or ModelUnavailableError(
            f"The provider could not be reached: {said} Check the proxy (HTTPS_PROXY)."
        )


async def _trusted() -> ssl.SSLContext:
    return _read_trusted() if _read_trusted.cache_info().currsize else await asyncio.to_thread(_read_trusted)


@cache
def _read_trusted() -> ssl.SSLContext:
    """Whom we trust: those whom the environment names, else those of the system and of browsers. It takes a while."""
    context = ssl.create_default_context()
    if not any(os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")):
        context.load_verify_locations(certifi.where())
    return context


def _room() -> int:
    """How many connections there may be at once, as far as this process may open files."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return _MOST
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else max(_LEAST, min(soft - _OTHER_FILES, _MOST))

"""The notifications of a session as an endless iterator that nothing interrupts."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from random import Random

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from ai_whisperer.client.dialing import UnreachableError, in_time, not_understood
from ai_whisperer.client.link import UNREADABLE, Incoming, check_answer, read_incoming
from ai_whisperer.client.patience import Patience
from ai_whisperer.client.route import Route
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.sessions import LogSkipped, SessionClosed
from ai_whisperer.errors import (
    ClosedError,
    ConnectionLostError,
    InvalidInputError,
    LogPrunedError,
    StateError,
    UnknownSessionError,
)
from ai_whisperer.protocol.jsonrpc import request_frame
from ai_whisperer.protocol.subscriptions import SUBSCRIBE, Subscribe, note_in

_IN_VAIN = (UnreachableError, ConnectionClosed, ClosedError)
"""What makes sense to be tried again, at another server if there is one."""


class EventStream:
    """An iterator over a session's notifications: each numbered one comes once, in order, whatever happens between.

    It has a connection of its own. If that breaks, or the server closes it because too little was read, or goes away
    and comes back, the stream resumes after the last notification that it gave. Nothing is read ahead but a few frames:
    a reader that takes its time slows nobody. The pieces of answers (`deltas`) are not kept by the server: those that
    are sent during an outage are lost. If the session is deleted, the stream ends with `UnknownSessionError`, also if
    another session has its id by then: that one has a log of its own. What was pruned before it could be given is
    skipped: a `log.skipped` without a number stands in its place, and the next is the first that is kept.

    It begins when the first notification is asked for, or with `async with`, which also ends it.
    """

    def __init__(
        self,
        route: Route,
        *,
        session_id: str,
        after: int | None,
        deltas: bool,
        reconnect_seconds: float,
        chance: Random,
    ) -> None:
        self._route = route
        self._url = route.named
        self._session_id = session_id
        self._after = after
        self._deltas = deltas
        self._reconnect_seconds = reconnect_seconds
        self._patience = Patience(reconnect_seconds, chance)
        self._loop = asyncio.get_running_loop()
        self._socket: ClientConnection | None = None
        self._followed: float | None = None
        self._early: deque[Incoming] = deque()
        self._skipped: Notification | None = None
        self._is_read = False
        self._closed = False

    @property
    def cursor(self) -> int | None:
        """The number of the last notification that was given; None until a stream without a number has begun."""
        return self._after

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Notification:
        if self._is_read:
            raise StateError("Somebody reads this subscription already. Subscribe once for each reader.")
        self._is_read = True
        try:
            while (note := await self._next()) is None:
                pass
        finally:
            self._is_read = False
        return note

    async def __aenter__(self) -> EventStream:
        try:
            await self._connected()
        except StopAsyncIteration:
            raise ClosedError("This subscription was closed. Subscribe again, after its cursor.") from None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the stream. The cursor stays: a stream that begins after it misses nothing."""
        self._closed = True
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.transport.abort()  # a polite end would have to wait until all that was sent is read
            await socket.wait_closed()

    def __del__(self) -> None:
        socket = getattr(self, "_socket", None)
        if socket is not None:
            with suppress(RuntimeError):  # the loop has ended, and the socket with it
                # Nobody reads it any more, and the server need not wait to find that out. This may be any thread.
                self._loop.call_soon_threadsafe(socket.transport.abort)

    async def _next(self) -> Notification | None:
        """What comes next, or None if that is not a new notification."""
        socket = await self._connected()
        if self._skipped is not None:
            skipped, self._skipped = self._skipped, None
            return skipped
        try:
            incoming = self._early.popleft() if self._early else read_incoming(await socket.recv(decode=False))
            if incoming.method != SessionClosed.wire_name:
                self._patience.relax()
                return self._note_in(incoming)
        except ConnectionClosed:
            pass
        except UNREADABLE as error:
            raise not_understood(self._url, error) from error
        await self._start_over(socket)
        return None

    async def _start_over(self, socket: ClientConnection) -> None:
        """Forget the socket. If the session is not there any more, the next subscription says so."""
        socket.transport.abort()
        self._socket = None
        self._patience.renew()
        await self._patience.pause()

    def _note_in(self, incoming: Incoming) -> Notification | None:
        if incoming.method is None:
            return None
        note = note_in(incoming.method, incoming.params)
        if note.seq:
            if self._after is not None and note.seq <= self._after:
                return None
            self._after = note.seq
        return note

    async def _connected(self) -> ClientConnection:
        """The socket that notifications come on; made, and made again, as long as there is hope."""
        while self._socket is None:
            self._check_open()
            try:
                self._socket = await self._subscribed()
            except UNREADABLE as error:
                raise not_understood(self._url, error) from error
            except LogPrunedError as error:
                self._skip(error)
            except _IN_VAIN as error:
                if self._patience.is_over:
                    raise ConnectionLostError(
                        f"{self._route.named} could not be reached for {self._reconnect_seconds:g} seconds "
                        f"({error}). Check that the server is running; those after {self._after or 0} are still to "
                        "come."
                    ) from error
                await self._patience.pause()
        return self._socket

    def _skip(self, error: LogPrunedError) -> None:
        """Go on with the first notification that is kept, and say that there were others before it."""
        first = error.data.get("firstSeq")
        if not isinstance(first, int) or first <= (self._after or 0) + 1:
            raise error
        self._after = first - 1
        told = LogSkipped(first_seq=first)
        self._skipped = Notification.unnumbered(told, session_id=self._session_id, cause="", at=time.time())

    def _check_open(self) -> None:
        if self._closed:
            raise StopAsyncIteration

    async def _subscribed(self) -> ClientConnection:
        """A new socket on which the server has taken the subscription."""
        server, socket = await self._route.dial()
        self._url = server.url
        try:
            params = Subscribe(session_id=self._session_id, after=self._after, deltas=self._deltas)
            async with in_time():
                await socket.send(request_frame(1, SUBSCRIBE.name, msgspec.json.encode(params)), text=True)
                self._early.clear()
                while (incoming := read_incoming(await socket.recv(decode=False))).method is not None:
                    self._early.append(incoming)
            self._take_up(incoming)
            self._check_open()
        except BaseException as error:
            if isinstance(error, _IN_VAIN):
                self._route.pass_over(server)
            socket.transport.abort()
            raise
        return socket

    def _take_up(self, answer: Incoming) -> None:
        """See that the server continues with the log that was followed; raises `UnknownSessionError` if it cannot."""
        try:
            check_answer(answer)
        except InvalidInputError as refused:
            if self._followed is None:
                raise
            raise self._gone() from refused  # what was followed had more in it
        subscribed = SUBSCRIBE.read_result(bytes(answer.result))
        if self._followed is None:
            self._followed = subscribed.created_at
        elif self._followed != subscribed.created_at:
            raise self._gone()
        if self._after is None:
            self._after = subscribed.after

    def _gone(self) -> UnknownSessionError:
        return UnknownSessionError(
            f"The session '{self._session_id}' that was followed was deleted, and another has its id now. Subscribe "
            "again, from 0, to follow that one."
        )

"""The way of one client to sessions that other nodes have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from random import Random
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from ai_whisperer.client.dialing import UnreachableError
from ai_whisperer.client.link import LinkBrokenError
from ai_whisperer.client.patience import Patience
from ai_whisperer.errors import (
    ClosedError,
    ConnectionLostError,
    SessionElsewhereError,
    UnknownSessionError,
    WhispererError,
)
from ai_whisperer.protocol.errors import from_rpc
from ai_whisperer.protocol.jsonrpc import RpcError
from ai_whisperer.protocol.mail import SendMails
from ai_whisperer.protocol.method import Effect, InSession, Method
from ai_whisperer.protocol.subscriptions import SUBSCRIBE, UNSUBSCRIBE, Subscribe, Subscribed, Unsubscribe
from ai_whisperer.runtime.session.log import Subscription
from ai_whisperer.server.calls import Caller
from ai_whisperer.server.gateway.far_log import FarLog
from ai_whisperer.server.gateway.far_logs import PATIENCE_SECONDS, FarLogs
from ai_whisperer.server.gateway.link import Channel
from ai_whisperer.server.gateway.neighbours import Neighbours, Place

_REACHED_SECONDS = 10.0
_READS_AT_ONCE = 8
"""So many answers to what a client reads may wait in memory until it takes them."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asks of a session.

    If the session is here, `enter` sees that it is open and `answer` answers, as JSON. `is_to_follow` says whether the
    client gets the notifications of the session from this call on. One that `waits` is answered when others have done
    something.
    """

    method: Method[Any, Any]
    params: InSession
    written: bytes
    enter: Callable[[], Awaitable[object]]
    answer: Callable[[], Awaitable[bytes]]
    is_to_follow: Callable[[], bool]
    waits: bool

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be asked again if its answer was lost."""
        method, params = self.method, self.params
        if method.effect is Effect.ACTS and method not in (SUBSCRIBE, UNSUBSCRIBE):
            return False
        if isinstance(params, SendMails):
            return all(each.mail_id is not None for each in params.mails)
        return method.once is None or getattr(params, method.once) is not None


class _NotSentError(Exception):
    """Nothing of the request has left this node: it can be tried again, whatever it does."""

    def __init__(self, why: WhispererError) -> None:
        super().__init__(why.message)
        self.why = why


class Detour:
    """Asks the nodes that have the sessions which a client asks for.

    Requests about a session are begun in the order in which they came, also those that are begun again: each has its
    turn until it was sent.
    """

    def __init__(
        self, caller: Caller, neighbours: Neighbours, logs: FarLogs, chance: Random, *, count: Callable[[], None]
    ) -> None:
        """`count` is called for each request that is passed on."""
        self._caller = caller
        self._neighbours = neighbours
        self._logs = logs
        self._chance = chance
        self._count = count
        self._channels: dict[Place, Channel] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._reads = asyncio.Semaphore(_READS_AT_ONCE)

    @property
    def is_busy(self) -> bool:
        """Whether a request has its turn: none may be answered before it that came later."""
        return bool(self._turns)

    async def result_of(self, asked: Asked) -> bytes:
        """The result as JSON, from the node that has the session; raises `RpcError` or a `WhispererError`."""
        is_read = asked.method.effect is Effect.READS and not asked.waits
        bounded: AbstractAsyncContextManager[object] = self._reads if is_read else nullcontext()
        async with bounded:
            if is_read:
                await self._caller.outbox.ready()
            return await self._asked(asked)

    async def _asked(self, asked: Asked) -> bytes:
        session_id = asked.params.session_id
        patience: Patience | None = None
        why: WhispererError | None = None
        while True:
            async with self._turns.setdefault(session_id, asyncio.Lock()):
                if why is not None:
                    self._neighbours.forget(session_id)
                    patience = patience or Patience(PATIENCE_SECONDS, self._chance)
                    if patience.is_over or self._caller.host.is_closing:
                        raise why
                    await patience.pause()
                was_known = self._neighbours.place_of(session_id) is not None
                try:
                    begun = await self._begun(asked)
                except _NotSentError as error:
                    why = error.why
                    continue
            try:
                return await (asked.answer() if begun is None else begun)
            except SessionElsewhereError as elsewhere:
                self._neighbours.learn(session_id, elsewhere)
                why = None
            except (RpcError, ClosedError, LinkBrokenError) as error:
                why = self._reason_to_repeat(asked, error, was_known=was_known)
                if why is None:
                    raise

    def _reason_to_repeat(self, asked: Asked, error: Exception, *, was_known: bool) -> WhispererError | None:
        """Why a request that was begun is asked again; None if it is not. Raises `ConnectionLostError`."""
        if isinstance(error, LinkBrokenError):
            lost = ConnectionLostError(
                f"The node with session '{asked.params.session_id}' was lost before it answered {asked.method.name}, "
                "so it is not known whether it took effect. Look at the state of things before you call again.",
                was_sent=True,
            )
            if asked.is_repeatable:
                return lost
            self._neighbours.forget(asked.params.session_id)
            raise lost from error
        told = from_rpc(error.code, error.message, error.data) if isinstance(error, RpcError) else error
        if isinstance(told, SessionElsewhereError):
            return told
        if isinstance(told, UnknownSessionError) and was_known:
            return told  # it may have been made anew somewhere else
        return told if isinstance(told, ClosedError) and asked.is_repeatable else None

    async def _begun(self, asked: Asked) -> asyncio.Future[bytes] | None:
        """Send the request to the node that has the session; None if that is this one. Raises `_NotSentError`."""
        session_id = asked.params.session_id
        place = self._neighbours.place_of(session_id)
        if place is None:
            try:
                await asked.enter()
            except SessionElsewhereError as elsewhere:
                place = self._neighbours.learn(session_id, elsewhere)
            else:
                return None
        try:
            channel = await self._channel(place)
            if asked.is_to_follow() or asked.method in (SUBSCRIBE, UNSUBSCRIBE):
                told = await self._facts(channel, session_id)
                followed = await self._followed(asked, told)
                if followed is not None:
                    return followed
            answer = channel.ask(asked.method.name, asked.written)
        except (LinkBrokenError, UnreachableError) as error:
            raise _NotSentError(
                ConnectionLostError(
                    f"The session '{session_id}' is at the node '{place.node}', which is not reached at "
                    f"{place.address} ({error}). Look at `whisperer cluster status`, and try again."
                )
            ) from error
        self._count()
        return answer

    async def _channel(self, place: Place) -> Channel:
        channel = self._channels.get(place)
        if channel is None or not channel.is_open:
            link = await self._neighbours.link(place)
            channel = self._channels.get(place)
            if channel is None or not channel.is_open:  # another request may have been sooner
                channel = self._channels[place] = link.channel(self._caller.principal)
        return channel

    async def _facts(self, channel: Channel, session_id: str) -> Subscribed:
        """What the other node says of the log: how far it has come after all that the client asked before."""
        params = msgspec.json.encode(Unsubscribe(session_id=session_id))
        try:
            return UNSUBSCRIBE.read_result(await channel.ask(UNSUBSCRIBE.name, params))
        except RpcError as error:
            told = from_rpc(error.code, error.message, error.data)
            if isinstance(told, SessionElsewhereError | UnknownSessionError | ClosedError):
                self._neighbours.forget(session_id)
                raise _NotSentError(told) from error
            raise

    async def _followed(self, asked: Asked, told: Subscribed) -> asyncio.Future[bytes] | None:
        """Follow the log here, or no longer, as the client asks; the result if it asks for nothing else."""
        caller = self._caller
        with self._logs.of(caller.principal, told).used() as log:
            await self._reached(log, told.last_seq, deltas=isinstance(asked.params, Subscribe) and asked.params.deltas)
            if isinstance(asked.params, Subscribe):
                after, deltas = asked.params.after, asked.params.deltas
                subscribed = caller.feeds.subscribe(
                    log, caller.outbox, after=after, deltas=deltas, created_at=told.created_at
                )
            elif asked.method is UNSUBSCRIBE:
                subscribed = caller.feeds.unsubscribe(log, created_at=told.created_at)
            else:
                caller.feeds.follow(log, caller.outbox, created_at=told.created_at)
                return None
        result: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        result.set_result(asked.method.write_result(subscribed))
        return result

    async def _reached(self, log: FarLog, seq: int, *, deltas: bool) -> None:
        """Wait until the log here has come to this number, with pieces of streams if they are wanted."""
        try:
            async with asyncio.timeout(_REACHED_SECONDS):
                await log.reached(seq, deltas=deltas)
        except TimeoutError as error:
            raise ConnectionLostError(
                f"The node with session '{log.session_id}' does not tell what happens there. Try again."
            ) from error
        if log.closed:
            is_told = isinstance(log.failure, WhispererError)
            raise _NotSentError(log.failure if is_told else ClosedError("The session was closed. Try again."))  # type: ignore[arg-type]

    async def onward(self, session_id: str, *, after: int, deltas: bool, created_at: float) -> Subscription | None:
        """What follows in the log of a session that is closed here; None if the session or this server is over.

        Raises a `WhispererError` if that cannot be found out.
        """
        caller = self._caller

        async def answer() -> bytes:
            session = await caller.session(session_id)
            record = await caller.host.get(caller.principal, session_id)
            return UNSUBSCRIBE.write_result(
                Subscribed(
                    session_id=session_id,
                    after=after,
                    last_seq=session.last_seq,
                    first_seq=session.first_seq,
                    created_at=record.created_at,
                )
            )

        if caller.host.is_closing:
            return None
        params = Unsubscribe(session_id=session_id)
        asked = Asked(
            method=_FACTS,
            params=params,
            written=msgspec.json.encode(params),
            enter=lambda: caller.session(session_id),
            answer=answer,
            is_to_follow=lambda: False,
            waits=True,
        )
        try:
            told = UNSUBSCRIBE.read_result(await self._asked(asked))
        except UnknownSessionError:
            return None
        except RpcError as error:
            refused = from_rpc(error.code, error.message, error.data)
            if isinstance(refused, UnknownSessionError):
                return None
            raise refused from error
        if told.created_at != created_at:
            return None
        session = caller.host.open_session(caller.principal, session_id)
        if session is not None:
            return session.subscribe(after=after, deltas=deltas)
        with self._logs.of(caller.principal, told).used() as log:
            return log.subscribe(after=after, deltas=deltas)

    def close(self) -> None:
        """The client has gone."""
        for channel in self._channels.values():
            channel.close()


_FACTS: Method[Unsubscribe, Subscribed] = Method(UNSUBSCRIBE.name, Unsubscribe, Subscribed, effect=Effect.READS)
"""What a node says of a log to a client that follows it elsewhere."""

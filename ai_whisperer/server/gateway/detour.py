"""The way of one client to sessions that other nodes have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import msgspec

from ai_whisperer.client.dialing import UnreachableError
from ai_whisperer.client.link import LinkBrokenError
from ai_whisperer.client.patience import Patience
from ai_whisperer.errors import (
    ClosedError,
    ConnectionLostError,
    SessionElsewhereError,
    UnknownSessionError,
)
from ai_whisperer.protocol.errors import from_rpc
from ai_whisperer.protocol.jsonrpc import RpcError
from ai_whisperer.protocol.mail import SendMails
from ai_whisperer.protocol.method import Effect, InSession, Method
from ai_whisperer.protocol.subscriptions import SUBSCRIBE, UNSUBSCRIBE, Subscribe, Subscribed, Unsubscribe
from ai_whisperer.runtime.session.log import Subscription
from ai_whisperer.server.calls import Caller
from ai_whisperer.server.gateway.far_logs import PATIENCE_SECONDS, FarLogs
from ai_whisperer.server.gateway.link import Channel
from ai_whisperer.server.gateway.neighbours import Neighbours, Place

_REACHED_SECONDS = 10.0

Here = Callable[[], Awaitable[bytes]]


class Detour:
    """Asks the nodes that have the sessions which a client asks for. Requests of a client keep their order there."""

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
        self._turns: dict[Place, asyncio.Lock] = {}

    def check_here(self, session_id: str) -> None:
        """Raise `SessionElsewhereError` if another node has the session, as far as that is known."""
        place = self._neighbours.place_of(session_id)
        if place is not None:
            raise SessionElsewhereError(node=place.node, address=place.address)

    def learn(self, session_id: str, elsewhere: SessionElsewhereError) -> None:
        """Remember where the session is."""
        self._neighbours.learn(session_id, elsewhere)

    async def result_of(
        self, method: Method[Any, Any], params: InSession, written: bytes, here: Here, *, follows: bool
    ) -> bytes:
        """The result as JSON, from `here` or from the node that has the session; raises `RpcError` or what `here` does.

        With `follows` the client gets the notifications of the session from this call on.
        """
        patience: Patience | None = None
        why: Exception
        while True:
            was_known = self._neighbours.place_of(params.session_id) is not None
            try:
                return await self._once(method, params, written, here, follows=follows)
            except (LinkBrokenError, UnreachableError) as error:
                if isinstance(error, LinkBrokenError) and error.was_sent and not _is_repeatable(method, params):
                    self._neighbours.forget(params.session_id)
                    raise ConnectionLostError(
                        f"The node with session '{params.session_id}' was lost before it answered {method.name}, so it "
                        "is not known whether it took effect. Look at the state of things before you call again.",
                        was_sent=True,
                    ) from error
                place = self._neighbours.place_of(params.session_id)
                why = ConnectionLostError(
                    f"The session '{params.session_id}' is at the node '{place.node if place else ''}', which is not "
                    f"reached at {place.address if place else 'its address'} ({error}). Look at `whisperer cluster "
                    "status`, and try again."
                )
            except RpcError as error:
                why = from_rpc(error.code, error.message, error.data)
                is_again = isinstance(why, SessionElsewhereError) or (
                    was_known and isinstance(why, UnknownSessionError)
                )
                if not is_again and not (isinstance(why, ClosedError) and _is_repeatable(method, params)):
                    raise
            except ClosedError as error:
                if self._caller.host.is_closing or not _is_repeatable(method, params):
                    raise
                why = error
            self._neighbours.forget(params.session_id)
            patience = patience or Patience(PATIENCE_SECONDS, self._chance)
            if patience.is_over:
                raise why
            await patience.pause()

    async def onward(self, session_id: str, *, after: int, deltas: bool, created_at: float) -> Subscription | None:
        """What follows in the log of a session that is closed here; None if the session or this server is over."""
        params = Unsubscribe(session_id=session_id)

        async def here() -> bytes:
            session = await self._caller.session(session_id)
            record = await self._caller.host.get(self._caller.principal, session_id)
            told = Subscribed(
                session_id=session_id,
                after=after,
                last_seq=session.last_seq,
                first_seq=session.first_seq,
                created_at=record.created_at,
            )
            return UNSUBSCRIBE.write_result(told)

        if self._caller.host.is_closing:
            return None
        try:
            written = await self.result_of(_FACTS, params, msgspec.json.encode(params), here, follows=False)
            told = UNSUBSCRIBE.read_result(written)
            if told.created_at != created_at:
                return None
            session = self._caller.host.open_session(self._caller.principal, session_id)
            if session is not None:
                return session.subscribe(after=after, deltas=deltas)
            with self._logs.of(self._caller.principal, told).used() as log:
                return log.subscribe(after=after, deltas=deltas)
        except (RpcError, UnknownSessionError, ClosedError):
            return None

    def close(self) -> None:
        """The client has gone."""
        for channel in self._channels.values():
            channel.close()

    async def _once(
        self, method: Method[Any, Any], params: InSession, written: bytes, here: Here, *, follows: bool
    ) -> bytes:
        place = self._neighbours.place_of(params.session_id)
        if place is None:
            try:
                return await here()
            except SessionElsewhereError as elsewhere:
                place = self._neighbours.learn(params.session_id, elsewhere)
        if method.effect is Effect.READS:
            await self._caller.outbox.ready()
        if follows or method in (SUBSCRIBE, UNSUBSCRIBE):
            told = UNSUBSCRIBE.read_result(await self._asked(place, UNSUBSCRIBE, _facts_of(params)))
            followed = await self._follow(method, params, told, follows=follows)
            if followed is not None:
                return followed
        self._count()
        return await self._asked(place, method, written)

    async def _asked(self, place: Place, method: Method[Any, Any], written: bytes) -> bytes:
        async with self._turns.setdefault(place, asyncio.Lock()):
            channel = self._channels.get(place)
            if channel is None or not channel.is_open:
                channel = (await self._neighbours.link(place)).channel(self._caller.principal)
                self._channels[place] = channel
            answer = channel.ask(method.name, written)
        return await answer

    async def _follow(
        self, method: Method[Any, Any], params: InSession, told: Subscribed, *, follows: bool
    ) -> bytes | None:
        """Subscribe or unsubscribe here, where the log is followed for all; returns the result if that was asked."""
        caller = self._caller
        with self._logs.of(caller.principal, told).used() as log:
            try:
                async with asyncio.timeout(_REACHED_SECONDS):
                    await log.reached(told.last_seq)
            except TimeoutError as error:
                raise ClosedError("The node with the session does not tell what happens there. Try again.") from error
            if log.failure is not None:
                raise log.failure
            if method is UNSUBSCRIBE:
                return UNSUBSCRIBE.write_result(caller.feeds.unsubscribe(log, created_at=told.created_at))
            if isinstance(params, Subscribe):
                subscribed = caller.feeds.subscribe(
                    log, caller.outbox, after=params.after, deltas=params.deltas, created_at=told.created_at
                )
                return SUBSCRIBE.write_result(subscribed)
            if follows:
                caller.feeds.follow(log, caller.outbox, created_at=told.created_at)
        return None


_FACTS: Method[Unsubscribe, Subscribed] = Method(UNSUBSCRIBE.name, Unsubscribe, Subscribed, effect=Effect.READS)
"""What a node says of a log to a client that follows it elsewhere."""


def _facts_of(params: InSession) -> bytes:
    return msgspec.json.encode(Unsubscribe(session_id=params.session_id))


def _is_repeatable(method: Method[Any, Any], params: InSession) -> bool:
    """Whether the call may be made again if its answer was lost."""
    if method.effect is Effect.ACTS and method not in (SUBSCRIBE, UNSUBSCRIBE):
        return False
    if isinstance(params, SendMails):
        return all(each.mail_id is not None for each in params.mails)
    return method.once is None or getattr(params, method.once) is not None

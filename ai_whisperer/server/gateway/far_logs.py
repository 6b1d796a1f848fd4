"""The logs of other nodes that somebody follows here: each is followed once, and by its numbers wherever it goes."""

from __future__ import annotations

import asyncio
import logging
from random import Random

import msgspec

from ai_whisperer.client.dialing import UnreachableError
from ai_whisperer.client.link import Incoming, LinkBrokenError
from ai_whisperer.client.patience import Patience
from ai_whisperer.domain.notifications.sessions import SessionClosed
from ai_whisperer.errors import (
    ClosedError,
    ConnectionLostError,
    InvalidInputError,
    LogPrunedError,
    SessionElsewhereError,
    UnknownSessionError,
    WhispererError,
)
from ai_whisperer.protocol.errors import from_rpc
from ai_whisperer.protocol.jsonrpc import RpcError
from ai_whisperer.protocol.subscriptions import SUBSCRIBE, UNSUBSCRIBE, Subscribe, Subscribed, Unsubscribe, note_in
from ai_whisperer.server.gateway.far_log import FarLog
from ai_whisperer.server.gateway.neighbours import Neighbours, Place
from ai_whisperer.server.host import SessionHost
from ai_whisperer.store.base import Store

PATIENCE_SECONDS = 10.0
"""So long it is looked for the node that has a session: longer than it takes to find that one is gone."""

_log = logging.getLogger(__name__)


class FarLogs:
    """Follows logs at the nodes that have them, as long as somebody here wants to know."""

    def __init__(self, host: SessionHost, store: Store, neighbours: Neighbours, chance: Random) -> None:
        self._host = host
        self._store = store
        self._neighbours = neighbours
        self._chance = chance
        self._logs: dict[tuple[str, str], FarLog] = {}
        self._following: dict[FarLog, asyncio.Task[None]] = {}

    def of(self, principal: str, told: Subscribed) -> FarLog:
        """The log of which another node has just told this to its owner."""
        key = principal, told.session_id
        log = self._logs.get(key)
        if log is not None and (log.closed or log.created_at != told.created_at):
            self._end(log)
            log = None
        if log is None:
            log = FarLog(self._store, told, principal=principal, on_deltas=self._follow_again, on_unused=self._end)
            self._logs[key] = log
            self._follow_again(log)
        return log

    @property
    def followed(self) -> int:
        """How many logs are followed."""
        return len(self._logs)

    async def close(self) -> None:
        following = list(self._following.values())
        for log in list(self._logs.values()):
            self._end(log)
        await asyncio.gather(*following, return_exceptions=True)

    def _end(self, log: FarLog) -> None:
        key = log.principal, log.session_id
        if self._logs.get(key) is log:
            del self._logs[key]
        following = self._following.pop(log, None)
        if following is not None:
            following.cancel()
        if not log.closed:
            log.close()

    def _follow_again(self, log: FarLog) -> None:
        """Follow the log from where it has come to, with what is wanted of it now."""
        if log.closed:
            return
        log.is_followed.clear()
        former = self._following.get(log)
        if former is not None:
            former.cancel()
        following = self._follow(log, log.principal)
        self._following[log] = asyncio.create_task(following, name=f"log of {log.session_id} elsewhere")

    async def _follow(self, log: FarLog, principal: str) -> None:
        patience = Patience(PATIENCE_SECONDS, self._chance)
        while not self._host.is_closing:
            try:
                await self._follow_once(log, principal, patience)
                why: Exception = ClosedError("The session was closed there.")
            except LogPrunedError as error:
                log.skip(int(error.data["firstSeq"]))
                continue
            except (UnknownSessionError, InvalidInputError):  # it is gone, or a shorter one has its id
                break
            except (LinkBrokenError, UnreachableError, SessionElsewhereError, ClosedError) as error:
                why = error
            except WhispererError as error:
                log.close(error)
                return
            except Exception as error:  # noqa: BLE001 - logged, and those who follow it are told
                _log.exception("the log of session %s could not be followed", log.session_id)
                log.close(error)
                return
            log.is_followed.clear()
            self._neighbours.forget(log.session_id)
            if patience.is_over:
                log.close(ConnectionLostError(f"The node with session '{log.session_id}' is not reached ({why})."))
                return
            await patience.pause()
        log.close()

    async def _follow_once(self, log: FarLog, principal: str, patience: Patience) -> None:
        """Follow the log until the node that has the session lets it go."""
        place = self._neighbours.place_of(log.session_id)
        if place is None:
            try:
                session = await self._host.session(principal, log.session_id)
            except SessionElsewhereError as elsewhere:
                place = self._neighbours.learn(log.session_id, elsewhere)
            else:
                _check_same(log, (await self._host.get(principal, log.session_id)).created_at)
                patience.renew()
                log.is_followed.set()
                async for note in session.subscribe(after=log.last_seq, deltas=log.deltas):
                    log.take(note)
                return
        await self._follow_there(log, principal, place, patience)

    async def _follow_there(self, log: FarLog, principal: str, place: Place, patience: Patience) -> None:
        is_let_go = asyncio.Event()

        def take(incoming: Incoming) -> None:
            if incoming.method == SessionClosed.wire_name:
                is_let_go.set()
            elif incoming.method is not None:
                log.take(note_in(incoming.method, incoming.params))

        channel = (await self._neighbours.link(place)).channel(principal, on_note=take)
        channel.over.add_done_callback(lambda _: is_let_go.set())
        try:
            facts = msgspec.json.encode(Unsubscribe(session_id=log.session_id))
            _check_same(log, UNSUBSCRIBE.read_result(await channel.ask(UNSUBSCRIBE.name, facts)).created_at)
            wanted = Subscribe(session_id=log.session_id, after=log.last_seq, deltas=log.deltas)
            await channel.ask(SUBSCRIBE.name, msgspec.json.encode(wanted))
            log.is_followed.set()
            patience.renew()
            patience.relax()
            await is_let_go.wait()
        except RpcError as error:
            raise from_rpc(error.code, error.message, error.data) from error
        finally:
            channel.close()


def _check_same(log: FarLog, created_at: float) -> None:
    if created_at != log.created_at:
        raise UnknownSessionError(f"The session '{log.session_id}' was deleted, and another has its id now.")

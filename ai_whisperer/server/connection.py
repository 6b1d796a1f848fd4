"""One client: its requests, in the order in which they came, and their answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ai_whisperer.errors import (
    ClosedError,
    ConnectionLostError,
    NodeFencedError,
    TooManyRequestsError,
    WhispererError,
)
from ai_whisperer.protocol import jsonrpc
from ai_whisperer.protocol.agents import IN_NEW_SESSIONS
from ai_whisperer.protocol.catalog import method_named
from ai_whisperer.protocol.cluster import MOVE_SESSION
from ai_whisperer.protocol.errors import to_rpc
from ai_whisperer.protocol.jsonrpc import Call, Frame, Refusal, RpcError
from ai_whisperer.protocol.locks import ACQUIRE_LOCK
from ai_whisperer.protocol.method import InSession, Method, Params
from ai_whisperer.protocol.sessions import DELETE_SESSION, SET_NEEDS
from ai_whisperer.protocol.tasks import WAIT_TASK
from ai_whisperer.runtime.session.cause import called_by
from ai_whisperer.server.audience import Audiences
from ai_whisperer.server.calls import ANSWERS, Caller, Fact, Read
from ai_whisperer.server.feeds import Feeds
from ai_whisperer.server.host import SessionHost
from ai_whisperer.server.metrics import Metrics
from ai_whisperer.server.outbox import CLOSED_AS_FENCED, Outbox, Socket
from ai_whisperer.server.socket import framed
from ai_whisperer.settings import Settings

if TYPE_CHECKING:
    from ai_whisperer.server.gateway.detour import Asked
    from ai_whisperer.server.gateway.gateway import Gateway

_log = logging.getLogger(__name__)
_nothing = nullcontext()

_CLOSED = "The session was closed while the request was under way: it was deleted or moved, or the server is ending."
_LATE = (WAIT_TASK, ACQUIRE_LOCK)
"""The methods that wait for what others do."""
_NOT_ENTERED = (DELETE_SESSION, MOVE_SESSION, SET_NEEDS)
"""The methods about a session that need not be open here."""
_GUIDE = "async."
"""How the names of the methods of the user guide begin."""
_TURN_SECONDS = 0.005
"""How long the requests of one client are answered before others have their turn."""
_WAITS_FOR_A_REQUEST = 16
"""How many calls that only wait a connection may have for each of those that do something: waiting costs little."""


class Connection:
    """Serves one client until it leaves. Requests take effect in the order in which they came."""

    def __init__(
        self,
        socket: Socket,
        *,
        connection_id: str,
        principal: str,
        host: SessionHost,
        settings: Settings,
        metrics: Metrics,
        audiences: Audiences,
        gateway: Gateway | None = None,
        follows: bool = True,
    ) -> None:
        """With `follows` the client gets the notifications of each session that it calls a method `async.*` in.

        Without a gateway nothing is asked of other nodes.
        """
        self._id = connection_id
        self._settings = settings
        self._metrics = metrics
        self._feeds = Feeds(max_feeds=settings.max_subscriptions, audiences=audiences)
        self._outbox = Outbox(socket, patience_seconds=settings.slow_client_seconds, last_word=self._last_word)
        self._caller = Caller(
            principal=principal,
            host=host,
            settings=settings,
            feeds=self._feeds,
            outbox=self._outbox,
            one_by_one=asyncio.Lock(),
        )
        self._detour = None if gateway is None else gateway.detour(self._caller)
        if self._detour is not None:
            self._feeds.onward = self._detour.onward
        self._loop = asyncio.get_running_loop()
        self._follows = follows
        self._requests = 0
        self._rate = _Rate(settings.max_requests_per_second, self._loop)
        self._pending: dict[asyncio.Task[None], int] = {}
        self._pending_bytes = 0
        self._to_begin = 0
        self._at_work: set[asyncio.Task[None]] = set()
        self._waits: set[asyncio.Task[Any]] = set()
        self._entering: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._leaving = False
        self._room = asyncio.Event()
        self._room.set()

    async def run(self, arrivals: AsyncIterator[Sequence[str | bytes]]) -> None:
        """Answer what comes until the client has gone; what it had asked for is finished."""
        try:
            async for messages in arrivals:
                turn_ends_at = self._loop.time() + _TURN_SECONDS
                for message in messages:
                    await self._begin(message)
                    if self._loop.time() > turn_ends_at:
                        await asyncio.sleep(0)
                        turn_ends_at = self._loop.time() + _TURN_SECONDS
                self._outbox.flush()
        finally:
            self._leaving = True
            await self._feeds.close()
            for waiting in self._waits:
                waiting.cancel()
            try:
                await asyncio.gather(*self._pending, return_exceptions=True)
            finally:
                if self._detour is not None:
                    self._detour.close()

    async def _begin(self, message: str | bytes) -> None:
        """Begin to answer, and come back when there is room for more."""
        frame = self._read(message)
        if _asks_for(DELETE_SESSION, frame):
            await self._settled()  # what came before must not find the session gone when it is answered,
            self._take(frame, len(message))
            await self._settled()  # and what comes after must not find it half gone
        elif not self._answered_at_once(frame):
            self._take(frame, len(message))
        await self._room.wait()
        await self._outbox.drained()

    def _read(self, message: str | bytes) -> Frame:
        frame = jsonrpc.read_frame(
            message, max_depth=self._settings.max_frame_depth, max_batch=self._settings.max_batch
        )
        return frame if self._rate.allows(len(frame.entries)) else _refused(frame)

    def _answered_at_once(self, frame: Frame) -> bool:
        """Answer a single call if nothing has to be waited for, all calls before it are at work, and nothing is wrong.

        What is wrong is found again by the task that answers in its place, and told there.
        """
        call = frame.entries[0] if len(frame.entries) == 1 else None
        if not isinstance(call, Call) or not call.is_answered or frame.is_batch or self._to_begin or self._entering:
            return False
        if self._detour is not None and self._detour.is_busy:
            return False
        answer = ANSWERS.get(call.method)
        if not isinstance(answer, Read | Fact) or not self._outbox.is_ready:
            return False
        began_at = self._loop.time()
        try:
            method = method_named(call.method)
            params = method.read_params(bytes(call.params))
            if self._is_to_follow(method, params):
                return False
            result = method.write_result(answer.now(self._caller, params))
        except Exception:  # noqa: BLE001 - see above
            return False
        self._requests += 1
        self._outbox.put(framed(jsonrpc.result_frame(call.answered_id, result)))
        self._metrics.count_request(method.name, outcome="ok", seconds=self._loop.time() - began_at)
        _log.debug("request %s-%s %s by %s: ok", self._id, self._requests, method.name, self._caller.principal)
        return True

    def _take(self, frame: Frame, size: int) -> None:
        """Begin to answer in a task."""
        self._to_begin += 1
        task = self._loop.create_task(self._answer(frame))
        self._pending[task] = size
        self._pending_bytes += size
        if not any(_asks_for(method, frame) for method in _LATE):
            self._at_work.add(task)
        task.add_done_callback(self._ended)
        self._look_for_room()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._pending_bytes -= self._pending.pop(task)
        self._at_work.discard(task)
        self._look_for_room()

    async def _settled(self) -> None:
        """Wait until all is answered, but for those who wait for a task or a lock."""
        if self._at_work:
            await asyncio.wait(self._at_work)

    def _look_for_room(self) -> None:
        """Take no more while there is enough to do. Those who only wait for a task or a lock are no burden."""
        busy = len(self._at_work) >= self._settings.max_pending_requests
        if busy or self._pending_bytes > self._settings.max_frame_bytes:
            self._room.clear()
        else:
            self._room.set()

    async def _answer(self, frame: Frame) -> None:
        self._to_begin -= 1
        if frame.is_batch:
            answered = await asyncio.gather(*map(self._reply_to, frame.entries), return_exceptions=True)
            replies = [reply for reply in answered if isinstance(reply, bytes)]
            if replies:
                await self._outbox.send(framed(jsonrpc.batch_frame(replies)))
        else:
            for entry in frame.entries:
                reply = await self._reply_to(entry)
                if reply is not None:
                    await self._outbox.send(framed(reply))

    async def _reply_to(self, entry: Call | Refusal) -> bytes | None:
        """The answer as a frame; None for a notification."""
        if isinstance(entry, Refusal):
            self._metrics.count_request("", outcome=str(entry.error.code))
            return jsonrpc.error_frame(entry.request_id, entry.error)
        self._requests += 1
        request_id = f"{self._id}-{self._requests}"
        try:
            result = await self._result_of(entry, request_id)
        except RpcError as error:
            return jsonrpc.error_frame(entry.answered_id, error) if entry.is_answered else None
        return jsonrpc.result_frame(entry.answered_id, result) if entry.is_answered else None

    async def _result_of(self, call: Call, request_id: str) -> bytes:
        """The result as JSON; raises `RpcError`."""
        began_at = self._loop.time()
        known, outcome = "", "ok"
        try:
            method = method_named(call.method)
            known = method.name
            params = method.read_params(bytes(call.params))
            with self._only_waiting() if method in _LATE else _nothing:
                if self._detour is None or not isinstance(params, InSession):
                    return await self._answered_here(method, params, request_id)
                return await self._detour.result_of(self._asked(method, params, bytes(call.params), request_id))
        except RpcError as error:
            outcome = str(error.code)
            raise
        except ClosedError as error:
            outcome = error.code
            raise to_rpc(ClosedError(_CLOSED), requestId=request_id) from error
        except NodeFencedError as error:
            outcome = error.code
            self._outbox.drop(CLOSED_AS_FENCED, error.code)  # in place of an answer: another node has one
            raise to_rpc(error, requestId=request_id) from error
        except WhispererError as error:
            outcome = error.code
            raise to_rpc(error, requestId=request_id) from error
        except Exception as error:
            outcome = "internal"
            _log.exception("request %s to %s failed", request_id, known)
            raise RpcError(
                jsonrpc.INTERNAL_ERROR,
                f"The server failed to handle {known}. Its log has the details under request {request_id}.",
                {"requestId": request_id},
            ) from error
        finally:
            self._metrics.count_request(known, outcome=outcome, seconds=self._loop.time() - began_at)
            _log.debug("request %s %s by %s: %s", request_id, known, self._caller.principal, outcome)

    def _asked(self, method: Method[Any, Any], params: InSession, written: bytes, request_id: str) -> Asked:
        from ai_whisperer.server.gateway.detour import Asked  # loaded with the gateway

        return Asked(
            method=method,
            params=params,
            written=written,
            enter=partial(self._entered, method, params),
            answer=partial(self._answered, method, params, request_id),
            is_to_follow=partial(self._is_to_follow, method, params),
            waits=method in _LATE,
        )

    async def _answered_here(self, method: Method[Any, Any], params: Params, request_id: str) -> bytes:
        await self._entered(method, params)
        return await self._answered(method, params, request_id)

    async def _entered(self, method: Method[Any, Any], params: Params) -> None:
        if isinstance(params, InSession) and method not in _NOT_ENTERED:
            await self._enter(method, params)

    async def _answered(self, method: Method[Any, Any], params: Params, request_id: str) -> bytes:
        with called_by(f"request:{request_id}"):
            return method.write_result(await ANSWERS[method.name](self._caller, params))

    def _is_to_follow(self, method: Method[Any, Any], params: Any) -> bool:
        """Whether the client gets the notifications of the session from this call on, which is one of the guide."""
        return self._follows and method.name.startswith(_GUIDE) and not self._feeds.is_settled(params.session_id)

    async def _enter(self, method: Method[Any, Any], params: InSession) -> None:
        """Let the session be open, and there if the method makes sense in a new one, and follow it.

        As long as a call waits for that, those that come after it wait too, so that they keep their order.
        """
        host, principal, session_id = self._caller.host, self._caller.principal, params.session_id
        waits = session_id in self._entering or self._is_to_follow(method, params)
        if not waits and host.open_session(principal, session_id) is not None:
            return
        async with self._entering.setdefault(session_id, asyncio.Lock()):
            if method in IN_NEW_SESSIONS:
                await host.create_if_missing(principal, session_id)
            session = await host.session(principal, session_id)
            if self._is_to_follow(method, params):
                record = await host.get(principal, session_id)
                self._feeds.follow(session, self._outbox, created_at=record.created_at)

    @contextmanager
    def _only_waiting(self) -> Iterator[None]:
        """Within, the task that runs this does nothing but wait: it ends when the client leaves."""
        most = _WAITS_FOR_A_REQUEST * self._settings.max_pending_requests
        if len(self._waits) >= most:
            raise TooManyRequestsError(f"This connection waits for {most} tasks and locks already, which is the limit.")
        task = asyncio.current_task()
        if self._leaving or task is None:
            raise ConnectionLostError("The client has gone before it was answered.")
        self._waits.add(task)
        try:
            yield
        finally:
            self._waits.discard(task)

    def _last_word(self) -> str:
        self._metrics.count_slow_client()
        return self._feeds.last_word()


class _Rate:
    """A bucket that holds as many requests as may come in a second, and fills in a second."""

    def __init__(self, per_second: int, loop: asyncio.AbstractEventLoop) -> None:
        self._per_second = per_second
        self._loop = loop
        self._left = float(per_second)
        self._at = loop.time()

    def allows(self, count: int) -> bool:
        now = self._loop.time()
        self._left = min(float(self._per_second), self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < count:
            return False
        self._left -= count
        return True


def _asks_for(method: Method[Any, Any], frame: Frame) -> bool:
    return any(isinstance(entry, Call) and entry.method == method.name for entry in frame.entries)


def _refused(frame: Frame) -> Frame:
    """The frame with an error for each of its calls that is answered."""
    error = to_rpc(TooManyRequestsError(), retryAfterSeconds=1)
    refused = (
        entry if isinstance(entry, Refusal) else Refusal(error, entry.answered_id)
        for entry in frame.entries
        if isinstance(entry, Refusal) or entry.is_answered
    )
    return Frame(tuple(refused), is_batch=frame.is_batch)

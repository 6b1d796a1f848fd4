"""One client: its requests, its subscriptions, and what is on the way to it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Protocol

from ai_whisperer.errors import InvalidInputError, TooManyRequestsError, WhispererError
from ai_whisperer.protocol import jsonrpc
from ai_whisperer.protocol.catalog import method_named
from ai_whisperer.protocol.errors import to_rpc
from ai_whisperer.protocol.jsonrpc import Call, Frame, Refusal, RpcError
from ai_whisperer.protocol.sessions import Subscribe, Subscribed
from ai_whisperer.protocol.tasks import WAIT_TASK
from ai_whisperer.records import Notification
from ai_whisperer.runtime.bus import Subscription
from ai_whisperer.runtime.callers import called_by
from ai_whisperer.runtime.manager import AsyncAgentSessionManager
from ai_whisperer.server.calls import ANSWERS, Caller, ServerFacts
from ai_whisperer.server.frames import NotificationFrames
from ai_whisperer.server.host import SessionHost
from ai_whisperer.server.metrics import Metrics
from ai_whisperer.server.socket import SlowClientError, framed
from ai_whisperer.settings import Settings

_log = logging.getLogger(__name__)

CLOSED_BY_FAILURE = 1011
CLOSED_AS_SLOW = 4008


class Socket(Protocol):
    """What a connection needs of its WebSocket."""

    def put(self, frames: bytes) -> None: ...

    async def drained(self, *, patience_seconds: float) -> None: ...

    def drop(self, code: int, reason: str) -> None: ...


class Connection:
    """Serves one client until it leaves. Requests take effect in the order in which they came."""

    def __init__(
        self,
        socket: Socket,
        *,
        connection_id: str,
        principal: str,
        host: SessionHost,
        facts: ServerFacts,
        settings: Settings,
        metrics: Metrics,
        frames: NotificationFrames,
    ) -> None:
        self._socket = socket
        self._id = connection_id
        self._settings = settings
        self._metrics = metrics
        self._frames = frames
        self._caller = Caller(principal=principal, host=host, facts=facts, subscriptions=self)
        self._loop = asyncio.get_running_loop()
        self._requests = 0
        self._rate = _Rate(settings.max_requests_per_second, self._loop)
        self._pending: set[asyncio.Task[None]] = set()
        self._waits: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._room.set()
        self._feeds: dict[str, _Feed] = {}

    async def run(self, messages: AsyncIterator[str | bytes]) -> None:
        """Answer what comes until the client has gone; what it had asked for is finished."""
        try:
            async for message in messages:
                self._take(message)
                await self._room.wait()
                await self._socket.drained(patience_seconds=self._settings.slow_client_seconds)
        except SlowClientError:
            self._drop_slow()
        finally:
            for session_id in list(self._feeds):
                await self._end_feed(session_id)
            for waiting in self._waits:
                waiting.cancel()
            await asyncio.gather(*self._pending, return_exceptions=True)

    async def subscribe(self, session: AsyncAgentSessionManager, params: Subscribe) -> Subscribed:
        last_seq = session.last_seq
        after = last_seq if params.after is None else params.after
        if after > last_seq:
            raise InvalidInputError(
                f"The log of session '{session.session_id}' ends at {last_seq}, so nothing can come after {after}. "
                "Subscribe from 0, or without `after`."
            )
        if session.session_id not in self._feeds and len(self._feeds) >= self._settings.max_subscriptions:
            raise TooManyRequestsError(
                f"This connection has {len(self._feeds)} subscriptions, which is the limit. Unsubscribe from one."
            )
        subscription = session.subscribe(after=after, deltas=params.deltas)
        await self._end_feed(session.session_id)
        self._feeds[session.session_id] = feed = _Feed(session.session_id, subscription)
        feed.task = self._loop.create_task(self._feed(feed), name=f"subscription of {self._id}")
        return Subscribed(session_id=session.session_id, after=after, last_seq=last_seq)

    async def unsubscribe(self, session: AsyncAgentSessionManager) -> Subscribed:
        known = self._feeds.get(session.session_id)
        await self._end_feed(session.session_id)
        after = session.last_seq if known is None else known.sent
        return Subscribed(session_id=session.session_id, after=after, last_seq=session.last_seq)

    def _take(self, message: str | bytes) -> None:
        frame = jsonrpc.read_frame(
            message, max_depth=self._settings.max_frame_depth, max_batch=self._settings.max_batch
        )
        work = self._answer(frame) if self._rate.allows(len(frame.entries)) else self._answer(_refused(frame))
        task = self._loop.create_task(work)
        self._pending.add(task)
        if any(isinstance(entry, Call) and entry.method == WAIT_TASK.name for entry in frame.entries):
            self._waits.add(task)
        if len(self._pending) >= self._settings.max_pending_requests:
            self._room.clear()
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._pending.discard(task)
        self._waits.discard(task)
        self._room.set()

    async def _answer(self, frame: Frame) -> None:
        if frame.is_batch:
            answered = await asyncio.gather(*(self._reply_to(entry) for entry in frame.entries))
            replies = [reply for reply in answered if reply is not None]
            reply = jsonrpc.batch_frame(replies) if replies else None
        else:
            reply = await self._reply_to(frame.entries[0])
        if reply is not None:
            try:
                await self._socket.drained(patience_seconds=self._settings.slow_client_seconds)
            except SlowClientError:
                self._drop_slow()
            else:
                self._socket.put(framed(reply))

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
            with called_by(f"request:{request_id}"):
                result = await ANSWERS[known](self._caller, params)
            return method.write_result(result)
        except RpcError as error:
            outcome = str(error.code)
            raise
        except WhispererError as error:
            outcome = error.code
            raise to_rpc(error, requestId=request_id) from error
        except Exception as error:
            outcome = "internal"
            _log.exception("request %s to %s failed", request_id, known)
            raise RpcError(
                jsonrpc.INTERNAL_ERROR,
                f"The server failed to handle {known}. Its log has the details under request {request_id}.",
                {"code": "internal", "requestId": request_id},
            ) from error
        finally:
            self._metrics.count_request(known, outcome=outcome, seconds=self._loop.time() - began_at)
            _log.debug("request %s %s by %s: %s", request_id, known, self._caller.principal, outcome)

    async def _feed(self, feed: _Feed) -> None:
        """Send what is new, as fast as the client reads."""
        try:
            while notes := await feed.subscription.some():
                await self._socket.drained(patience_seconds=self._settings.slow_client_seconds)
                self._socket.put(b"".join([self._frames.of(note) for note in notes]))
                feed.sent = feed.subscription.cursor
                self._metrics.count_notifications(len(notes))
            self._socket.put(self._frames.of(_closed(feed)))
        except SlowClientError:
            self._drop_slow()
        except WhispererError as failure:
            self._socket.drop(CLOSED_BY_FAILURE, failure.code)

    async def _end_feed(self, session_id: str) -> None:
        feed = self._feeds.pop(session_id, None)
        if feed is not None:
            feed.subscription.close()
            if feed.task is not None:
                feed.task.cancel()
                await asyncio.gather(feed.task, return_exceptions=True)

    def _drop_slow(self) -> None:
        """Close with the numbers to go on from: whoever reconnects with them misses nothing."""
        self._metrics.count_slow_client()
        cursors = ", ".join(f"{session_id} after {feed.sent}" for session_id, feed in self._feeds.items())
        self._socket.drop(CLOSED_AS_SLOW, f"Too slow. Resume {cursors}"[:120])


class _Feed:
    """A subscription and how much of it the client was sent."""

    def __init__(self, session_id: str, subscription: Subscription) -> None:
        self.session_id = session_id
        self.subscription = subscription
        self.sent = subscription.cursor
        self.task: asyncio.Task[None] | None = None


def _closed(feed: _Feed) -> Notification:
    return Notification(seq=0, session_id=feed.session_id, name="session.closed", cause="", at=time.time(), params={})


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


def _refused(frame: Frame) -> Frame:
    """The frame with an error for each of its calls."""
    error = to_rpc(TooManyRequestsError(), retryAfterSeconds=1)
    entries = (entry if isinstance(entry, Refusal) else Refusal(error, entry.answered_id) for entry in frame.entries)
    return Frame(tuple(entries), is_batch=frame.is_batch)

"""The subscriptions of one connection: each sends what is new in a session, as fast as the client reads."""

from __future__ import annotations

import asyncio
import logging
import time

from ai_whisperer.errors import InvalidInputError, TooManyRequestsError, WhispererError
from ai_whisperer.protocol.notifications import SESSION_CLOSED
from ai_whisperer.protocol.subscriptions import Subscribed
from ai_whisperer.records import Notification
from ai_whisperer.runtime.bus import Subscription
from ai_whisperer.runtime.manager import AsyncAgentSessionManager
from ai_whisperer.server.frames import NotificationFrames
from ai_whisperer.server.metrics import Metrics
from ai_whisperer.server.outbox import Outbox
from ai_whisperer.server.socket import MAX_REASON_BYTES

CLOSED_BY_FAILURE = 1011

_log = logging.getLogger(__name__)
_TOO_SLOW = "Too slow."


class Feeds:
    """What a client is subscribed to. One session has one feed; another takes its place."""

    def __init__(self, *, max_feeds: int, frames: NotificationFrames, metrics: Metrics) -> None:
        self._max_feeds = max_feeds
        self._frames = frames
        self._metrics = metrics
        self._feeds: dict[str, _Feed] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def subscribe(
        self, session: AsyncAgentSessionManager, outbox: Outbox, *, after: int | None, deltas: bool
    ) -> Subscribed:
        """Send the session's notifications from now on. There is no await in here: the feed before it is over."""
        last_seq = session.last_seq
        if after is not None and after > last_seq:
            raise InvalidInputError(
                f"The log of session '{session.session_id}' ends at {last_seq}, so nothing can come after {after}. "
                "Subscribe from 0, or without `after`."
            )
        if session.session_id not in self._feeds and len(self._feeds) >= self._max_feeds:
            raise TooManyRequestsError(
                f"This connection has {len(self._feeds)} subscriptions, which is the limit. Unsubscribe from one."
            )
        subscription = session.subscribe(after=last_seq if after is None else after, deltas=deltas)
        self._end(session.session_id)
        self._feeds[session.session_id] = feed = _Feed(subscription)
        feed.task = asyncio.create_task(
            self._run(feed, session.session_id, outbox), name=f"feed of {session.session_id}"
        )
        return Subscribed(session_id=session.session_id, after=feed.sent, last_seq=last_seq)

    def unsubscribe(self, session: AsyncAgentSessionManager) -> Subscribed:
        feed = self._end(session.session_id)
        after = session.last_seq if feed is None else feed.sent
        return Subscribed(session_id=session.session_id, after=after, last_seq=session.last_seq)

    def last_word(self) -> str:
        """The numbers to go on from: whoever reconnects with them misses nothing. A number is there whole or not."""
        word = _TOO_SLOW
        for session_id, feed in self._feeds.items():
            longer = f"{word}{' Resume' if word is _TOO_SLOW else ','} {session_id} after {feed.sent}"
            if len(longer.encode()) <= MAX_REASON_BYTES:
                word = longer
        return word

    async def close(self) -> None:
        """End all; when this returns, they are gone."""
        for session_id in list(self._feeds):
            self._end(session_id)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _end(self, session_id: str) -> _Feed | None:
        feed = self._feeds.pop(session_id, None)
        if feed is not None:
            feed.subscription.close()
            if feed.task is not None:
                feed.task.cancel()  # it waits for something now, and sends nothing more
                self._ending.add(feed.task)
                feed.task.add_done_callback(self._ending.discard)
        return feed

    async def _run(self, feed: _Feed, session_id: str, outbox: Outbox) -> None:
        try:
            while notes := await feed.subscription.some():
                await outbox.send(b"".join([self._frames.of(note) for note in notes]))
                feed.sent = feed.subscription.cursor
                self._metrics.count_notifications(len(notes))
        except WhispererError as failure:
            outbox.drop(CLOSED_BY_FAILURE, failure.code)
        except Exception:  # noqa: BLE001 - logged, and the client is told: it must not wait for ever
            _log.exception("the feed of session %s failed", session_id)
            outbox.drop(CLOSED_BY_FAILURE, "internal")
        else:
            closed = Notification(
                seq=0, session_id=session_id, name=SESSION_CLOSED, cause="", at=time.time(), params={}
            )
            await outbox.send(self._frames.of(closed))
            self._feeds.pop(session_id, None)


class _Feed:
    """A subscription and how much of it the client was sent."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.sent = subscription.cursor
        self.task: asyncio.Task[None] | None = None

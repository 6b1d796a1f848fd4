"""The subscriptions of one connection: each sends what is new in a session, as fast as the client reads."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.sessions import SessionClosed
from ai_whisperer.errors import InvalidInputError, NodeFencedError, TooManyRequestsError, WhispererError
from ai_whisperer.protocol.subscriptions import Subscribed
from ai_whisperer.runtime.session.log import Subscription
from ai_whisperer.server.audience import Audience, Audiences
from ai_whisperer.server.outbox import CLOSED_AS_FENCED, Outbox
from ai_whisperer.server.socket import MAX_REASON_BYTES

CLOSED_BY_FAILURE = 1011

_log = logging.getLogger(__name__)
_TOO_SLOW = "Too slow."


class Log(Protocol):
    """The log of a session, as one who follows it needs it."""

    @property
    def session_id(self) -> str: ...

    @property
    def first_seq(self) -> int: ...

    @property
    def last_seq(self) -> int: ...

    def subscribe(self, *, after: int, deltas: bool) -> Subscription: ...


class Onward(Protocol):
    """What follows in a log that is over here, if it goes on elsewhere; None if it does not."""

    def __call__(
        self, session_id: str, *, after: int, deltas: bool, created_at: float
    ) -> Awaitable[Subscription | None]: ...


async def _nowhere(session_id: str, *, after: int, deltas: bool, created_at: float) -> None:
    """There is no other node."""


class Feeds:
    """What a client is subscribed to. One session has one feed; another takes its place."""

    def __init__(self, *, max_feeds: int, audiences: Audiences) -> None:
        self.onward: Onward = _nowhere
        self._max_feeds = max_feeds
        self._audiences = audiences
        self._feeds: dict[str, Feed] = {}
        self._settled: set[str] = set()  # sessions of which it was settled whether the client follows them
        self._ending: set[asyncio.Task[None]] = set()

    def subscribe(
        self, session: Log, outbox: Outbox, *, after: int | None, deltas: bool, created_at: float
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
        self._settled.add(session.session_id)
        feed = Feed(
            session.session_id,
            subscription,
            outbox,
            self._audiences,
            onward=lambda sent: self.onward(session.session_id, after=sent, deltas=deltas, created_at=created_at),
            on_closed=self._closed,
        )
        self._feeds[session.session_id] = feed
        feed.begin()
        return _subscribed(session, feed.sent, last_seq, created_at)

    def is_settled(self, session_id: str) -> bool:
        """Whether the client has said if it wants the notifications of the session, or follows it already."""
        return session_id in self._settled

    def follow(self, session: Log, outbox: Outbox, *, created_at: float) -> None:
        """Subscribe a client that has said nothing of the session, unless it has as many subscriptions as it may."""
        self._settled.add(session.session_id)
        if len(self._feeds) < self._max_feeds:
            self.subscribe(session, outbox, after=None, deltas=False, created_at=created_at)

    def unsubscribe(self, session: Log, *, created_at: float) -> Subscribed:
        self._settled.add(session.session_id)
        feed = self._end(session.session_id)
        after = session.last_seq if feed is None else feed.sent
        return _subscribed(session, after, session.last_seq, created_at)

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

    def _closed(self, session_id: str) -> None:
        self._feeds.pop(session_id, None)
        self._settled.discard(session_id)

    def _end(self, session_id: str) -> Feed | None:
        feed = self._feeds.pop(session_id, None)
        if feed is not None:
            task = feed.end()
            if task is not None:
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)
        return feed


class Feed:
    """What a client is sent of a session: alone while it catches up, then with all others who keep up.

    `sent` is how far it has got.
    """

    def __init__(
        self,
        session_id: str,
        subscription: Subscription,
        outbox: Outbox,
        audiences: Audiences,
        *,
        onward: Callable[[int], Awaitable[Subscription | None]],
        on_closed: Callable[[str], object],
    ) -> None:
        self._session_id = session_id
        self._subscription = subscription
        self._audiences = audiences
        self._audience: Audience | None = None
        self._onward = onward
        self._on_closed = on_closed
        self._task: asyncio.Task[None] | None = None
        self.outbox = outbox
        self.sent = subscription.cursor

    def begin(self) -> None:
        self._audience = self._audience_of(self._subscription)
        if self._audience is None or not self._audience.join(self, self._subscription):
            self.go_alone(self._subscription)

    def go_alone(self, subscription: Subscription) -> None:
        self._audience = None
        self._subscription = subscription
        self._task = asyncio.create_task(self._run(subscription), name=f"feed of {self._session_id}")

    def end(self) -> asyncio.Task[None] | None:
        """Send nothing more. Returns the task that ends now, if there is one."""
        self._subscription.close()
        if self._audience is not None:
            self._audience.leave(self)
        if self._task is not None:
            self._task.cancel()  # it waits for something now, and sends nothing more
        return self._task

    async def _run(self, subscription: Subscription) -> None:
        """Send what is new as fast as the client reads, until it keeps up with the others."""
        try:
            while True:
                notes, frames = await self._audiences.frames.some(subscription)
                if not notes:
                    break
                await self.outbox.send(frames)
                self.sent = subscription.cursor
                self._audiences.metrics.count_notifications(len(notes))
                self._audience = self._audience_of(subscription)
                if self._audience is not None and await self._audience.joined(self, subscription):
                    return
                await asyncio.sleep(0)  # whoever has much to catch up with holds nobody up
            further = await self._onward(self.sent)
        except NodeFencedError as failure:
            self.outbox.drop(CLOSED_AS_FENCED, failure.code)
        except WhispererError as failure:
            self.outbox.drop(CLOSED_BY_FAILURE, failure.code)
        except Exception:  # noqa: BLE001 - logged, and the client is told: it must not wait for ever
            _log.exception("the feed of session %s failed", self._session_id)
            self.outbox.drop(CLOSED_BY_FAILURE, "internal")
        else:
            if further is not None:
                self.go_alone(further)
                return
            closed = Notification.unnumbered(SessionClosed(), session_id=self._session_id, cause="", at=time.time())
            await self.outbox.send(self._audiences.frames.of(closed))
            self._on_closed(self._session_id)

    def _audience_of(self, subscription: Subscription) -> Audience | None:
        """Those who keep up, if this client does."""
        return self._audiences.of(subscription) if subscription.is_exhausted and self.outbox.is_ready else None


def _subscribed(session: Log, after: int, last_seq: int, created_at: float) -> Subscribed:
    return Subscribed(
        session_id=session.session_id,
        after=after,
        last_seq=last_seq,
        first_seq=session.first_seq,
        created_at=created_at,
    )

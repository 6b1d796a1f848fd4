"""Numbered notifications for subscribers, from any cursor on.

A subscriber is a cursor, not a queue: it reads what it has not seen from the recent ones in memory, or from the store
when it has fallen further behind. So a slow subscriber costs next to nothing and misses nothing. What is in memory, and
what a subscriber takes at once, is bounded in number and in bytes. Deltas of a stream are not numbered and not kept:
for each subscriber that wants them they wait in `PendingDeltas`, which is bounded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable, Sequence
from weakref import WeakSet

from ai_whisperer.core.deltas import PendingDeltas
from ai_whisperer.core.recent import PAGE_BYTES, PAGE_NOTES, RecentNotes, size_of
from ai_whisperer.core.tasks import is_part_of
from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notification import Notification
from ai_whisperer.errors import LogPrunedError, StateError
from ai_whisperer.runtime.session.reads import Reads
from ai_whisperer.store.base import Store


class NotificationBus:
    """The numbered log of one session, as it grows."""

    def __init__(
        self, session_id: str, store: Store, reads: Reads, *, last_seq: int, last_at: float = 0.0, first_seq: int = 1
    ) -> None:
        """`first_seq` is the first notification that is kept; it may rise."""
        self._session_id = session_id
        self._store = store
        self._reads = reads
        self._recent = RecentNotes()
        self._subscriptions: WeakSet[Subscription] = WeakSet()
        self._with_deltas: WeakSet[Subscription] = WeakSet()
        self.wants_deltas = False  # somebody may; looked at for every piece, so it is not counted
        self.first_seq = first_seq
        self.last_seq = last_seq
        self._last_at = last_at
        self.failure: BaseException | None = None
        self.closed = False

    def publish(self, notes: Sequence[Note | Notification], sizes: Sequence[int]) -> None:
        """Take what was just committed, each of about that size."""
        self._recent.extend(notes, sizes)
        self.last_seq = notes[-1].seq
        self._last_at = notes[-1].at
        self._wake()

    def position(self) -> tuple[int, float]:
        """The number and the time of the newest notification, of those too that are on their way to the disk.

        What is in memory now is the state after it.
        """
        count, last_at = self._store.on_their_way(self._session_id)
        return self.last_seq + count, self._last_at if last_at is None else last_at

    def publish_delta(self, note: Notification) -> None:
        """Pass a piece of a stream on to those who want it now."""
        for subscription in self._with_deltas:
            subscription.take_delta(self.last_seq, note)
        self.wants_deltas = len(self._with_deltas) > 0

    def subscribe(self, *, after: int, deltas: bool, of_task: str | None = None) -> Subscription:
        """`of_task`: of the deltas only those of this task and of what continues it. Raises `LogPrunedError`."""
        self.check_kept(after)
        subscription = Subscription(self, after=after, deltas=deltas, of_task=of_task)
        self._subscriptions.add(subscription)
        if deltas:
            self._with_deltas.add(subscription)
            self.wants_deltas = True
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)
        self._with_deltas.discard(subscription)
        self.wants_deltas = len(self._with_deltas) > 0

    def after(self, cursor: int) -> list[Notification] | None:
        """Some of what follows the cursor, in order; empty if there is nothing yet, None if it is not in memory."""
        return [] if cursor >= self.last_seq else self._recent.page(cursor)

    async def stored_after(self, cursor: int) -> list[Notification]:
        """Some of what follows the cursor in the store, in order; raises `LogPrunedError`.

        Empty if the session was deleted: what was read may be of another that has its id.
        """
        found = await self._stored_after(cursor)
        self.check_kept(cursor)
        return found if await self._is_kept(found, cursor) else []

    async def _is_kept(self, found: Sequence[Notification], cursor: int) -> bool:
        """Whether what was found in the store is of this session, all of it. Nobody deletes one that is open."""
        if not self.closed or not found:
            return True
        last = await self._reads.notifications(after=self.last_seq - 1, limit=1, max_bytes=PAGE_BYTES)
        return found[0].seq == cursor + 1 and [(each.seq, each.at) for each in last] == [(self.last_seq, self._last_at)]

    async def _stored_after(self, cursor: int) -> list[Notification]:
        return await self._reads.notifications(after=cursor, limit=PAGE_NOTES, max_bytes=PAGE_BYTES)

    def check_kept(self, after: int) -> None:
        """Raise `LogPrunedError` if what follows this number is not all there any more."""
        first = self.first_seq
        if after + 1 < first:
            error = LogPrunedError(
                f"The log of session '{self._session_id}' begins at {first}: what came before was pruned. Take a "
                f"snapshot (session.snapshot) and follow the log after its lastSeq, or read on after {first - 1} and "
                "do without the rest."
            )
            error.data = {"firstSeq": first}
            raise error

    def forget(self) -> None:
        """Let memory have nothing of what may be erased in the store."""
        self._recent.clear()

    def close(self, failure: BaseException | None = None) -> None:
        self.closed = True
        self.failure = failure
        self._wake()

    def _wake(self) -> None:
        for subscription in self._subscriptions:
            subscription.wake()


class Subscription:
    """An endless iterator over a session's notifications. It ends when the session is closed, after the last one."""

    def __init__(self, bus: NotificationBus, *, after: int, deltas: bool, of_task: str | None = None) -> None:
        self._bus = bus
        self.cursor = after
        self._of_task = of_task
        self._deltas = PendingDeltas() if deltas else None
        self._page: deque[Notification] = deque()
        self._is_behind = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def lag(self) -> int:
        """How many numbered notifications there are that were not read yet."""
        return max(self._bus.last_seq - self.cursor, 0)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Notification:
        while (note := self._next()) is None:
            if self._is_behind and await self._catch_up():
                continue
            if self._bus.closed:
                self.close()
                if self._bus.failure is not None:
                    raise self._bus.failure
                raise StopAsyncIteration
            if self._waiter is not None and not self._waiter.done():
                raise StateError("Somebody reads this subscription already. Subscribe once for each reader.")
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return note

    async def some(self, *, at_most: int = PAGE_NOTES) -> list[Notification]:
        """What has come, at least one unless the session was closed, and not too many at once."""
        try:
            notes = [await anext(self)]
        except StopAsyncIteration:
            return []
        return notes + self.take(at_most=at_most - 1, size=size_of(notes[0]))

    def take(self, *, at_most: int = PAGE_NOTES, size: int = 0) -> list[Notification]:
        """What is in memory already, until it is large enough together with what is taken already."""
        notes: list[Notification] = []
        while len(notes) < at_most and size < PAGE_BYTES and (note := self._next()) is not None:
            notes.append(note)
            size += size_of(note)
        return notes

    @property
    def is_exhausted(self) -> bool:
        """Whether all that has come was read."""
        return self.cursor >= self._bus.last_seq and not self._deltas

    async def _catch_up(self) -> bool:
        """Read on in the store; False if there is nothing any more, so that all there is to wait for is the end."""
        cursor = self.cursor
        page = await self._bus.stored_after(cursor)
        if self.cursor != cursor or self._page:  # somebody else has read on meanwhile
            return True
        self._page.extend(page)
        return bool(page)

    def _next(self) -> Notification | None:
        """The next one, if it is in memory."""
        if not self._page:
            page = self._bus.after(self.cursor)
            self._is_behind = page is None
            self._page.extend(page or ())
        if self._deltas and (not self._page or self._deltas.position <= self.cursor):
            return self._deltas.take()
        if not self._page:
            return None
        note = self._page.popleft()
        self.cursor = note.seq
        return note

    def take_delta(self, position: int, note: Notification) -> None:
        if self._deltas is not None and (self._of_task is None or is_part_of(self._of_task, note.params["taskId"])):
            self._deltas.put(position, note)
            self.wake()

    def take_deltas(self, waiting: PendingDeltas) -> None:
        """Take what waits for somebody else too."""
        if self._deltas is not None:
            self._deltas.put_all_of(waiting)

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def fork(self, *, after: int, unread: Sequence[Notification] = ()) -> Subscription:
        """Another subscription to the same session, from this number on.

        It brings the pieces of streams too that are among the unread ones, which were taken here, and those that wait.
        """
        other = self._bus.subscribe(after=after, deltas=self._deltas is not None)
        for note in unread:
            if note.seq:
                after = note.seq
            else:
                other.take_delta(after, note)
        if self._deltas is not None:
            other.take_deltas(self._deltas)
        return other

    @property
    def source(self) -> Hashable:
        """The same for all subscriptions that bring the same."""
        return self._bus, self._deltas is not None

    def close(self) -> None:
        """Stop listening. The cursor stays: subscribe again from it to miss nothing."""
        self._bus.unsubscribe(self)

"""The log of a session that another node has, as it grows there, for all clients here that follow it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ai_whisperer.core.recent import size_of
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.agents import AgentDeleted, ThreadDeleted
from ai_whisperer.domain.notifications.rooms import RoomDeleted
from ai_whisperer.domain.notifications.sessions import SessionPruned
from ai_whisperer.protocol.subscriptions import Subscribed
from ai_whisperer.runtime.session.log import NotificationBus, Subscription
from ai_whisperer.runtime.session.reads import Reads
from ai_whisperer.store.base import Store

_ERASE = {each.wire_name for each in (AgentDeleted, ThreadDeleted, RoomDeleted, SessionPruned)}


class FarLog(NotificationBus):
    """A log that is told by another node. Whoever falls behind what is in memory reads the store, which is the same."""

    def __init__(
        self,
        store: Store,
        told: Subscribed,
        *,
        principal: str,
        on_deltas: Callable[[FarLog], None],
        on_unused: Callable[[FarLog], None],
    ) -> None:
        """`told` is what the other node said of the log, which belongs to the `principal`.

        `on_deltas` is called when pieces of streams become wanted, or no longer are.
        """
        reads = Reads(store, told.session_id)
        super().__init__(told.session_id, store, reads, last_seq=told.last_seq, first_seq=told.first_seq)
        self.session_id = told.session_id
        self.created_at = told.created_at
        self.principal = principal
        self.deltas = False
        self._on_deltas = on_deltas
        self._on_unused = on_unused
        self._users = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self.is_followed = asyncio.Event()
        """Set while the other node tells what happens, and as much of it as is wanted."""

    @contextmanager
    def used(self) -> Iterator[FarLog]:
        """Within, the log is kept, though nobody may follow it yet."""
        self._users += 1
        try:
            yield self
        finally:
            self._users -= 1
            self._look_whether_used()

    async def reached(self, seq: int, *, deltas: bool = False) -> None:
        """Wait until the log has come to this number, and pieces of streams come too if wanted; or it is closed."""
        if deltas:
            self._want_deltas()
            await self.is_followed.wait()
        if self.last_seq < seq and not self.closed:
            reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((seq, reached))
            await reached

    def take(self, note: Notification) -> None:
        """Take what the other node tells. What is known already is left out."""
        if not note.seq:
            self.publish_delta(note)
        elif note.seq > self.last_seq:
            if note.name in _ERASE or note.seq > self.last_seq + 1:
                self.forget()  # what is erased in the store must not be told from memory, nor around what is missing
            if note.name == SessionPruned.wire_name:
                self.first_seq = note.params["firstSeq"]
            self.publish([note], [size_of(note)])
            self._tell_waiting()

    def skip(self, first_seq: int) -> None:
        """Go on where the log begins now: what came before was pruned while the other node was away."""
        self.forget()
        self.first_seq = first_seq
        self.last_seq = max(self.last_seq, first_seq - 1)

    def subscribe(self, *, after: int, deltas: bool, of_task: str | None = None) -> Subscription:
        subscription = super().subscribe(after=after, deltas=deltas, of_task=of_task)
        if deltas:
            self._want_deltas()
        return subscription

    def _want_deltas(self) -> None:
        if not self.deltas:
            self.deltas = True
            self._on_deltas(self)

    def unsubscribe(self, subscription: Subscription) -> None:
        super().unsubscribe(subscription)
        self._look_whether_used()
        if self.deltas and not self.wants_deltas and not self.closed:
            self.deltas = False
            self._on_deltas(self)

    async def stored_after(self, cursor: int) -> list[Notification]:
        found = await super().stored_after(cursor)
        if found and found[0].seq > cursor + 1:  # the log has no gaps: what is missing was pruned, and not told yet
            self.first_seq = found[0].seq
            self.check_kept(cursor)
        return found

    async def _is_kept(self, found: Sequence[Notification], cursor: int) -> bool:  # noqa: ARG002
        record = await self._store.session(self.session_id)
        return record is not None and (record.owner, record.created_at) == (self.principal, self.created_at)

    def close(self, failure: BaseException | None = None) -> None:
        super().close(failure)
        self.is_followed.set()  # nobody need wait for it any more
        self._tell_waiting()

    def _look_whether_used(self) -> None:
        if not self._users and not self._subscriptions:
            self._on_unused(self)

    def _tell_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for seq, reached in waiting:
            if seq > self.last_seq and not self.closed:
                self._waiting.append((seq, reached))
            elif not reached.done():
                reached.set_result(None)

"""The store as one session reads it, and which of its reads are under way.

A read takes time, and may come back older than a commit that it missed. So the rule is: read, then overlay what memory
has. What is on its way to the disk stays in memory, in an `Overlay`, until it is durable and no read is under way that
began before that: see `Decision.when_readable`. Whoever reads looks at memory as soon as the read returns, with no
other await between the two. A decision reads memory only.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator, ValuesView
from contextlib import contextmanager
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from ai_whisperer.store.base import Store

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

_Read = Callable[Concatenate[Store, str, P], Coroutine[Any, Any, T]]


def _own(read: _Read[P, T]) -> Callable[Concatenate[Reads, P], Coroutine[Any, Any, T]]:
    """This read of the store, of the own session, counted while it is under way.

    `Store` is a protocol: only the name of the read is taken from it, and its types.
    """
    name = read.__name__

    def counted(self: Reads, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        return self._counted(getattr(self._store, name)(self._session_id, *args, **kwargs))

    return counted


async def _nothing() -> None:
    return


class ReadsUnderWay:
    """Reads that have begun and not returned, and what is kept in memory since they may have missed it."""

    def __init__(self) -> None:
        self._begun = 0
        self._under_way: dict[int, None] = {}
        self._kept: deque[tuple[int, Callable[[], object]]] = deque()

    def __bool__(self) -> bool:
        return bool(self._under_way)

    @contextmanager
    def one_more(self) -> Iterator[int]:
        """A read, or several that count as one. What is decided on them in here is decided on all of them."""
        self._begun = number = self._begun + 1
        self._under_way[number] = None
        try:
            yield number
        finally:
            del self._under_way[number]
            if self._kept:
                # Not at once: whoever reads is to find in memory what the read has missed.
                asyncio.get_running_loop().call_soon(self._forget)

    def when_seen(self, forget: Callable[[], object]) -> None:
        """Something is durable now: call this when all reads have returned that may have missed it."""
        if self._under_way:
            self._kept.append((self._begun, forget))
        else:
            forget()

    def _forget(self) -> None:
        oldest = next(iter(self._under_way), self._begun + 1)
        while self._kept and self._kept[0][0] < oldest:
            self._kept.popleft()[1]()


class Overlay(Generic[K, T]):
    """What was changed a moment ago, to be laid over what was read: a read may have missed it."""

    def __init__(self) -> None:
        self._kept: dict[K, T] = {}

    def keep(self, key: K, value: T, *, until: Callable[[Callable[[], object]], object]) -> None:
        """Keep it until that calls, unless another is kept in its place by then: give `Decision.when_readable`."""
        self._kept[key] = value

        def forget() -> None:
            if self._kept.get(key) is value:
                del self._kept[key]

        until(forget)

    def __bool__(self) -> bool:
        return bool(self._kept)

    def __contains__(self, key: K) -> bool:
        return key in self._kept

    def get(self, key: K) -> T | None:
        return self._kept.get(key)

    def values(self) -> ValuesView[T]:
        return self._kept.values()


class Reads:
    """What one session reads of its store."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._session_id = session_id
        self.under_way = ReadsUnderWay()
        self._line: dict[int, asyncio.Future[None] | None] = {}

    task = _own(Store.task)
    tasks = _own(Store.tasks)
    tasks_of_agent = _own(Store.tasks_of_agent)
    tasks_of_thread = _own(Store.tasks_of_thread)
    compacted_thread = _own(Store.compacted_thread)
    tasks_of_tree = _own(Store.tasks_of_tree)
    ids_of_tree = _own(Store.ids_of_tree)
    threads_of_agent = _own(Store.threads_of_agent)
    has_thread = _own(Store.has_thread)
    latest_threads = _own(Store.latest_threads)
    failures_since = _own(Store.failures_since)
    dead_tasks = _own(Store.dead_tasks)
    steps = _own(Store.steps)
    open_steps = _own(Store.open_steps)
    steps_of_thread = _own(Store.steps_of_thread)
    mail = _own(Store.mail)
    mailbox = _own(Store.mailbox)
    sent_mail = _own(Store.sent_mail)
    dead_mail = _own(Store.dead_mail)
    inbox = _own(Store.inbox)
    ids_beginning = _own(Store.ids_beginning)
    approval = _own(Store.approval)
    approvals = _own(Store.approvals)
    question = _own(Store.question)
    questions = _own(Store.questions)
    event = _own(Store.event)
    events = _own(Store.events)
    attachment = _own(Store.attachment)
    attachments = _own(Store.attachments)
    attachment_digests = _own(Store.attachment_digests)
    message = _own(Store.message)
    messages = _own(Store.messages)
    notifications = _own(Store.notifications)
    first_since = _own(Store.first_since)
    thread_standings = _own(Store.thread_standings)
    stored_parts = _own(Store.stored_parts)
    notifications_naming = _own(Store.notifications_naming)
    last_notifications_naming = _own(Store.last_notifications_naming)

    async def in_turn(self, read: Awaitable[T]) -> T:
        """Read, and return in the order in which this was called: what arrived first is decided first."""
        with self.under_way.one_more() as number:
            return await self._in_turn(number, read)

    @property
    def has_line(self) -> bool:
        """Whether somebody reads in turn now: else there is no turn to wait for."""
        return bool(self._line)

    async def turn(self) -> None:
        """Wait for those who read in turn and were called before."""
        if self._line:
            await self.in_turn(_nothing())

    async def _in_turn(self, number: int, read: Awaitable[T]) -> T:
        self._line[number] = None
        try:
            found = await read
            if next(iter(self._line)) != number:
                self._line[number] = turn = asyncio.get_running_loop().create_future()
                await turn
            return found
        finally:
            del self._line[number]
            following = next(iter(self._line.values()), None)
            if following is not None and not following.done():
                following.set_result(None)

    async def _counted(self, read: Awaitable[T]) -> T:
        with self.under_way.one_more():
            return await read

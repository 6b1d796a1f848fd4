"""Clients that follow a session, together or alone: each is sent everything once, in order, whatever others do."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Sequence
from typing import Any, cast

import pytest

from ai_whisperer.core.recent import size_of
from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.base import Told
from ai_whisperer.domain.notifications.tasks import TaskDelta
from ai_whisperer.errors import NodeFencedError
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.runtime.session.log import NotificationBus, Subscription
from ai_whisperer.runtime.session.reads import Reads
from ai_whisperer.server.audience import Audiences
from ai_whisperer.server.feeds import Feeds
from ai_whisperer.server.frames import NotificationFrames
from ai_whisperer.server.metrics import Metrics
from ai_whisperer.server.outbox import CLOSED_AS_FENCED, Outbox
from ai_whisperer.simulation.loop import simulate
from ai_whisperer.store.base import Store

SEEDS = 150
_TOLD = re.compile(rb'"seq":(\d+),')
_PIECE = re.compile(rb'"text":"([a-z]*)"')


class Something(Told, frozen=True, kw_only=True):
    """What the session tells."""

    wire_name = "n"

    p: str


class FakeStore:
    """Keeps what the session has told."""

    def __init__(self) -> None:
        self.notes: list[Notification] = []

    async def notifications(self, session_id: str, *, after: int, limit: int, max_bytes: int) -> list[Notification]:
        del session_id, max_bytes
        return self.notes[after : after + limit]


class FakeSession:
    """A session that tells what the test wants."""

    session_id = "s"
    first_seq = 1

    def __init__(self) -> None:
        self._store = FakeStore()
        store = cast(Store, self._store)
        self.bus = NotificationBus("s", store, Reads(store, "s"), last_seq=0)
        self.streamed = ""

    @property
    def last_seq(self) -> int:
        return self.bus.last_seq

    def subscribe(self, *, after: int, deltas: bool) -> Subscription:
        return self.bus.subscribe(after=after, deltas=deltas)

    def tell(self, count: int, *, size: int = 1) -> None:
        notes = [
            Note(seq=self.last_seq + each, session_id="s", cause="c", at=1.0, told=Something(p="x" * size))
            for each in range(1, count + 1)
        ]
        kept = [note.read() for note in notes]
        self._store.notes += kept
        self.bus.publish(notes, [size_of(note) for note in kept])

    def stream(self, text: str) -> None:
        self.streamed += text
        if self.bus.wants_deltas:
            told = TaskDelta(agent_id="a", task_id="t", step_id="t.1", attempt=1, channel="final", text=text)
            self.bus.publish_delta(Notification.unnumbered(told, session_id="s", cause="c", at=1.0))


class FakeSocket:
    """A client that takes what it is sent, except while it is stuck."""

    is_open = True

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.free = asyncio.Event()
        self.free.set()
        self.dropped: int | None = None

    @property
    def is_drained(self) -> bool:
        return self.free.is_set()

    def put(self, frames: bytes) -> None:
        self.writes.append(frames)

    async def drained(self, *, patience_seconds: float) -> None:
        del patience_seconds
        await self.free.wait()

    def drop(self, code: int, reason: str) -> None:
        del reason
        self.dropped = code

    @property
    def numbers(self) -> list[int]:
        return [int(seq) for write in self.writes for seq in _TOLD.findall(write) if int(seq)]

    @property
    def text(self) -> str:
        return b"".join(piece for write in self.writes for piece in _PIECE.findall(write)).decode()


class Client:
    """Somebody with a connection, who may subscribe to the session and stop again."""

    def __init__(self, session: FakeSession, audiences: Audiences, *, deltas: bool) -> None:
        self.socket = FakeSocket()
        self.deltas = deltas
        self._session = cast(AsyncAgentSessionManager, session)
        self._outbox = Outbox(self.socket, patience_seconds=1.0, last_word=str)
        self.feeds = Feeds(max_feeds=1, audiences=audiences)
        self._after = 0
        self._is_subscribed = False

    def subscribe(self) -> None:
        if not self._is_subscribed:
            self.feeds.subscribe(self._session, self._outbox, after=self._after, deltas=self.deltas, created_at=0.0)
            self._is_subscribed = True

    def turn_round(self) -> None:
        """Stop if it follows, else go on from where it stopped."""
        if self._is_subscribed:
            self._after = self.feeds.unsubscribe(self._session, created_at=0.0).after
            self._is_subscribed = False
        else:
            self.subscribe()


def stage(count: int) -> tuple[FakeSession, list[Client]]:
    """A session and its clients; every other one wants the pieces of streams."""
    session = FakeSession()
    audiences = Audiences(NotificationFrames(), Metrics(list))
    return session, [Client(session, audiences, deltas=number % 2 == 1) for number in range(count)]


async def over(session: FakeSession, clients: Sequence[Client]) -> None:
    """Let everybody read to the end, and leave."""
    for client in clients:
        client.socket.free.set()
    await asyncio.sleep(10)
    for client in clients:
        await client.feeds.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert len(session.bus._subscriptions) == 0


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_everybody_is_sent_everything_once_and_in_order(first: int) -> None:
    for seed in range(first, first + 50):
        simulate(random_walk(random.Random(seed)), seed=seed)


async def random_walk(chance: random.Random) -> None:
    session, clients = stage(8)
    steady, others = clients[:4], clients[4:]
    for client in steady:
        client.subscribe()
    for _ in range(60):
        match chance.randrange(8):
            case 0 | 1 | 2:
                session.tell(chance.choice((1, 2, 40)), size=chance.choice((1, 1000)))
            case 3 | 4:
                session.stream(chance.choice("abcdefgh"))
            case 5:
                chance.choice(clients).socket.free.clear()
            case 6:
                chance.choice(clients).socket.free.set()
            case _:
                chance.choice(others).turn_round()
        if chance.random() < 0.7:
            await asyncio.sleep(chance.choice((0, 0, 0.0005, 0.01)))
    for client in others:
        client.subscribe()
    await over(session, clients)
    assert all(client.socket.numbers == list(range(1, session.last_seq + 1)) for client in clients)
    assert all(client.socket.text == (session.streamed if client.deltas else "") for client in steady)


def test_what_is_new_is_made_into_frames_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Notification] = []
    make = NotificationFrames.of

    def of(self: NotificationFrames, note: Notification) -> bytes:
        made.append(note)
        return make(self, note)

    monkeypatch.setattr(NotificationFrames, "of", of)

    async def scene() -> None:
        session, clients = stage(100)
        for client in clients:
            client.subscribe()
        await asyncio.sleep(1)
        assert len(asyncio.all_tasks()) == 3, "one task reads for those with pieces of streams, one for the others"
        assert len(session.bus._subscriptions) == 2
        session.tell(10)
        await asyncio.sleep(1)
        assert [len(client.socket.writes) for client in clients] == [1] * 100
        await over(session, clients)

    simulate(scene(), seed=1)
    assert len(made) == 20


def test_many_clients_are_written_to_a_few_times_a_second_however_much_there_is_to_tell() -> None:
    async def scene() -> None:
        session, clients = stage(500)
        for client in clients:
            client.subscribe()
        for _ in range(1000):
            session.tell(1)
            await asyncio.sleep(0.001)
        await over(session, clients)
        assert all(len(client.socket.writes) <= 40 for client in clients)
        assert all(client.socket.numbers == list(range(1, 1001)) for client in clients)

    simulate(scene(), seed=1)


def test_one_client_is_written_to_at_once() -> None:
    async def scene() -> None:
        session, clients = stage(1)
        clients[0].subscribe()
        for told in range(1, 10):
            session.tell(1)
            for _ in range(3):
                await asyncio.sleep(0)
            assert clients[0].socket.numbers[-1] == told
        await over(session, clients)

    simulate(scene(), seed=1)


def test_a_client_that_is_stuck_holds_nobody_up_and_misses_nothing() -> None:
    async def scene() -> None:
        session, clients = stage(3)
        for client in clients:
            client.subscribe()
        stuck = clients[0].socket
        stuck.free.clear()
        for _ in range(100):
            session.tell(50)
            await asyncio.sleep(1)
        assert all(client.socket.numbers == list(range(1, 5001)) for client in clients[1:])
        assert stuck.numbers == []
        stuck.free.set()
        await asyncio.sleep(1)
        assert stuck.numbers == list(range(1, 5001))
        await over(session, clients)

    simulate(scene(), seed=1)


def test_a_client_that_falls_behind_is_told_of_streams_at_their_place() -> None:
    async def scene() -> None:
        session, clients = stage(2)
        behind = clients[1]
        behind.subscribe()
        behind.socket.free.clear()
        session.tell(1)
        session.stream("a")
        session.tell(1)
        await asyncio.sleep(1)
        session.stream("b")
        behind.socket.free.set()
        await asyncio.sleep(1)
        told = re.findall(rb'"seq":([1-9])|"text":"([a-z])"', b"".join(behind.socket.writes))
        assert [seq or text for seq, text in told] == [b"1", b"a", b"2", b"b"]
        await over(session, clients)

    simulate(scene(), seed=1)


def test_who_stops_while_others_are_written_to_is_sent_nothing_more() -> None:
    async def scene() -> None:
        session, clients = stage(600)
        followers = clients[::2]
        for client in followers:
            client.subscribe()
        await asyncio.sleep(1)
        session.tell(1)
        last = followers[-1]
        while not followers[0].socket.writes:  # noqa: ASYNC110 - the first round of several
            await asyncio.sleep(0)
        assert last.socket.writes == []
        last.turn_round()
        await asyncio.sleep(1)
        assert last.socket.writes == []
        last.turn_round()
        await asyncio.sleep(1)
        assert last.socket.numbers == [1]
        await over(session, clients)

    simulate(scene(), seed=1)


def test_who_comes_in_late_and_falls_behind_at_once_sees_nothing_twice() -> None:
    async def scene() -> None:
        session, (*clients, late) = stage(51)
        for client in clients:
            client.subscribe()
        session.tell(1)
        await asyncio.sleep(0.001)
        session.tell(1)
        late.subscribe()
        await asyncio.sleep(0.001)
        assert late.socket.numbers == [1, 2], "it is ahead of the others, who are in their pause"
        session.tell(1)
        await asyncio.sleep(0.1)
        late.socket.free.clear()
        session.tell(1)
        await asyncio.sleep(0.1)
        late.socket.free.set()
        await asyncio.sleep(0.1)
        assert late.socket.numbers == clients[0].socket.numbers == [1, 2, 3, 4]
        await over(session, [*clients, late])

    simulate(scene(), seed=1)


def test_an_audience_that_everybody_has_left_is_over() -> None:
    async def scene() -> None:
        session, clients = stage(4)
        for client in clients:
            client.subscribe()
            client.socket.free.clear()
        session.tell(1)
        await asyncio.sleep(1)
        assert len(asyncio.all_tasks()) == 5, "everybody waits alone"
        await over(session, clients)

    simulate(scene(), seed=1)


def test_the_end_of_an_audience_does_not_end_the_next() -> None:
    async def scene() -> None:
        session, clients = stage(5)
        first, second, third = clients[::2]
        first.subscribe()
        await asyncio.sleep(1)
        first.turn_round()
        second.subscribe()
        await asyncio.sleep(1)
        third.subscribe()
        await asyncio.sleep(1)
        assert len(asyncio.all_tasks()) == 2, "one task reads for both"
        await over(session, clients)

    simulate(scene(), seed=1)


def test_a_session_that_ends_says_farewell_to_all() -> None:
    async def scene() -> None:
        session, clients = stage(3)
        for client in clients:
            client.subscribe()
        session.tell(3)
        await asyncio.sleep(1)
        session.bus.close()
        await asyncio.sleep(1)
        assert [client.socket.writes[-1].count(b"session.closed") for client in clients] == [1, 1, 1]
        await over(session, clients)

    simulate(scene(), seed=1)


def test_what_cannot_be_told_closes_the_connections_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(_: Any, note: Notification) -> bytes:
        raise RuntimeError(f"cannot tell {note.seq}")

    async def scene() -> None:
        session, (*clients, late) = stage(51)
        for client in clients:
            client.subscribe()
        session.tell(1)
        await asyncio.sleep(0.001)
        session.tell(1)
        late.subscribe()
        await asyncio.sleep(0.001)
        assert late.socket.numbers == [1, 2]
        assert clients[0].socket.numbers == [1]
        monkeypatch.setattr(NotificationFrames, "of", of)
        await asyncio.sleep(1)
        assert [client.socket.dropped for client in clients] == [1011] * 50
        session.tell(1)
        await asyncio.sleep(1)
        assert late.socket.dropped == 1011
        await over(session, [*clients, late])

    simulate(scene(), seed=1)


def test_a_client_who_follows_a_node_that_was_taken_for_dead_is_told_to_ask_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fenced(*_: object) -> None:
        raise NodeFencedError

    async def scene() -> None:
        session, clients = stage(2)
        session.tell(1)
        monkeypatch.setattr(NotificationFrames, "some", fenced)
        for client in clients:
            client.subscribe()
        await asyncio.sleep(1)
        assert [client.socket.dropped for client in clients] == [CLOSED_AS_FENCED] * 2
        await over(session, clients)

    simulate(scene(), seed=1)

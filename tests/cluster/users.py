"""Clients at random nodes: they give tasks, follow what happens and read, and know what they were told."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping

from ai_whisperer.client import Client
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.errors import (
    ClosedError,
    ConnectionLostError,
    NotFoundError,
    ServerFailedError,
    SessionElsewhereError,
    StateError,
    StoreError,
    TooManyRequestsError,
    WhispererError,
)
from tests.cluster.schedule import SESSIONS, TASKS

AGENT = "ann"
GONE_FOR_NOW = (
    ClosedError,
    ConnectionLostError,
    ServerFailedError,
    SessionElsewhereError,
    StoreError,
    TooManyRequestsError,
)
"""What a client may be told while something is wrong: it asks again."""
_PAUSE_SECONDS = 0.1
_LOOK_SECONDS = 0.1
_MOST_ASKING = 50
ATTENDED = SESSIONS[:-1]


def task_of(session_id: str, number: int) -> str:
    return f"{session_id}-{number}"


class Follower:
    """Somebody who follows a log at a node from its beginning."""

    def __init__(self, session_id: str, node: str) -> None:
        self.session_id = session_id
        self.node = node
        self.notes: list[Notification] = []


class Users:
    """All clients of a run. `findings` is what they were told that cannot be true."""

    def __init__(self, clients: dict[str, Client], chance: random.Random) -> None:
        self._clients = clients
        self._chance = chance
        self._floors: dict[str, int] = defaultdict(int)
        self._ended: set[str] = set()
        self._under_way: list[asyncio.Task[None]] = []
        self._reading: list[asyncio.Task[None]] = []
        self._asking: set[asyncio.Task[None]] = set()
        self.accepted: dict[str, str] = {}
        self.followers = [Follower(each, chance.choice(list(clients))) for each in (*ATTENDED, chance.choice(ATTENDED))]
        self.findings: list[str] = []
        self.figures: Counter[str] = Counter()

    async def set_up(self) -> None:
        for session_id in SESSIONS:
            client = self._any(session_id)
            if session_id != SESSIONS[0]:  # the nodes make that
                await client.create_session(session_id)
            await client.create_agent(AGENT)
        for number in range(TASKS):
            await self._give(SESSIONS[-1], number)
        for session_id in ATTENDED:
            await self._give(session_id, 0)

    def begin(self, group: asyncio.TaskGroup) -> None:
        self._under_way = [group.create_task(self._give_all(each)) for each in ATTENDED]
        self._reading = [group.create_task(self._follow(each)) for each in self.followers]
        self._reading.append(group.create_task(self._read_often(group)))

    async def done(self, is_over: Callable[[], Awaitable[Mapping[str, int] | None]]) -> None:
        """Return when all that was given is over, and all followers have seen the end of their logs."""
        await asyncio.gather(*self._under_way)
        before, now = None, await is_over()
        while now != before or not self._have_all_seen(now):
            await asyncio.sleep(_LOOK_SECONDS)  # what comes twice at the end comes meanwhile
            before, now = now, await is_over()
        for reading in self._reading:
            reading.cancel()

    def _have_all_seen(self, lengths: Mapping[str, int] | None) -> bool:
        return lengths is not None and all(len(each.notes) >= lengths[each.session_id] for each in self.followers)

    async def logs(self) -> dict[str, list[Notification]]:
        """The logs of all sessions, as they are told."""
        return {each: await self._any(each).notifications(limit=1000) for each in SESSIONS}

    @property
    def left(self) -> str:
        """What is not done."""
        seen = ", ".join(f"{each.session_id} at {each.node}: {len(each.notes)}" for each in self.followers)
        return f"{len(self.accepted)} of {len(SESSIONS) * TASKS} tasks accepted; followers have seen {seen}"

    async def move(self, session_id: str, node: str) -> None:
        try:
            async with asyncio.timeout(5):
                await self._any(session_id).move_session(session_id, node)
        except (*GONE_FOR_NOW, StateError, NotFoundError, TimeoutError):
            self.figures["moves that failed"] += 1

    async def drain(self, node: str, *, patience_seconds: float) -> None:
        """Have a node give its sessions away; returns when it has none, or after a while."""
        others = [each for each in self._clients if each != node]
        try:
            async with asyncio.timeout(patience_seconds):
                client = self._clients[self._chance.choice(others)]
                status = await client.drain_node(node, force=True)
                while any(each.name == node and each.sessions for each in status.nodes):
                    await asyncio.sleep(_LOOK_SECONDS)
                    status = await client.cluster_status()
        except (*GONE_FOR_NOW, NotFoundError, TimeoutError):
            self.figures["drains that failed"] += 1

    def _any(self, session_id: str) -> Client:
        return self._clients[self._chance.choice(list(self._clients))].session(session_id)

    async def _give_all(self, session_id: str) -> None:
        for number in range(1, TASKS):
            await asyncio.sleep(self._chance.uniform(0.1, 1.0))
            await self._give(session_id, number)

    async def _give(self, session_id: str, number: int) -> None:
        task_id = task_of(session_id, number)
        while True:
            try:
                await self._any(session_id).send_task(AGENT, f"work {task_id}", task_id=task_id)
            except GONE_FOR_NOW:
                self.figures["refused"] += 1
                await asyncio.sleep(_PAUSE_SECONDS)
            except WhispererError as error:
                self.findings.append(f"{task_id} could not be given: {error!r}")
                return
            else:
                self.accepted[task_id] = session_id
                return

    async def _follow(self, follower: Follower) -> None:
        client = self._clients[follower.node].session(follower.session_id)
        while True:
            stream = client.events(after=follower.notes[-1].seq if follower.notes else 0)
            try:
                async for note in stream:
                    follower.notes.append(note)
                    floor = self._floors[follower.session_id]
                    self._floors[follower.session_id] = max(floor, note.seq)
            except GONE_FOR_NOW:
                self.figures["feeds that broke"] += 1
                await asyncio.sleep(_PAUSE_SECONDS)
            except WhispererError as error:
                self.findings.append(f"{follower.session_id} could not be followed: {error!r}")
                return
            finally:
                await stream.close()

    async def _read_often(self, group: asyncio.TaskGroup) -> None:
        """Ask again and again, though others wait for an answer: a node that was frozen is asked all the time."""
        try:
            while True:
                await asyncio.sleep(self._chance.uniform(0.02, 0.15))
                if len(self._asking) < _MOST_ASKING:
                    asking = group.create_task(self._read(self._chance.choice(ATTENDED)))
                    self._asking.add(asking)
                    asking.add_done_callback(self._asking.discard)
        finally:
            for asking in self._asking:
                asking.cancel()

    async def _read(self, session_id: str) -> None:
        try:
            await self._read_states(session_id)
            await self._read_task(session_id)
            self.figures["reads"] += 1
        except GONE_FOR_NOW:
            self.figures["reads that failed"] += 1
        except WhispererError as error:
            self.findings.append(f"{session_id} could not be read: {error!r}")

    async def _read_states(self, session_id: str) -> None:
        floor = self._floors[session_id]
        states = await self._any(session_id).get_agent_states()
        if states.last_seq < floor:
            self.findings.append(f"{session_id} was told as of {states.last_seq} when {floor} had been told")
        self._floors[session_id] = max(self._floors[session_id], states.last_seq)

    async def _read_task(self, session_id: str) -> None:
        given = [each for each, of in self.accepted.items() if of == session_id]
        task_id = self._chance.choice(given)
        was_ended = task_id in self._ended
        has_ended = TaskState((await self._any(session_id).get_task(task_id)).state).ended
        if was_ended and not has_ended:
            self.findings.append(f"{task_id} had ended and was told to be under way")
        if has_ended:
            self._ended.add(task_id)

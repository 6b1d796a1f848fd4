"""Agents that write under a lock while everything goes wrong, and a judge that knows only the log and what was written.

They stall past their leases, are paused, interrupted and stopped, the process dies, a person breaks the lock or takes
it in between; they are stubborn and write with every token that they were ever told. Each guarded block is shorter than
the longest that is allowed.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import NamedTuple

from ai_whisperer import AsyncAgentSessionManager, ToolContext, WhispererError, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.notification import Notification
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import VirtualClock, simulate
from ai_whisperer.tools.function import Tool
from tests.simulation.stage import call, opened, prompt_of, results_of, round_of

TOOLS = ["acquire_lock", "renew_lock", "release_lock", "write"]
LOCK = "door"
AGENTS = "abc"
_TOKEN = re.compile(r"You hold lock 'door' with token (\d+)")


class Attempt(NamedTuple):
    """A guarded write that was tried at a time. It `wrote` at a later one, or was refused, or was cut off."""

    token: int
    began_at: float
    entered: bool
    wrote_at: float | None = None


class Lease(NamedTuple):
    """What the log says of one token."""

    acquired_at: float
    expires: list[tuple[float, float]]
    ended: list[float]

    def is_over(self, at: float) -> bool:
        """Whether the lease had ended by then, or its time had passed."""
        told = max((entry for entry in self.expires if entry[0] <= at), default=self.expires[0])
        return at >= told[1] or any(ended_at <= at for ended_at in self.ended)


class Figures(NamedTuple):
    """What came about in a schedule."""

    attempts: int
    written: int
    refused: int


class GuardedWorld:
    """One schedule, made from a seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._chance = random.Random(seed)
        self._clock = VirtualClock()
        self.attempts: list[Attempt] = []
        self.log: Sequence[Notification] = ()

    def run(self) -> Figures:
        """Play it to its end and judge it; raises `AssertionError`."""
        disk = SimulatedDisk(self._seed)
        elapsed = 0.0
        for _ in range(self._chance.randint(0, 2)):
            alive, down = self._chance.uniform(5, 30), self._chance.uniform(0, 20)
            simulate(self._lives(disk, alive), seed=self._chance.randrange(10**6))
            elapsed += alive + down
            self._clock = VirtualClock().later(elapsed)
        simulate(self._comes_to_an_end(disk), seed=self._chance.randrange(10**6))
        disk.close()
        return self._judged()

    async def _lives(self, disk: SimulatedDisk, seconds: float) -> None:
        manager = self._opened(disk)
        await manager.open()
        fate = asyncio.ensure_future(self._fate(manager, seconds=1000.0))
        await asyncio.wait([fate], timeout=seconds)
        disk.crash()
        fate.cancel()
        await asyncio.wait([fate])

    async def _comes_to_an_end(self, disk: SimulatedDisk) -> None:
        async with self._opened(disk) as manager:
            await self._fate(manager, seconds=self._chance.uniform(15, 40))
            for agent in manager.active_sessions:
                await _tried(manager.start_agent(agent))
                await _tried(manager.resume_agent(agent))
            async with asyncio.timeout(5000):
                await manager.at_rest()
            await asyncio.sleep(100)
            self.log = await manager.notifications(limit=100_000)
            assert manager.list_locks() == []

    def _opened(self, disk: SimulatedDisk) -> AsyncAgentSessionManager:
        seed = self._chance.randrange(10**6)
        return opened(disk.open(), self._say, tools=[self._write()], seed=seed, clock=self._clock)

    def _write(self) -> Tool:
        clock = self._clock

        @tool
        async def write(context: ToolContext, token: int, think: float, act: float) -> str:
            """Think, then write with the token."""
            await asyncio.sleep(think)
            began_at = clock.now()
            index = len(self.attempts)
            self.attempts.append(Attempt(token, began_at, entered=False))
            with context.guard(LOCK, token):
                self.attempts[index] = Attempt(token, began_at, entered=True)
                await asyncio.sleep(act)
                self.attempts[index] = Attempt(token, began_at, entered=True, wrote_at=clock.now())
            return "written"

        return write

    def _say(self, request: ModelRequest) -> Answer | str:
        number = round_of(request)
        chance = random.Random(f"{self._seed} {request.agent_id} {prompt_of(request)} {number}")
        tokens = [int(found) for text in results_of(request) for found in _TOKEN.findall(text)]
        if number > chance.randint(3, 7):
            return "done"
        choice = chance.random()
        if not tokens or choice < 0.15:
            return call(
                "acquire_lock", name=LOCK, ttl_seconds=chance.uniform(1, 15), wait_seconds=chance.uniform(5, 60)
            )
        if choice < 0.75:
            token = tokens[-1] if chance.random() < 0.7 else chance.choice(tokens)
            return call("write", token=token, think=chance.uniform(0, 12), act=chance.choice((0.0, 0.5, 4.0, 9.0)))
        if choice < 0.9:
            return call("renew_lock", name=LOCK, ttl_seconds=chance.uniform(1, 15))
        return call("release_lock", name=LOCK)

    async def _fate(self, manager: AsyncAgentSessionManager, *, seconds: float) -> None:
        """What people do to the agents for so long."""
        for name in AGENTS:
            if name not in manager.active_sessions:
                await manager.create_agent(name, {"tools": TOOLS, "limits": {"max_concurrent_tasks": 2}})
        ends_at = manager._session.kernel.clock.now() + seconds
        people: set[asyncio.Task[None]] = set()
        try:
            while manager._session.kernel.clock.now() < ends_at:
                agent = self._chance.choice(AGENTS)
                people.add(asyncio.ensure_future(self._does(manager, agent, self._chance.random())))
                await asyncio.sleep(self._chance.uniform(0.2, 6))
        finally:
            for person in people:
                person.cancel()
            if people:
                await asyncio.wait(people)

    async def _does(self, manager: AsyncAgentSessionManager, agent: str, choice: float) -> None:
        if choice < 0.45:
            await _tried(manager.send_task(agent, f"work {self._chance.random()}"))
        elif choice < 0.6:
            await _tried(manager.pause_agent(agent))
            await asyncio.sleep(self._chance.uniform(0, 12))
            await _tried(manager.resume_agent(agent))
        elif choice < 0.65:
            await _tried(manager.interrupt_agent(agent))
            await _tried(manager.resume_agent(agent))
        elif choice < 0.7:
            await _tried(manager.stop_agent(agent))
            await _tried(manager.start_agent(agent))
        elif choice < 0.9:
            await _tried(manager.break_lock(LOCK, "somebody was in the way"))
        else:
            await _tried(manager.acquire_lock(LOCK, ttl_seconds=3, wait_seconds=self._chance.uniform(0, 20)))

    def _judged(self) -> Figures:
        leases = self._leases()
        written = sorted((entry.wrote_at, entry.token) for entry in self.attempts if entry.wrote_at is not None)
        tokens = [token for _, token in written]
        assert tokens == sorted(tokens), f"a stale holder wrote: {written}"
        for entry in self.attempts:
            lease = leases[entry.token]
            stale = lease.is_over(entry.began_at)
            assert entry.entered != stale, f"{entry} of {lease} was {'let in' if stale else 'refused'}"
            if entry.wrote_at is not None:
                passed_on = [at for at in lease.ended if at < entry.wrote_at]
                assert not passed_on, f"{entry}: the lease had ended before the write, at {passed_on}"
        refused = sum(not entry.entered for entry in self.attempts)
        return Figures(len(self.attempts), len(written), refused)

    def _leases(self) -> dict[int, Lease]:
        leases: dict[int, Lease] = {}
        for note in self.log:
            if note.name == "lock.acquired":
                token = note.params["token"]
                assert token > max(leases, default=0), f"token {token} was given before"
                leases[token] = Lease(note.at, [(note.at, note.params["expiresAt"])], [])
            elif note.name == "lock.renewed":
                leases[note.params["token"]].expires.append((note.at, note.params["expiresAt"]))
            elif note.name in ("lock.released", "lock.expired", "lock.broken"):
                leases[note.params["token"]].ended.append(note.at)
        return leases


async def _tried(deed: Awaitable[object]) -> None:
    """Do it, if it can be done now."""
    with suppress(WhispererError):
        await deed

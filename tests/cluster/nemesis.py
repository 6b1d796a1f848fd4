"""Nodes whose machines, ways and database fail at random, and clients that work with them meanwhile.

`python -m tests.cluster.nemesis SEED [SEED…]` plays the schedules of these seeds; `--runs N --from SEED` so many.
A run that finds something prints its schedule and what the nodes told.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from ai_whisperer.client import Client
from tests.cluster.findings import Found, Told, calls_in, findings_in, wrong_with_places
from tests.cluster.herd import Herd, Node, Zygote
from tests.cluster.planted_bugs import PLANTED_BUGS
from tests.cluster.schedule import Act, Kind, Schedule, drawn
from tests.cluster.stage import TOKEN
from tests.cluster.users import GONE_FOR_NOW, Users
from tests.postgresql import NoPostgresqlError, Server, free_port, running_server

PATIENCE_SECONDS = 45.0
"""So long a run may take, from the first fault until all is done."""
_LOOK_SECONDS = 0.05
_DRAINED_SECONDS = 4.0
_AT_REST_SECONDS = 10.0
_RECONNECT_SECONDS = 60.0


class Database:
    """A PostgreSQL that can be started again where it was."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._stack = ExitStack()
        self.server = self._now = self._start()

    def restart(self, *, crash: bool, down_seconds: float) -> None:
        if crash:
            self._now.kill()
        self._stack.close()
        time.sleep(down_seconds)
        self._now = self._start()

    def stall(self, seconds: float) -> None:
        with self._now.stalled():
            time.sleep(seconds)

    def close(self) -> None:
        self._stack.close()

    def _start(self) -> Server:
        return self._stack.enter_context(running_server(folder=self._folder, port=self._port))


class Outcome(NamedTuple):
    """What a run found wrong, how long it took, and what happened in it."""

    findings: list[str]
    seconds: float
    figures: Counter[str]
    log: str


class Run:
    """One schedule, played."""

    def __init__(
        self,
        schedule: Schedule,
        database: Database,
        folder: Path,
        *,
        bug: str = "",
        patience_seconds: float | None = None,
    ) -> None:
        self._patience_seconds = patience_seconds or PATIENCE_SECONDS
        self._schedule = schedule
        self._database = database
        self._folder = folder
        self._bug = bug
        self._chance = random.Random(schedule.seed)
        self._findings: list[str] = []
        self._one_database = asyncio.Lock()

    async def play(self, zygote: Zygote, address: str) -> Outcome:
        began_at = time.monotonic()
        herd = Herd(zygote, self._folder, bug=self._bug)
        async with AsyncExitStack() as stack:
            await herd.start(stack, address, *self._schedule.nodes)
            for name, node in herd.nodes.items():
                node.may_be_condemned = self._schedule.may_condemn(name)
            clients = {name: await self._reached(stack, node) for name, node in herd.nodes.items()}
            users = Users(clients, self._chance)
            async with asyncio.timeout(self._patience_seconds):
                await users.set_up()
            try:
                async with asyncio.timeout(self._patience_seconds):
                    await self._under_faults(herd, users, address)
                    logs = await users.logs()
                    found, held = await _at_rest(herd, address)
            except TimeoutError:
                for node in herd.nodes.values():
                    node.signal(signal.SIGUSR1)
                await asyncio.sleep(_LOOK_SECONDS)
                self._findings.append(f"after {self._patience_seconds:g} s not all is done: {users.left}")
            else:
                condemned = {pid for node in herd.nodes.values() for pid in node.condemned}
                calls = calls_in(self._folder / "calls", without=condemned)
                witnessed = {step for step, _ in calls_in(self._folder / "calls", without=frozenset())}
                told = Told(users.accepted, users.followers, logs, calls, witnessed, held)
                self._findings += findings_in(found, told)
            self._findings += users.findings
        for node in herd.nodes.values():
            node.look()
            self._findings += node.bad_ends
        figures = users.figures + Counter(
            lives=sum(node.lives for node in herd.nodes.values()),
            condemned=sum(len(node.condemned) for node in herd.nodes.values()),
        )
        log = "\n".join(node.log for node in herd.nodes.values())
        return Outcome(self._findings, time.monotonic() - began_at, figures, log)

    async def _reached(self, stack: AsyncExitStack, node: Node) -> Client:
        client = Client(node.url, TOKEN, session_id="s0", reconnect_seconds=_RECONNECT_SECONDS)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    await client.open()
                except GONE_FOR_NOW:
                    await asyncio.sleep(_LOOK_SECONDS)
                else:
                    stack.push_async_callback(client.close)
                    return client

    async def _under_faults(self, herd: Herd, users: Users, address: str) -> None:
        """Let clients work while everything happens that is to happen, and until all is done."""
        async with asyncio.TaskGroup() as group:
            users.begin(group)
            acting = [group.create_task(self._act(act, herd, users)) for act in self._schedule.acts]
            await asyncio.gather(*acting)
            herd.heal()
            await users.done(lambda: _lengths(address))

    async def _act(self, act: Act, herd: Herd, users: Users) -> None:
        await asyncio.sleep(act.at)
        node = herd.nodes.get(act.node)
        if node is None:
            await self._act_on_database(act)
            return
        match act.kind:
            case Kind.KILL:
                node.down_seconds = act.seconds
                node.signal(signal.SIGKILL)
            case Kind.STOP:
                node.down_seconds = act.seconds
                node.signal(signal.SIGTERM)
            case Kind.FREEZE:
                node.signal(signal.SIGSTOP)
                await asyncio.sleep(act.seconds)
                node.signal(signal.SIGCONT)
            case Kind.MOVE:
                await users.move(act.session, act.node)
            case Kind.DRAIN:
                await users.drain(act.node, patience_seconds=_DRAINED_SECONDS)
                node.signal(signal.SIGTERM)
            case _:
                await self._act_on_way(act, node)

    async def _act_on_way(self, act: Act, node: Node) -> None:
        proxy = node.proxy
        match act.kind:
            case Kind.CUT:
                proxy.cut()
            case Kind.CUT_AFTER:
                proxy.cut_after = act.bytes
            case Kind.REFUSE:
                proxy.takes = False
                proxy.cut()
                await asyncio.sleep(act.seconds)
                proxy.takes = True
            case Kind.BLACKHOLE:
                proxy.hold()
                await asyncio.sleep(act.seconds)
                proxy.release()
            case Kind.DELAY:
                proxy.delay_seconds = act.delay_seconds
                await asyncio.sleep(act.seconds)
                proxy.delay_seconds = 0.0

    async def _act_on_database(self, act: Act) -> None:
        if not self._database.server.is_ours:
            return
        async with self._one_database:
            if act.kind is Kind.STALL_DATABASE:
                await asyncio.to_thread(self._database.stall, act.seconds)
            else:
                crash = act.kind is Kind.CRASH_DATABASE
                await asyncio.to_thread(self._database.restart, crash=crash, down_seconds=act.seconds)


async def _at_rest(herd: Herd, address: str) -> tuple[Found, dict[str, int]]:
    """What there is, and how many sessions nodes hold, once both agree; or what they are after a while."""
    until = time.monotonic() + _AT_REST_SECONDS
    while True:
        held = {name: await node.sessions_held() for name, node in herd.nodes.items()}
        found = await Found.at(address)
        if not any(wrong_with_places(found, held)) or time.monotonic() > until:
            return found, held
        await asyncio.sleep(_LOOK_SECONDS)


async def _lengths(address: str) -> dict[str, int] | None:
    """How long the logs are, once all tasks are over."""
    found = await Found.at(address)
    return {session_id: len(log) for session_id, log in found.logs.items()} if found.is_over else None


@contextmanager
def a_database() -> Iterator[Database]:
    with tempfile.TemporaryDirectory(prefix="whisperer-nemesis-", ignore_cleanup_errors=True) as folder:
        database = Database(Path(folder))
        try:
            yield database
        finally:
            database.close()


def played(schedule: Schedule, database: Database, *, bug: str = "", patience_seconds: float | None = None) -> Outcome:
    """What the schedule brings; with a bug that is planted in all nodes and in the database."""

    async def play(address: str, folder: Path) -> Outcome:
        zygote = await Zygote.begin()
        try:
            return await Run(schedule, database, folder, bug=bug, patience_seconds=patience_seconds).play(
                zygote, address
            )
        finally:
            await zygote.close()

    with tempfile.TemporaryDirectory() as folder, database.server.database() as address:
        if bug and (sql := PLANTED_BUGS[bug].sql):
            database.server.run(sql, address.rpartition("/")[2])
        return asyncio.run(play(address, Path(folder)))


def play_all(seeds: list[int], database: Database, *, tell: Callable[[str], None]) -> list[int]:
    """Play the schedules of the seeds; returns those that found something."""
    bad, took, figures = [], 0.0, Counter[str]()
    for number, seed in enumerate(seeds, start=1):
        schedule = drawn(seed)
        outcome = played(schedule, database)
        took, figures = took + outcome.seconds, figures + outcome.figures
        tell(f"{number}/{len(seeds)} seed {seed}: {outcome.seconds:.1f} s, {len(outcome.findings)} findings")
        if outcome.findings:
            bad.append(seed)
            found = "\n".join(f"  * {each}" for each in outcome.findings)
            tell(f"{schedule}\n{found}\n{outcome.log}")
    counted = ", ".join(f"{value} {name}" for name, value in sorted(figures.items()))
    tell(f"{len(seeds)} runs of {took / max(len(seeds), 1):.1f} s, {len(bad)} with findings {bad}; {counted}")
    return bad


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.nemesis")
    parser.add_argument("seeds", nargs="*", type=int)
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--from", type=int, default=1, dest="first")
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # what was started is ended all the same
    seeds = asked.seeds + list(range(asked.first, asked.first + asked.runs))
    try:
        with a_database() as database:
            return bool(play_all(seeds, database, tell=lambda line: print(line, flush=True)))
    except NoPostgresqlError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

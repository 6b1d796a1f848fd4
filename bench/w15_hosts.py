"""W15, hosts: the work of W2 on one, two and three servers on one PostgreSQL.

A session is what is placed, so each server has one, with a limited number of loops and as many tasks as each of the
others: twice the servers should do twice the work in the same time. Models take half a second, as quick ones do, so
that the loops wait and not the machine, which all servers and the database share.

Three servers that know nothing of each other, each with a database of its own, show what of the processor time a task
is the machine's: what they cost more than one is no cost of working together.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.probe import Probe, Sample, Samples, Stopwatch, in_fresh_process, values_of
from bench.raw_client import Caller
from bench.report import Figure, Target
from bench.served import Served
from bench.w14_nodes import address_of
from tests.cluster.stage import Node, nodes
from tests.postgresql import running_server

TITLE = "W15"
HOSTS = (1, 2, 3)
LOOPS = 32
TASKS = 320
"""Of each server: ten for each loop."""
LATENCY_SECONDS = 0.5
_AGENTS = 64
_WARM_UP_TASKS = 32
_APART = "3 hosts apart"
_LEAST = {2: 1.95, 3: 2.85}
_MOST_CPU = 1.1
_RULES = f"""
rules:
  - {{turn: 2, latency_seconds: {LATENCY_SECONDS}, text: Both facts are known.}}
  - {{latency_seconds: {LATENCY_SECONDS}, tools: [{{name: report_progress, arguments: {{percent: 50}}}}]}}
"""


def probes(*, quick: bool) -> list[Probe]:
    tasks = TASKS // 5 if quick else TASKS
    together = [Probe(_name(hosts), in_fresh_process(worked, hosts=hosts, tasks=tasks)) for hosts in HOSTS]
    return [*together, Probe(_APART, in_fresh_process(worked_apart, hosts=max(HOSTS), tasks=tasks))]


def figures(samples: Samples) -> list[Figure]:
    found = []
    one = values_of(samples, _name(1), "tasks_per_second")
    for hosts, least in _LEAST.items():
        more = values_of(samples, _name(hosts), "tasks_per_second")
        target = Target(least, of="raw", at_least=True)
        found.append(Figure(f"tasks on {hosts} hosts (raw: one)", "tasks/s", more, raw=one, target=target))
    for hosts in HOSTS[1:]:
        cpu, alone = (values_of(samples, _name(each), "cpu_ms") for each in (hosts, 1))
        limit = Target(_MOST_CPU, of="raw") if hosts == max(HOSTS) else None
        found.append(Figure(f"CPU a task on {hosts} hosts (raw: one)", "ms", cpu, raw=alone, target=limit))
    most = _name(max(HOSTS))
    for what, unit, name in (("CPU a task", "ms", "cpu_ms"), ("commits a task", "", "commits")):
        ours, apart = values_of(samples, most, name), values_of(samples, _APART, name)
        found.append(Figure(f"{what} on {most} (raw: {most}, each with a database of its own)", unit, ours, raw=apart))
    return found


def worked(folder: Path, *, hosts: int, tasks: int) -> Sample:
    names = [f"n{number}" for number in range(hosts)]
    with (
        running_server(durable=True, folder=folder) as server,
        server.database() as database,
        nodes(database, folder, *names, rules=_RULES) as found,
    ):
        return asyncio.run(_worked(found, tasks, [database]))


def worked_apart(folder: Path, *, hosts: int, tasks: int) -> Sample:
    with running_server(durable=True, folder=folder) as server, ExitStack() as stack:
        databases = [stack.enter_context(server.database()) for _ in range(hosts)]
        found = []
        for number, database in enumerate(databases):
            (folder / str(number)).mkdir()
            found += stack.enter_context(nodes(database, folder / str(number), f"n{number}", rules=_RULES))
        return asyncio.run(_worked(found, tasks, databases))


async def _worked(found: list[Node], tasks: int, databases: list[str]) -> Sample:
    async def committed() -> int:
        return sum([await _commits_at(each) for each in databases])

    sessions = [await _Session.begin(node) for node in found]
    await asyncio.gather(*(each.work(_WARM_UP_TASKS, "warm") for each in sessions))
    before = await committed()
    begun = sum(each.served.cpu_seconds() for each in sessions)
    watch = Stopwatch()
    await asyncio.gather(*(each.work(tasks, "task") for each in sessions))
    wall, _ = watch.read()
    cpu = sum(each.served.cpu_seconds() for each in sessions) - begun
    done = tasks * len(sessions)
    commits = (await committed() - before) / done
    return {"tasks_per_second": done / wall, "cpu_ms": 1000 * cpu / done, "commits": commits}


async def _commits_at(database: str) -> int:
    from ai_whisperer.store.postgresql.connecting import connect

    connection = await connect(database, name="counting")
    try:
        return int(await connection.fetchval("SELECT sum(commits) FROM writer"))
    finally:
        await connection.close()


class _Session:
    """The session of one server, and a caller there."""

    def __init__(self, node: Node, caller: Caller) -> None:
        self.served = Served(node.process.process.pid, address_of(node))
        self._id = node.name
        self._caller = caller

    @classmethod
    async def begin(cls, node: Node) -> _Session:
        caller = await Caller.connect(address_of(node))
        await caller.call("session.create", sessionId=node.name, limits={"max_concurrent_loops": LOOPS})
        for number in range(_AGENTS):
            await caller.call("async.createAgent", sessionId=node.name, agentId=f"agent-{number}")
        return cls(node, caller)

    async def work(self, tasks: int, name: str) -> None:
        """Send all tasks at once, and wait for each."""
        ids = [f"{name}-{number}" for number in range(tasks)]
        sent = (
            self._call("async.sendTask", agentId=f"agent-{number % _AGENTS}", prompt="Look up both.", taskId=task_id)
            for number, task_id in enumerate(ids)
        )
        await asyncio.gather(*sent)
        ended = await asyncio.gather(*(self._call("task.wait", taskId=task_id) for task_id in ids))
        if any(each["state"] != "completed" for each in ended):
            raise RuntimeError("a task was not completed")

    def _call(self, method: str, **params: object) -> asyncio.Future[Any]:
        return self._caller.call(method, sessionId=self._id, **params)


def _name(hosts: int) -> str:
    return f"{hosts} hosts"

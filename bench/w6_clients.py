"""The part of W6 with many clients: what they cost the agents, how soon they hear, what memory each one takes.

All clients subscribe to the session in which the agents work. Some never read: the system keeps little for them, so
that it is soon the server that has to keep the rest, or not. The same work is done without clients, with them, and
without them again.
"""

from __future__ import annotations

import asyncio
import statistics
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bench.probe import Probe, Sample, Samples, Stopwatch, in_fresh_process, values_of
from bench.raw_client import Caller, Listener, TimedListener
from bench.report import Figure, Target
from bench.served import Served, serve_ours, served

CLIENTS = 500
NEVER_READ = 25
AGENTS = 50
SECONDS = 5.0
LATENCIES = (0.5, 0.1)
"""Of a model request, of which each task has one. The first is what the targets are for, the other shows the limit."""

L = TypeVar("L", bound=Listener)

_KEPT_FOR_DEAF_BYTES = 4096
_TIMED_OF = 10
"""One client of so many is timed: to time them all would keep a core busy that the server needs."""
_AT_ONCE = 50
_SESSION = {"sessionId": "default"}


def probes(*, quick: bool) -> list[Probe]:
    return [
        Probe(_probe(latency), in_fresh_process(ours_clients, latency_seconds=latency))
        for latency in (LATENCIES[:1] if quick else LATENCIES)
    ]


def figures(samples: Samples) -> list[Figure]:
    found = []
    for latency in LATENCIES:
        probe = _probe(latency)
        if probe not in samples:
            continue
        told = round(statistics.median(values_of(samples, probe, "notifications")), -1)
        title = f"{CLIENTS} clients, {told:.0f} notifications/s"
        is_target = latency == LATENCIES[0]
        for name, unit, value, limit in (
            ("agents' throughput falls by", "%", "fall_percent", 10.0),
            ("delivery, p99", "ms", "p99_ms", 250.0),
            ("memory", "KiB/client", "kb", 64.0),
            ("delivery, median", "ms", "p50_ms", None),
            ("CPU", "% of a core", "cpu_percent", None),
        ):
            target = Target(limit) if limit is not None and is_target else None
            basis = values_of(samples, probe, "cpu_percent_alone") if value == "cpu_percent" else ()
            ours = values_of(samples, probe, value)
            found.append(Figure(f"{title}: {name}", unit, ours, floor=basis, target=target))
    return found


def ours_clients(folder: Path, *, latency_seconds: float, clients: int = CLIENTS) -> Sample:
    with served(serve_ours, folder, latency_seconds=latency_seconds) as server:
        return asyncio.run(_measure(server, tasks=round(SECONDS / latency_seconds), clients=clients))


@dataclass(frozen=True)
class _Worked:
    """What one run of the agents' work brought. The delays are those of all notifications to the timed clients."""

    tasks_a_second: float
    notifications_a_second: float
    cpu_percent: float
    cpu_percent_of_clients: float
    delays: Sequence[float]

    def delay_ms(self, share: float) -> float:
        return self.delays[int(len(self.delays) * share)] * 1000


async def _measure(server: Served, *, tasks: int, clients: int) -> Sample:
    caller = await Caller.connect(server.url)
    made = [{**_SESSION, "agentId": f"agent-{each}", "config": {}} for each in range(AGENTS)]
    await caller.call_all("async.createAgent", made)
    await work(server, caller, tasks=2)
    alone = await work(server, caller, tasks=tasks)
    resident = server.resident_bytes()
    timed = await make_listeners(TimedListener, server.url, (clients - NEVER_READ) // _TIMED_OF)
    reading = [*timed, *await make_listeners(Listener, server.url, clients - NEVER_READ - len(timed))]
    deaf = await make_listeners(Listener, server.url, NEVER_READ, receive_bytes=_KEPT_FOR_DEAF_BYTES)
    for each in deaf:
        each.transport.pause_reading()
    subscribed = server.resident_bytes()
    heard = await work(server, caller, tasks=tasks, listeners=reading)
    worked = server.resident_bytes()
    assert sum(each.gaps for each in reading) == 0, "a client missed or repeated a notification"
    for each in (*reading, *deaf):
        each.transport.abort()
    await asyncio.gather(*(each.closed for each in (*reading, *deaf)))
    again = await work(server, caller, tasks=tasks)
    without = statistics.mean((alone.tasks_a_second, again.tasks_a_second))
    return {
        "fall_percent": (1 - heard.tasks_a_second / without) * 100,
        "tasks": heard.tasks_a_second,
        "notifications": heard.notifications_a_second,
        "cpu_percent": heard.cpu_percent,
        "cpu_percent_alone": alone.cpu_percent,
        "cpu_percent_of_clients": heard.cpu_percent_of_clients,
        "p50_ms": heard.delay_ms(0.5),
        "p99_ms": heard.delay_ms(0.99),
        "kb_subscribed": (subscribed - resident) / clients / 1024,
        "kb": (worked - resident) / clients / 1024,
    }


async def make_listeners(kind: type[L], url: str, count: int, *, receive_bytes: int | None = None) -> list[L]:
    made: list[L] = []
    while len(made) < count:
        few = range(min(_AT_ONCE, count - len(made)))
        fresh = await asyncio.gather(*(kind.connect(url, receive_bytes=receive_bytes) for _ in few))
        await asyncio.gather(*(each.subscribe("default") for each in fresh))
        made += fresh
    return made


async def work(server: Served, caller: Caller, *, tasks: int, listeners: Sequence[Listener] = ()) -> _Worked:
    """Let every agent do so many tasks. They are handed out, and heard of, before the time begins."""
    agents = [{**_SESSION, "agentId": f"agent-{each}"} for each in range(AGENTS)]
    await caller.call_all("async.pauseAgent", agents)
    sent: list[dict[str, Any]] = []
    for number in range(tasks):
        sent += await caller.call_all("async.sendTask", [{**each, "prompt": f"Task {number}"} for each in agents])
    begin = await _all_heard(caller, listeners)
    timed = [each for each in listeners if isinstance(each, TimedListener)]
    for each in timed:
        each.delays = array("d")
    cpu, watch = server.cpu_seconds(), Stopwatch()
    await caller.call_all("async.resumeAgent", agents)
    last = [{**_SESSION, "taskId": each["taskId"], "timeoutSeconds": 600} for each in sent[-AGENTS:]]
    await caller.call_all("task.wait", last)
    cpu, cpu_of_clients = server.cpu_seconds() - cpu, watch.read()[1]
    end = await _all_heard(caller, listeners)
    done = (await caller.call("task.list", **_SESSION, limit=len(sent)))["tasks"]
    assert all(each["state"] == "completed" for each in done)
    seconds = max(each["finishedAt"] for each in done) - min(each["startedAt"] for each in done)
    return _Worked(
        tasks_a_second=len(sent) / seconds,
        notifications_a_second=(end - begin) / seconds,
        cpu_percent=cpu / seconds * 100,
        cpu_percent_of_clients=cpu_of_clients / seconds * 100,
        delays=sorted(delay for each in timed for delay in each.delays),
    )


async def _all_heard(caller: Caller, listeners: Sequence[Listener]) -> int:
    """The number of the last notification, once everybody who reads has it."""
    last = (await caller.call("async.getAgentStates", **_SESSION))["last_seq"]
    while any(each.seq < last for each in listeners):
        await asyncio.sleep(0.01)
        assert not any(each.closed.done() for each in listeners), "a client that reads was closed"
    return int(last)


def _probe(latency_seconds: float) -> str:
    return f"clients, {latency_seconds} s"

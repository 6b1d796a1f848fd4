"""W14, nodes: what it costs a client to be at another node than its session, and what its followers there cost.

Two real servers on one PostgreSQL. Requests to the node that has the session alternate with the same over the other
one. Then many clients of the other node follow the session while its agent works.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.probe import Probe, Sample, Samples, in_fresh_process, values_of
from bench.raw_client import Caller, Listener
from bench.report import Figure, Target
from bench.served import Served
from tests.cluster.stage import TOKEN, Node, nodes
from tests.postgresql import running_server

TITLE = "W14"
REQUESTS = 1_000
FOLLOWERS = 475
TASKS = 60
_AT_ONCE = 50
_SESSION = {"sessionId": "s"}


def probes(*, quick: bool) -> list[Probe]:
    part = 10 if quick else 1
    return [
        Probe("passed on", in_fresh_process(passed_on, requests=REQUESTS // part)),
        Probe("followed", in_fresh_process(followed, followers=FOLLOWERS // part, tasks=TASKS // part)),
    ]


def figures(samples: Samples) -> list[Figure]:
    found = []
    for what in ("read", "mail"):
        direct, far = (values_of(samples, "passed on", f"{what}_{way}") for way in ("direct", "far"))
        target = Target(2.5, of="raw")
        found.append(Figure(f"{what}, over another node, median", "ms", far, raw=direct, target=target))
    feeds = values_of(samples, "followed", "feeds")
    found.append(Figure(f"{FOLLOWERS} followers at another node: feeds of the session", "", feeds, target=Target(1.0)))
    alone, cpu = (values_of(samples, "followed", name) for name in ("cpu_alone", "cpu"))
    found.append(Figure("the same: CPU of the node of the session", "ms/task", cpu, raw=alone))
    return found


@contextmanager
def pair(folder: Path) -> Iterator[list[Node]]:
    """Two nodes on a database of their own."""
    with (
        running_server(durable=True, folder=folder) as server,
        server.database() as database,
        nodes(database, folder, "a", "b") as found,
    ):
        yield found


def passed_on(folder: Path, *, requests: int) -> Sample:
    with pair(folder) as (a, b):
        return asyncio.run(_passed_on(a, b, requests))


def followed(folder: Path, *, followers: int, tasks: int) -> Sample:
    with pair(folder) as (a, b):
        return asyncio.run(_followed(a, b, followers, tasks))


async def _callers(a: Node, b: Node) -> list[Caller]:
    """A caller at each node; the session is at the first."""
    callers = [await Caller.connect(address_of(node)) for node in (a, b)]
    await callers[0].call("session.create", **_SESSION)
    await callers[0].call("async.createAgent", **_SESSION, agentId="ann")
    await callers[0].call("async.createAgent", **_SESSION, agentId="bob", config={}, autoStart=False)
    return callers


async def _passed_on(a: Node, b: Node, requests: int) -> Sample:
    direct, far = await _callers(a, b)
    calls = {
        "read": ("async.getAgentStates", _SESSION),
        "mail": ("mail.send", {**_SESSION, "to": "bob", "subject": "Hello", "body": "word " * 40}),
    }
    took: dict[str, list[float]] = {}
    for what, (method, params) in calls.items():
        for number in range(requests + 20):
            for way, caller in (("direct", direct), ("far", far)):
                begun = time.perf_counter()
                await caller.call(method, **params)
                if number >= 20:
                    took.setdefault(f"{what}_{way}", []).append(1000 * (time.perf_counter() - begun))
    return {name: statistics.median(each) for name, each in took.items()}


async def _followed(a: Node, b: Node, followers: int, tasks: int) -> Sample:
    direct, far = await _callers(a, b)
    host = Served(a.process.process.pid, address_of(a))
    await _work(direct, tasks)
    begun = host.cpu_seconds()
    await _work(far, tasks)
    alone = host.cpu_seconds() - begun
    listeners = []
    for first in range(0, followers, _AT_ONCE):
        some = [await Listener.connect(address_of(b)) for _ in range(first, min(first + _AT_ONCE, followers))]
        await asyncio.gather(*(each.subscribe("s") for each in some))
        listeners += some
    sent, seq, begun = _sent(a), listeners[0].seq, host.cpu_seconds()
    await _work(far, tasks)
    cpu = host.cpu_seconds() - begun
    last = (await direct.call("events.list", **_SESSION, limit=1))["lastSeq"]
    while any(each.seq < last for each in listeners):  # noqa: ASYNC110 - they count, and tell nobody
        await asyncio.sleep(0.05)
    if any(each.gaps for each in listeners):
        raise RuntimeError("somebody was not told everything")
    feeds = (_sent(a) - sent) / (last - seq)
    return {"feeds": feeds, "cpu": 1000 * cpu / tasks, "cpu_alone": 1000 * alone / tasks}


async def _work(caller: Caller, tasks: int) -> None:
    for _ in range(tasks):
        task = await caller.call("async.sendTask", **_SESSION, agentId="ann", prompt="go")
        await caller.call("task.wait", **_SESSION, taskId=task["taskId"])


def address_of(node: Node) -> str:
    """Where a raw client connects to it, and hears only what it asks for."""
    return f"{node.url.replace('http', 'ws', 1).removesuffix('/ws')}/ws?token={TOKEN}&notifications=explicit"


def _sent(node: Node) -> float:
    """How many notifications the node has sent to clients, and to other nodes for theirs."""
    page = node.url.replace("ws", "http", 1).removesuffix("/ws")
    asking = urllib.request.Request(f"{page}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})  # noqa: S310
    with urllib.request.urlopen(asking) as answer:  # noqa: S310
        (found,) = re.findall(r"^whisperer_notifications_sent_total (\S+)$", answer.read().decode(), re.MULTILINE)
    return float(found)

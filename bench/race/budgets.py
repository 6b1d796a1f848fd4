"""Budgets for a server of agents, measured at ours alone: the other entrants are libraries without one.

The model is fake and takes a fixed time, so that what is above that time is the server's own.
"""

from __future__ import annotations

import asyncio
import json
import math
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ai_whisperer.domain.conversation import Answer, ToolCall, ToolTurn
from ai_whisperer.models.base import ModelRequest, StreamEvent
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings
from bench.probe import Sample, in_fresh_process
from bench.raw_client import Caller, Listener
from bench.served import Served, ready, serve_ours, served
from bench.w6_clients import AGENTS, make_listeners, work
from bench.w6_server import RECONNECTS, ours_reconnects

SUB_AGENTS = 8
CONVERSATIONS = 16
LISTED = 2_000
LISTINGS = 40
HEALTH_REQUESTS = 400
LATENCY_SECONDS = 0.5

_SESSION = {"sessionId": "default"}
_STALLED_RECEIVE_BYTES = 4096


@dataclass(frozen=True)
class Budget:
    """What was allowed and what it took."""

    name: str
    unit: str
    limit: float
    measured: float

    @property
    def is_met(self) -> bool:
        return self.measured <= self.limit

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.is_met}


def markdown(found: Sequence[Budget]) -> str:
    lines = ["| budget | allowed | measured | met |", "|---|---:|---:|---|"]
    for each in found:
        allowed, measured = (f"{value:.4g} {each.unit}" for value in (each.limit, each.measured))
        lines.append(f"| {each.name} | {allowed} | {measured} | {'yes' if each.is_met else 'NO'} |")
    return "\n".join(lines)


def taken(folder: Path, *, quick: bool = False) -> list[Budget]:
    """Measure them all, each with a server of its own."""

    def take(function: Callable[..., Any], **values: Any) -> Sample:
        with tempfile.TemporaryDirectory(prefix="race-", dir=folder) as place:
            return in_fresh_process(function, **values)(Path(place))

    listed = LISTED // 10 if quick else LISTED
    team, talks, health = take(sub_agents), take(conversations), take(health_under_load)
    return [
        Budget(f"{SUB_AGENTS} sub-agents, in proportion to one", "x", 1.5, team["ratio"]),
        Budget(f"{CONVERSATIONS} conversations at once, in proportion to one", "x", 4.0, talks["ratio"]),
        Budget("health under load, p95", "ms", 50.0, health["p95_ms"]),
        Budget("health under load, p99", "ms", 150.0, health["p99_ms"]),
        Budget(f"descriptors left after {RECONNECTS} reconnects", "files", 16.0, take(ours_reconnects)["descriptors"]),
        Budget("memory for one client that never reads", "MB", 150.0, take(stalled_client)["mb"]),
        Budget(f"{listed:,} conversations listed, p95", "s", 0.5, take(listing, sessions=listed)["p95"]),
    ]


class _TeamModel:
    """A leader delegates to as many as its prompt says, at once; the others take their time and answer."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        answer: Answer | str = "Done."
        if request.agent_id != "leader":
            await asyncio.sleep(LATENCY_SECONDS)
        elif not any(isinstance(turn, ToolTurn) for turn in request.turns):
            count = int(str(getattr(request.turns[-1], "text", "")).rsplit(maxsplit=1)[-1])
            answer = Answer(tool_calls=tuple(_delegation(request, number) for number in range(count)))
        async for event in FunctionModel(lambda _: answer).stream(request):
            yield event

    async def close(self) -> None:
        """There is nothing to close."""


def _delegation(request: ModelRequest, number: int) -> ToolCall:
    arguments = json.dumps({"to_agent": f"worker-{number}", "task": "Do your part."})
    return ToolCall(call_id=f"{request.step_id}-{number}", name="delegate_task", arguments=arguments)


async def serve_team(folder: Path) -> None:
    model = _TeamModel()
    async with running(Settings(data=folder, port=0), model_factory=lambda _: model) as server:
        await ready(server.address.page)


def sub_agents(folder: Path) -> Sample:
    """From the leader's task to the end of the last delegated one, with one sub-agent and with eight."""

    async def measure(url: str) -> Sample:
        caller = await Caller.connect(url)
        names = ["leader", *(f"worker-{number}" for number in range(SUB_AGENTS))]
        await caller.call_all("async.createAgent", [{**_SESSION, "agentId": name, "config": {}} for name in names])
        seconds = {}
        for count in (1, 1, SUB_AGENTS):
            told = await caller.call("async.sendTask", **_SESSION, agentId="leader", prompt=f"Delegate to {count}")
            await caller.call("task.wait", **_SESSION, taskId=told["taskId"], timeoutSeconds=60)
            tree = await _ended_parts(caller, told["taskId"], count)
            seconds[count] = max(each["finishedAt"] for each in tree) - min(each["createdAt"] for each in tree)
        return {"one": seconds[1], "all": seconds[SUB_AGENTS], "ratio": seconds[SUB_AGENTS] / seconds[1]}

    with served(serve_team, folder) as server:
        return asyncio.run(measure(server.url))


async def _ended_parts(caller: Caller, task_id: str, count: int) -> list[dict[str, Any]]:
    """The leader's task and those that it delegated, once all have ended."""
    while True:
        tasks = (await caller.call("task.tree", **_SESSION, taskId=task_id))["tasks"]
        parts = [each for each in tasks if each["agentId"].startswith("worker") or each["taskId"] == task_id]
        if len(parts) == count + 1 and all(each.get("finishedAt") for each in parts):
            return parts
        await asyncio.sleep(0.005)


def conversations(folder: Path) -> Sample:
    """A task in each of sixteen sessions at once, beside one alone."""

    async def measure(url: str) -> Sample:
        caller = await Caller.connect(url)
        talks = [{"sessionId": f"talk-{number}"} for number in range(CONVERSATIONS)]
        await caller.call_all("session.create", talks)
        agents = [{**talk, "agentId": "agent"} for talk in talks]
        await caller.call_all("async.createAgent", [{**agent, "config": {}} for agent in agents])

        async def run(some: Sequence[dict[str, Any]]) -> float:
            begin = time.perf_counter()
            sent = await caller.call_all("async.sendTask", [{**each, "prompt": "Begin."} for each in some])
            waits = [
                {"sessionId": each["sessionId"], "taskId": told["taskId"], "timeoutSeconds": 60}
                for each, told in zip(some, sent, strict=True)
            ]
            await caller.call_all("task.wait", waits)
            return time.perf_counter() - begin

        await run(agents)
        one = await run(agents[:1])
        every = await run(agents)
        return {"one": one, "all": every, "ratio": every / one}

    with served(serve_ours, folder, latency_seconds=LATENCY_SECONDS) as server:
        return asyncio.run(measure(server.url))


def health_under_load(folder: Path) -> Sample:
    """`/healthz` on a new connection each time, while fifty agents work and twenty clients follow them."""

    async def measure(server: Served) -> Sample:
        caller, _ = await _busy(server, listening=20)
        working = asyncio.create_task(work(server, caller, tasks=60))
        address = urlsplit(server.url)
        taken_ms: list[float] = []
        while len(taken_ms) < HEALTH_REQUESTS and not working.done():
            begin = time.perf_counter()
            await _get_health(str(address.hostname), int(address.port or 0))
            taken_ms.append((time.perf_counter() - begin) * 1000)
            await asyncio.sleep(0.005)
        await working
        taken_ms.sort()
        return {"p95_ms": _share(taken_ms, 0.95), "p99_ms": _share(taken_ms, 0.99), "requests": len(taken_ms)}

    with served(serve_ours, folder, latency_seconds=0.1) as server:
        return asyncio.run(measure(server))


async def _busy(server: Served, *, listening: int) -> tuple[Caller, list[Listener]]:
    """A server with agents that have worked before, and clients that follow them."""
    caller = await Caller.connect(server.url)
    made = [{**_SESSION, "agentId": f"agent-{number}", "config": {}} for number in range(AGENTS)]
    await caller.call_all("async.createAgent", made)
    await work(server, caller, tasks=20)
    return caller, await make_listeners(Listener, server.url, listening)


async def _get_health(host: str, port: int) -> None:
    reading, writing = await asyncio.open_connection(host, port)
    writing.write(f"GET /healthz HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
    answer = await reading.read()
    assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
    writing.close()


def stalled_client(folder: Path) -> Sample:
    """What the server's resident set grows by while one client has subscribed, never reads, and 50 agents work."""

    async def measure(server: Served) -> Sample:
        caller, _ = await _busy(server, listening=0)
        (deaf,) = await make_listeners(Listener, server.url, 1, receive_bytes=_STALLED_RECEIVE_BYTES)
        deaf.transport.pause_reading()
        before = server.resident_bytes()
        heard = await work(server, caller, tasks=60)
        grown = server.resident_bytes() - before
        deaf.transport.abort()
        return {"mb": max(0.0, grown / 2**20), "notifications_a_second": heard.notifications_a_second}

    with served(serve_ours, folder, latency_seconds=0.1) as server:
        return asyncio.run(measure(server))


def listing(folder: Path, *, sessions: int) -> Sample:
    async def measure(url: str) -> Sample:
        caller = await Caller.connect(url)
        made = [f"session-{number}" for number in range(sessions)]
        await caller.call_all("session.create", [{"sessionId": each, "title": f"About {each}"} for each in made])
        await caller.call_all(
            "async.createAgent", [{"sessionId": each, "agentId": "agent", "config": {}} for each in made]
        )
        seconds = []
        for _ in range(LISTINGS):
            begin = time.perf_counter()
            found = await caller.call("session.list")
            seconds.append(time.perf_counter() - begin)
            assert len(found["sessions"]) == sessions + 1
        return {"p95": _share(sorted(seconds), 0.95)}

    with served(serve_ours, folder) as server:
        return asyncio.run(measure(server.url))


def _share(ordered: Sequence[float], share: float) -> float:
    """The value that so large a share of the values does not exceed."""
    return ordered[math.ceil(len(ordered) * share) - 1]

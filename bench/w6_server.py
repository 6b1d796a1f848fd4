"""W6, the server: requests on one connection, many sessions, reconnects, and how long it takes to start.

The floor of a request is an echo server of the same stack, with the same settings, that takes the JSON apart and sends
it back. What 500 clients at once cost is measured in `w6_clients`.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ai_whisperer import AsyncAgentSessionManager
from bench import w6_clients
from bench.probe import Probe, Sample, Samples, in_fresh_process, values_of
from bench.raw_client import Caller, Pump, request, text_frame
from bench.report import Figure, Target
from bench.served import serve_echo, serve_ours, served, started

TITLE = "W6"
AGENTS = 3
STORED_AGENTS = 10_000
SESSIONS = 2_000
RECONNECTS = 100
REQUESTS = 600
SLICES = 7
"""Of so many requests each; a queue takes 10,000 tasks."""
WINDOWS = {"one at a time": 1, "pipelined": 64}

_SESSION = {"sessionId": "default"}
_CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "echo": ("server.info", {}),
    "server.info": ("server.info", {}),
    "async.getAgentStates": ("async.getAgentStates", _SESSION),
    "async.sendTask": ("async.sendTask", {"sessionId": "writes", "agentId": "agent-0", "prompt": "Say something."}),
}


def probes(*, quick: bool) -> list[Probe]:
    share = 5 if quick else 1
    return [
        Probe("rates", in_fresh_process(rates, slices=1 if quick else SLICES)),
        Probe("sessions", in_fresh_process(ours_sessions, sessions=SESSIONS // share)),
        Probe("reconnects", in_fresh_process(ours_reconnects)),
        Probe("start", in_fresh_process(ours_start, agents=0)),
        Probe("start many", in_fresh_process(ours_start, agents=STORED_AGENTS // share)),
        *w6_clients.probes(quick=quick),
    ]


def figures(samples: Samples) -> list[Figure]:
    found = []
    for window in WINDOWS:
        for name in _CALLS:
            if name != "echo":
                rate, cpu = (
                    [values_of(samples, "rates", f"{each}, {window}{what}") for each in (name, "echo")]
                    for what in ("", ": CPU")
                )
                target = Target(0.5, at_least=True, of="raw") if name != "async.sendTask" else None
                found += [
                    Figure(f"{name}, {window} (raw: echo)", "1/s", rate[0], raw=rate[1], target=target),
                    Figure(f"{name}, {window}: CPU of a request (raw: echo)", "µs", cpu[0], raw=cpu[1]),
                ]
    listed = values_of(samples, "sessions", "seconds")
    count = int(samples["sessions"][0]["sessions"])
    kept = int(samples["start many"][0]["agents"])
    return [
        *found,
        Figure(f"session.list of {count}", "s", listed, target=Target(0.5)),
        Figure(
            f"descriptors left after {RECONNECTS} reconnects",
            "files",
            values_of(samples, "reconnects", "descriptors"),
            target=Target(0.0),
            typical=max,
        ),
        Figure("start", "s of CPU", values_of(samples, "start", "cpu"), target=Target(1.5)),
        Figure(f"start, {kept} agents stored", "s of CPU", values_of(samples, "start many", "cpu"), target=Target(3.0)),
        *w6_clients.figures(samples),
    ]


def rates(folder: Path, *, slices: int) -> Sample:
    """Both servers are there at the same time and asked in turn, slice by slice; the median slice counts."""
    taken: dict[str, list[float]] = {}
    with served(serve_echo, folder) as echo, served(serve_ours, folder) as ours:
        asyncio.run(_make_agents(ours.url))
        for each in range(-1, slices):
            for window, on_the_way in WINDOWS.items():
                for name, (method, params) in _CALLS.items():
                    server = echo if name == "echo" else ours
                    frame = text_frame(request(method, params, request_id=1))
                    cpu = server.cpu_seconds()
                    rate = asyncio.run(_pump(server.url, frame, requests=REQUESTS, on_the_way=on_the_way))
                    cpu = (server.cpu_seconds() - cpu) / REQUESTS
                    if each >= 0:
                        taken.setdefault(f"{name}, {window}", []).append(rate)
                        taken.setdefault(f"{name}, {window}: CPU", []).append(cpu * 1e6)
    return {name: statistics.median(values) for name, values in taken.items()}


def ours_sessions(folder: Path, *, sessions: int) -> Sample:
    async def measure(url: str) -> float:
        caller = await Caller.connect(url)
        made = [f"session-{each}" for each in range(sessions)]
        await caller.call_all("session.create", [{"sessionId": each, "title": f"About {each}"} for each in made])
        agents = [{"sessionId": each, "agentId": "agent", "config": {}} for each in made]
        await caller.call_all("async.createAgent", agents)
        begin = time.perf_counter()
        listed = await caller.call("session.list")
        seconds = time.perf_counter() - begin
        assert len(listed["sessions"]) == sessions + 1
        return seconds

    with served(serve_ours, folder) as server:
        return {"seconds": asyncio.run(measure(server.url)), "sessions": sessions}


def ours_reconnects(folder: Path) -> Sample:
    async def reconnect(url: str, *, times: int) -> None:
        for _ in range(times):
            caller = await Caller.connect(url)
            await caller.call("events.subscribe", **_SESSION)
            caller.transport.abort()
            await caller.closed

    with served(serve_ours, folder) as server:
        asyncio.run(reconnect(server.url, times=1))
        before = _settled(server.descriptors)
        asyncio.run(reconnect(server.url, times=RECONNECTS))
        return {"descriptors": _settled(server.descriptors) - before}


def ours_start(folder: Path, *, agents: int) -> Sample:
    """With stored agents, one of them has a task to go on with, so that their session is opened before `ready`."""
    if agents:
        asyncio.run(_store_agents(folder, agents))
    begin = time.perf_counter()
    with started([sys.executable, "-m", "ai_whisperer", "serve", "--port", "0", "--data", str(folder)]) as server:
        return {"cpu": server.cpu_seconds(), "seconds": time.perf_counter() - begin, "agents": agents}


async def _pump(url: str, frame: bytes, *, requests: int, on_the_way: int) -> float:
    """Answers a second."""
    pump = await Pump.connect(url)
    begin = time.perf_counter()
    await pump.pump(frame, requests=requests, on_the_way=on_the_way)
    seconds = time.perf_counter() - begin
    pump.transport.abort()
    return requests / seconds


async def _make_agents(url: str) -> None:
    """Agents that take tasks but do not work on them, so that only the requests are measured."""
    caller = await Caller.connect(url)
    await caller.call("session.create", sessionId="writes")
    for session_id in ("default", "writes"):
        for each in range(AGENTS):
            agent_id = f"agent-{each}"
            await caller.call("async.createAgent", sessionId=session_id, agentId=agent_id, config={}, autoStart=False)


async def _store_agents(folder: Path, agents: int) -> None:
    async with AsyncAgentSessionManager(folder, session_id="default", model="scripted") as manager:
        await asyncio.gather(*(manager.create_agent(f"agent-{each}", {}) for each in range(agents)))
        await manager.pause_agent("agent-0")
        await manager.send_task("agent-0", "Wait for somebody who resumes you.")


def _settled(count: Callable[[], int]) -> int:
    """The count once it does not fall any more."""
    seen = count()
    for _ in range(20):
        time.sleep(0.1)
        if (now := count()) >= seen:
            break
        seen = now
    return seen

"""W9, the model path: what a streamed request costs the process that makes it, and a crowd of agents over HTTP.

The raw limit is bare aiohttp that takes each event apart with `json.loads`, and does nothing with it. The provider is
another process. What an event costs is told by answers of two lengths.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp

from ai_whisperer import AsyncAgentSessionManager, TaskRecord, TaskState
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolTurn, UserTurn
from ai_whisperer.models.base import ModelRequest, TextDelta
from ai_whisperer.models.catalog import resolve
from ai_whisperer.models.scripted import FunctionModel
from bench.probe import REPOSITORY, Probe, Sample, Samples, Stopwatch, in_fresh_process, values_of
from bench.report import Figure, Target

TITLE = "W9"
WAYS = ("one-by-one", "at-once")
SHORT, LONG = 10, 210
CALLS = 60
AGENTS = 1_000
TOOL_CALLS = 2
LATENCY_SECONDS = 0.05
PROMPT = f"use tool look_up {TOOL_CALLS} times"

Ask = Callable[[str], Awaitable[int]]
"""Makes a request to the model of that name and returns how many events with text came."""


def probes(*, quick: bool) -> list[Probe]:
    calls, agents = (CALLS // 6, AGENTS // 10) if quick else (CALLS, AGENTS)
    return [
        *(
            Probe(f"{side} {way}", in_fresh_process(function, way=way, calls=calls))
            for way in WAYS
            for side, function in (("floor", floor_path), ("ours", ours_path))
        ),
        Probe("in process", in_fresh_process(crowd_in_process, agents=agents)),
        Probe("over HTTP", in_fresh_process(crowd_over_http, agents=agents)),
    ]


def figures(samples: Samples) -> list[Figure]:
    found = []
    for way in WAYS:
        for what in ("call", "event"):
            basis, ours = (values_of(samples, f"{side} {way}", what) for side in ("floor", "ours"))
            target = Target(3.0, of="raw")
            name = {"call": f"a call with {SHORT} events", "event": "one more event"}[what]
            found.append(Figure(f"{way}: CPU of {name}", "µs", ours, raw=basis, target=target))
    inside, outside = (values_of(samples, name, "cpu_ms") for name in ("in process", "over HTTP"))
    found.append(Figure("a crowd over HTTP: CPU a task", "ms", outside, raw=inside, target=Target(2.5, of="raw")))
    failed = values_of(samples, "over HTTP", "failed")
    found.append(Figure("a crowd over HTTP: tasks that failed", "tasks", failed, target=Target(0.0), typical=max))
    return found


async def floor_path(folder: Path, *, way: str, calls: int) -> Sample:
    del folder
    with provider("bench.w9_server") as port:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        async with aiohttp.ClientSession() as session:

            async def ask(model: str) -> int:
                body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hi"}], "stream": True})
                texts, rest = 0, b""
                async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
                    async for piece in response.content.iter_any():
                        *lines, rest = (rest + piece).split(b"\n")
                        for line in lines:
                            if line.startswith(b"data: {"):
                                chunk = json.loads(line[6:])
                                texts += bool(chunk["choices"] and chunk["choices"][0]["delta"].get("content"))
                return texts

            return await _measured(ask, way, calls)


async def ours_path(folder: Path, *, way: str, calls: int) -> Sample:
    del folder
    with provider("bench.w9_server") as port:
        os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{port}/v1"
        models = {f"{way}-{events}": resolve(f"openai-chat:{way}-{events}") for events in (SHORT, LONG)}

        async def ask(model: str) -> int:
            request = ModelRequest(step_id="t1.1", agent_id="ada", system="", turns=(UserTurn(text="Hi"),))
            texts = 0
            async for event in models[model].stream(request):
                texts += type(event) is TextDelta
            return texts

        sample = await _measured(ask, way, calls)
        for model in models.values():
            await model.close()
        return sample


async def _measured(ask: Ask, way: str, calls: int) -> Sample:
    seconds = {}
    for events in (SHORT, LONG):
        for _ in range(5):
            assert await ask(f"{way}-{events}") == events - 2
        begun = time.process_time()
        for _ in range(calls):
            await ask(f"{way}-{events}")
        seconds[events] = (time.process_time() - begun) / calls
    event = (seconds[LONG] - seconds[SHORT]) / (LONG - SHORT)
    return {"event": event * 1e6, "call": seconds[SHORT] * 1e6}


async def crowd_in_process(folder: Path, *, agents: int) -> Sample:
    del folder
    model = FunctionModel(_answer, latency_seconds=LATENCY_SECONDS)
    async with AsyncAgentSessionManager(tools=[_look_up()], model_factory=lambda _: model) as manager:
        return await _crowd(manager, agents)


async def crowd_over_http(folder: Path, *, agents: int) -> Sample:
    del folder
    with provider("ai_whisperer.testing.model_server", "--latency", str(LATENCY_SECONDS)) as url:
        os.environ["OPENAI_BASE_URL"] = url
        async with AsyncAgentSessionManager(tools=[_look_up()], model="openai-chat:any") as manager:
            return await _crowd(manager, agents)


async def _crowd(manager: AsyncAgentSessionManager, agents: int) -> Sample:
    made = await asyncio.gather(*(manager.create_agent(f"agent-{each}") for each in range(agents)))

    async def run(agent: int) -> TaskRecord:
        return await manager.wait_task(await manager.send_task(made[agent], PROMPT))

    await asyncio.gather(*map(run, range(20)))
    watch = Stopwatch()
    ended = await asyncio.gather(*map(run, range(agents)))
    _, cpu = watch.read()
    failed = sum(task.state is not TaskState.COMPLETED for task in ended)
    return {"cpu_ms": cpu / agents * 1000, "failed": failed}


def _look_up() -> Callable[[int], Awaitable[str]]:
    async def look_up(n: int) -> str:
        """Look a fact up."""
        return f"fact {n}"

    return look_up


def _answer(request: ModelRequest) -> Answer | str:
    called = sum(isinstance(turn, ToolTurn) for turn in request.turns)
    if called == TOOL_CALLS:
        return f"done: {PROMPT}"
    return Answer(tool_calls=(ToolCall(call_id=request.step_id, name="look_up", arguments=f'{{"n": {called + 1}}}'),))


@contextmanager
def provider(module: str, *arguments: str) -> Iterator[str]:
    """A provider in a process of its own; yields the last word of its first line, where it is."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()

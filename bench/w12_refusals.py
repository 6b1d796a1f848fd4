"""W12, providers together: a crowd of agents at a provider that takes few requests at a time and refuses all others.

The provider is another process, and its log says what it took and what it refused. The raw limit is the time in which
it could answer all of them if it was never idle.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

from ai_whisperer import AsyncAgentSessionManager, TaskState
from bench.probe import Probe, Sample, Samples, in_fresh_process, values_of
from bench.report import Figure, Target
from bench.w9_models import provider

TITLE = "W12"
AGENTS = 512
AT_ONCE = 20
REQUESTS = 3
LATENCY_SECONDS = 0.05
WAYS = {"429": "", "429 with Retry-After": "1"}
FIRST_SECONDS = 1.0


def probes(*, quick: bool) -> list[Probe]:
    agents = AGENTS // 4 if quick else AGENTS
    return [
        Probe(way, in_fresh_process(crowd, agents=agents, retry_after=retry_after)) for way, retry_after in WAYS.items()
    ]


def figures(samples: Samples) -> list[Figure]:
    found = []
    for way in WAYS:
        values = {name: values_of(samples, way, name) for name in ("failed", "refused", "seconds", "least_seconds")}
        found.append(Figure(f"{way}: tasks that failed", "tasks", values["failed"], target=Target(0.0), typical=max))
        found.append(
            Figure(
                f"{way}: requests refused after the first second",
                "%",
                values["refused"],
                target=Target(5.0),
                typical=max,
            )
        )
        found.append(Figure(f"{way}: until all have ended", "s", values["seconds"], raw=values["least_seconds"]))
    return found


async def crowd(folder: Path, *, agents: int, retry_after: str) -> Sample:
    log = folder / "provider.log"
    options = ["--latency", str(LATENCY_SECONDS), "--most-at-once", str(AT_ONCE), "--log", str(log)]
    options += ["--retry-after", retry_after] if retry_after else []
    with provider("ai_whisperer.testing.model_server", *options) as url:
        os.environ["OPENAI_BASE_URL"] = url
        async with AsyncAgentSessionManager(tools=[_look_up], model="openai-chat:any") as manager:
            made = await asyncio.gather(*(manager.create_agent(f"agent-{each}") for each in range(agents)))
            begun = time.time()
            prompt = f"use tool _look_up {REQUESTS - 1} times"
            tasks = await asyncio.gather(*(manager.send_task(agent, prompt) for agent in made))
            ended = await asyncio.gather(*map(manager.wait_task, tasks))
            seconds = time.time() - begun
    failed = sum(task.state is not TaskState.COMPLETED for task in ended)
    answered = [line for line in map(json.loads, log.read_text("utf-8").splitlines()) if line["event"] == "answered"]
    late = [line["status"] for line in answered if line["at"] > begun + FIRST_SECONDS]
    refused = 100 * late.count(429) / max(len(late), 1)
    least = agents * REQUESTS * LATENCY_SECONDS / AT_ONCE
    return {"failed": failed, "refused": refused, "seconds": seconds, "least_seconds": least}


async def _look_up(n: int) -> str:
    """Look a fact up."""
    return f"fact {n}"

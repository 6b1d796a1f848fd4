"""W11, bad input: how late the event loop is for everybody while some agents' providers do what they should not.

A clock that wants to be woken every 5 ms tells by how much it is late; of that counts what the event loop itself worked
meanwhile, so that other programs make no difference. The raw limit is the same crowd without those
agents. Calm agents have their models in the process; the providers of the others are another process.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from contextlib import suppress
from pathlib import Path

from ai_whisperer import AsyncAgentSessionManager, TaskState, WhispererError
from ai_whisperer.models.base import Model
from ai_whisperer.models.catalog import resolve
from ai_whisperer.models.scripted import FunctionModel
from bench.probe import Probe, Sample, Samples, in_fresh_process, values_of
from bench.report import Figure, Target
from bench.w9_models import provider

TITLE = "W11"
CALM_AGENTS = 20
KINDS = ("flood", "stall", "odd", "calls", "callers")
SECONDS = 10.0
_TICK_SECONDS = 0.005
_LATENCY_SECONDS = 0.02
_RETRY = {"max_attempts": 2, "first_delay_seconds": 0.01, "stall_seconds": 0.5, "first_token_seconds": 0.5}


def probes(*, quick: bool) -> list[Probe]:
    seconds = SECONDS / 5 if quick else SECONDS
    return [
        Probe("calm", in_fresh_process(lag, kinds=(), seconds=seconds)),
        *(Probe(kind, in_fresh_process(lag, kinds=(kind,), seconds=seconds)) for kind in KINDS),
        Probe("all", in_fresh_process(lag, kinds=KINDS, seconds=seconds)),
    ]


def figures(samples: Samples) -> list[Figure]:
    calm, target = values_of(samples, "calm", "p99_ms"), Target(50.0)
    found = [
        Figure(f"{name}: lag of the event loop, p99", "ms", values_of(samples, name, "p99_ms"), raw=calm, target=target)
        for name in (*KINDS, "all")
    ]
    failed = values_of(samples, "all", "failed")
    found.append(Figure("all: tasks of the others that failed", "tasks", failed, target=Target(0.0), typical=max))
    return found


async def lag(folder: Path, *, kinds: tuple[str, ...], seconds: float) -> Sample:
    del folder
    with provider("bench.w11_server") as port:
        os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{port}/v1"
        calm_model = FunctionModel(lambda _: "done", latency_seconds=_LATENCY_SECONDS)

        def model_for(name: str) -> Model:
            return resolve(f"openai-chat:{name}") if name in KINDS else calm_model

        async with AsyncAgentSessionManager(model_factory=model_for, model="calm", tools=[note]) as manager:
            return await _measured(manager, kinds, seconds)


async def note() -> str:
    """Note something."""
    return "noted"


async def _measured(manager: AsyncAgentSessionManager, kinds: tuple[str, ...], seconds: float) -> Sample:
    limits = {"max_steps_per_task": 2_000, "max_outage_seconds": 0.1}
    calm = [f"calm-{number}" for number in range(CALM_AGENTS)]
    for name in calm:
        await manager.create_agent(name)
    for kind in kinds:
        supervision = {"max_failures": 10**6}
        await manager.create_agent(kind, {"model": kind, "retry": _RETRY, "limits": limits, "supervision": supervision})
    ends_at = asyncio.get_running_loop().time() + seconds
    work = [asyncio.create_task(_works(manager, name, ends_at)) for name in (*calm, *kinds)]
    late = await _late(ends_at)
    for task in work[len(calm) :]:
        task.cancel()
    failed = sum(await asyncio.gather(*work[: len(calm)]))
    await asyncio.gather(*work[len(calm) :], return_exceptions=True)
    return {"p99_ms": statistics.quantiles(late, n=100)[98] * 1000, "max_ms": max(late) * 1000, "failed": failed}


async def _works(manager: AsyncAgentSessionManager, name: str, ends_at: float) -> int:
    """One task after the other; returns how many failed."""
    failed = 0
    while asyncio.get_running_loop().time() < ends_at:
        with suppress(WhispererError):
            task = await manager.wait_task(await manager.send_task(name, "Go on."))
            failed += task.state is not TaskState.COMPLETED
    return failed


async def _late(ends_at: float) -> list[float]:
    """By how much a clock that ticks evenly is late each time, as far as the event loop worked meanwhile."""
    loop, late = asyncio.get_running_loop(), []
    while (due := loop.time() + _TICK_SECONDS) < ends_at:
        worked = time.thread_time()
        await asyncio.sleep(_TICK_SECONDS)
        late.append(min(max(loop.time() - due, 0.0), time.thread_time() - worked))
    return late

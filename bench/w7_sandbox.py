"""W7, the sandbox: what it costs to start a program in it, and what the event loop feels of programs that run wild.

Raw is the spawn of the sandbox itself: sandlock's `Sandbox.run` in the same process, and `bwrap` with the same
arguments; both are taken in turn with ours. Our own level, namespaces, is measured against sandlock's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from ai_whisperer.sandbox import bubblewrap, system
from ai_whisperer.sandbox import sandlock as level
from ai_whisperer.sandbox.base import Job
from ai_whisperer.sandbox.choosing import ChosenSandbox
from ai_whisperer.sandbox.launcher import KeptSandbox, Launcher
from ai_whisperer.sandbox.levels import STRONG
from bench.probe import Probe, Sample, Samples, in_fresh_process, values_of
from bench.report import Figure, Target

TITLE = "W7"
SPAWNS = 60
PAUSE_SECONDS = 0.02
HEARTBEAT_SECONDS = 0.005
PRINTED_BYTES = 10 << 30
IDLE_SECONDS = 2.0

_RAW = {"namespaces": "sandlock"}
"""A level that is our own is measured against the library that does the same."""

_BOMB = """
import os
while True:
    try:
        if os.fork() == 0: {each}
    except OSError: pass
"""
_WILD = {
    "a fork bomb": _BOMB.replace("{each}", "pass"),
    "a fork bomb of sessions": _BOMB.replace("{each}", "os.setsid()"),
    "a memory bomb": "import os\nfor _ in range(3): os.fork()\nkept = []\nwhile True: kept.append(b'x' * (8 << 20))",
    "an endless loop": "while True: pass",
    "much output": "import os\nfor _ in range({printed} >> 20): os.write(1, b'x' * (1 << 20))",
    "a background child": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)",
}
_ENDLESS = ("a fork bomb", "a fork bomb of sessions", "an endless loop")
_ENDLESS_SECONDS = 2.0
_MOST_SECONDS = 20.0


def probes(*, quick: bool) -> list[Probe]:
    return [
        Probe("spawn", in_fresh_process(spawns, count=SPAWNS // 6 if quick else SPAWNS)),
        Probe("wild", in_fresh_process(wild, printed=PRINTED_BYTES // 10 if quick else PRINTED_BYTES)),
    ]


def figures(samples: Samples) -> list[Figure]:
    found = [
        Figure(
            f"a program is started in {name} and ends (raw: {_RAW.get(name, name)} alone)",
            "ms",
            values_of(samples, "spawn", f"ours {name}"),
            raw=values_of(samples, "spawn", f"raw {name}"),
            target=Target(2.0, of="raw"),
        )
        for name in STRONG
        if f"ours {name}" in samples["spawn"][0]
    ]
    quiet = values_of(samples, "wild", "nothing")
    return found + [
        Figure(
            f"the event loop is held up by {name} (floor: by nothing)",
            "ms",
            values_of(samples, "wild", name),
            floor=quiet,
            target=Target(50.0),
            typical=max,
        )
        for name in _WILD
    ]


async def spawns(folder: Path, *, count: int) -> Sample:
    launcher = Launcher()
    job = _job(folder, "/bin/true")
    sample: dict[str, float] = {}
    raw: dict[str, Callable[[], object]] = {
        "namespaces": lambda: _sandlock_alone(job),
        "sandlock": lambda: _sandlock_alone(job),
        "bubblewrap": lambda: _bubblewrap_alone(job),
    }
    chosen = ChosenSandbox()
    holding = [each.level for each in await chosen.probe_all() if each.holds and each.level in STRONG]
    await chosen.close()
    for name in holding:
        sandbox = KeptSandbox(name, launcher)
        await sandbox.run(job)
        raw[name]()
        ours_ms: list[float] = []
        raw_ms: list[float] = []
        for _ in range(count):
            await asyncio.sleep(PAUSE_SECONDS)
            begin = time.perf_counter()
            await sandbox.run(job)
            ours_ms.append((time.perf_counter() - begin) * 1000)
            await asyncio.sleep(PAUSE_SECONDS)
            begin = time.perf_counter()
            raw[name]()
            raw_ms.append((time.perf_counter() - begin) * 1000)
        sample |= {f"ours {name}": statistics.median(ours_ms), f"raw {name}": statistics.median(raw_ms)}
    await launcher.close()
    return sample


async def wild(folder: Path, *, printed: int) -> Sample:
    """The longest that the event loop was held up while each of the programs ran."""
    sandbox = ChosenSandbox()
    await sandbox.choose()
    sample: dict[str, float] = {"nothing": await _gap_while(asyncio.sleep(IDLE_SECONDS))}
    for name, code in _WILD.items():
        seconds = _ENDLESS_SECONDS if name in _ENDLESS else _MOST_SECONDS
        job = _job(folder, system.interpreter(), "-c", code.replace("{printed}", str(printed)), seconds=seconds)
        sample[name] = await _gap_while(sandbox.run(job))
    await sandbox.close()
    return sample


async def _gap_while(work: Awaitable[object]) -> float:
    beating = asyncio.ensure_future(_longest_gap())
    await work
    beating.cancel()
    return await beating


async def _longest_gap() -> float:
    longest = 0.0
    try:
        while True:
            begin = time.perf_counter()
            await asyncio.sleep(HEARTBEAT_SECONDS)
            longest = max(longest, time.perf_counter() - begin - HEARTBEAT_SECONDS)
    except asyncio.CancelledError:
        return longest * 1000


def _job(folder: Path, *argv: str, seconds: float = _MOST_SECONDS) -> Job:
    own = folder / "own"
    own.mkdir(exist_ok=True)
    return Job(
        argv=argv,
        cwd=str(own),
        env={"PATH": system.PATH},
        readable=system.interpreter_folders(),
        writable=(str(own),),
        cpu_seconds=60,
        wall_seconds=seconds,
        flood_bytes=2 * PRINTED_BYTES,
    )


def _sandlock_alone(job: Job) -> None:
    import sandlock

    result = sandlock.Sandbox(**level.policy(job)).run(list(job.argv))
    if not result.success:
        raise RuntimeError(f"sandlock could not run {job.argv}: {result.error}")


def _bubblewrap_alone(job: Job) -> None:
    program = shutil.which("bwrap") or "bwrap"
    subprocess.run([program, *bubblewrap.arguments(job, is_root=os.geteuid() == 0), "--", *job.argv], check=True)

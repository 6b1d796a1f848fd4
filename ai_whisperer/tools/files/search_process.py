"""The process that searches: in the sandbox where one holds, else with limits alone. It runs our program only."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ai_whisperer.domain.conversation import ToolRun
from ai_whisperer.errors import NoSandboxError, ToolError
from ai_whisperer.sandbox import system
from ai_whisperer.sandbox.base import Job
from ai_whisperer.sandbox.levels import RLIMITS
from ai_whisperer.tools.files import searcher
from ai_whisperer.tools.workplace import Place, Workplace

_MOST_OUTPUT_BYTES = 16 << 20


async def searched(workplace: Workplace, place: Place, request: bytes, *, seconds: float) -> tuple[bytes, ToolRun]:
    """What the program wrote, for so long at most. When this ends in any way, the process is gone.

    Raises `SandboxError` if a sandbox holds on this machine but could not hold this.
    """
    argv = (system.interpreter(), "-I", "-S", "-X", "utf8", "-c", _program())
    limits = workplace.limits
    if workplace.sandbox is not None:
        job = Job(
            argv=argv,
            cwd="/",
            stdin=request,
            readable=(*system.interpreter_folders(), str(place.folder.path)),
            hidden=place.folder.hidden_paths,
            owned=(str(place.folder.path),) if place.name in workplace.made_by_the_runtime else (),
            wall_seconds=seconds,
            cpu_seconds=limits.max_tool_cpu_seconds,
            memory_bytes=limits.max_tool_memory_bytes,
            processes=limits.max_tool_processes,
            output_bytes=_MOST_OUTPUT_BYTES,
        )
        # Where no sandbox holds, code of agents is not run. This is none: it reads what the agent may read anyway. But
        # where one should hold and fails, nothing is run.
        with contextlib.suppress(NoSandboxError):
            outcome = await workplace.sandbox.run(job)
            return outcome.output, outcome.run
    began = time.monotonic()
    limited = (*argv, str(math.ceil(limits.max_tool_cpu_seconds)), str(limits.max_tool_memory_bytes))
    output = await _by_itself(limited, request, seconds=seconds)
    return output, ToolRun(sandbox=RLIMITS, wall_seconds=time.monotonic() - began)


async def _by_itself(argv: Sequence[str], request: bytes, *, seconds: float) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        env={},
        start_new_session=True,
    )
    output = bytearray()
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await _read(process, request, output)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return bytes(output)


async def _read(process: asyncio.subprocess.Process, request: bytes, output: bytearray) -> None:
    if process.stdin is None or process.stdout is None:
        raise ToolError("The search could not be started. Try again.")
    process.stdin.write(request)
    process.stdin.close()
    while len(output) < _MOST_OUTPUT_BYTES and (piece := await process.stdout.read(65_536)):
        output += piece


@cache
def _program() -> str:
    return Path(searcher.__file__).read_text(encoding="utf-8")

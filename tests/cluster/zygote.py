"""Starts nodes quickly: it has everything imported, and forks a process for each order that it reads.

An order is a line of JSON. It answers `started NUMBER PROCESS` and, when that process has ended, `ended NUMBER CODE`.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import msgspec

from ai_whisperer.cli.commands import serve  # noqa: F401 - imported before the forks
from ai_whisperer.cli.main import main
from ai_whisperer.cluster import joining  # noqa: F401 - as above
from ai_whisperer.models.base import ModelRequest, StreamEvent
from ai_whisperer.models.scripted import ScriptedModel
from ai_whisperer.server import serving
from ai_whisperer.server.gateway import gateway  # noqa: F401 - as above

from .planted_bugs import PLANTED_BUGS, put

_LOOK_SECONDS = 0.02


class Order(msgspec.Struct, kw_only=True):
    """A node to start: what it is given, where it writes to, where its model requests go, which bug is planted."""

    number: int
    arguments: list[str]
    errors: str
    calls: str
    bug: str = ""


def _run(order: Order) -> int:
    for number, path in ((1, order.errors), (2, order.errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    put(serving.RunningServer, "try_sandbox", _nothing)  # it takes long, and is no part of this
    _witness(order.calls)
    signal.signal(signal.SIGUSR1, _tell_tasks)
    if order.bug:
        PLANTED_BUGS[order.bug].plant()
    return main(order.arguments)


def _tell_tasks(*_: object) -> None:
    """Say what everything waits for: for a run that does not come to its end."""
    for task in asyncio.all_tasks():
        lines: list[str] = []
        waiting: Any = task.get_coro()
        while waiting is not None:
            frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
            if frame is not None:
                lines.append(f"{frame.f_code.co_qualname}:{frame.f_lineno}")
            waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
        print(f"waits: {task.get_name()}: {' > '.join(lines)}", file=sys.stderr, flush=True)


async def _nothing(_: object) -> None:
    """In place of something that takes long."""


def _witness(path: str) -> None:
    """Write down each model request as it begins, outside of what is committed."""
    stream, own = ScriptedModel.stream, os.getpid()
    calls = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def told(self: ScriptedModel, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        os.write(calls, f"{request.step_id} {time.time()} {own}\n".encode())
        async for event in stream(self, request):
            yield event

    put(ScriptedModel, "stream", told)


def _serve() -> None:
    numbers: dict[int, int] = {}
    orders = os.fdopen(0, "rb", buffering=0, closefd=False)  # nothing waits unseen in a buffer
    try:
        while True:
            ready, _, _ = select.select([0], [], [], _LOOK_SECONDS)
            if ready:
                line = orders.readline()
                if not line:
                    return
                order = msgspec.json.decode(line, type=Order)
                child = os.fork()
                if child == 0:
                    os._exit(_ended_with(order))
                numbers[child] = order.number
                print("started", order.number, child, flush=True)
            while numbers and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                print("ended", numbers.pop(ended[0]), os.waitstatus_to_exitcode(ended[1]), flush=True)
    finally:
        for pid in numbers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _ended_with(order: Order) -> int:
    try:
        code = _run(order)
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return code


if __name__ == "__main__":
    _serve()

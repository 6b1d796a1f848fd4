"""Starts servers quickly: it has everything imported, and forks a process for each order that it reads.

An order is a line of JSON. It answers with the id of the process and, when that has ended, with its exit code.
"""

from __future__ import annotations

import os
import sys

import msgspec

from ai_whisperer.cli import signals
from ai_whisperer.cli.commands import serve  # noqa: F401 - imported before the forks
from ai_whisperer.cli.main import main
from ai_whisperer.server import health, serving
from ai_whisperer.store.sqlite import committers

from .injection import Fault, Injection, install
from .planted_bugs import PLANTED_BUGS, put

CHECKPOINT_PAGES = 12
GRACE_SECONDS = 0.1
LAST_SECONDS = 0.6
STALLED_SECONDS = 0.15


class Order(msgspec.Struct, kw_only=True):
    """A server to start: what it is given, where it writes to, what fails in it, and which bug is planted."""

    arguments: list[str]
    stdout: str
    stderr: str
    fault: Fault | None = None
    bug: str | None = None
    counts: str | None = None


def _run(order: Order) -> int:
    for number, path in ((1, order.stdout), (2, order.stderr)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    os.setsid()
    committers.CHECKPOINT_PAGES = CHECKPOINT_PAGES
    committers.LAST_COMMIT_SECONDS = LAST_SECONDS
    signals.LAST_SECONDS = LAST_SECONDS
    health.STALLED_SECONDS = STALLED_SECONDS
    put(serving.RunningServer, "try_sandbox", _nothing)  # it takes long, and is no part of this
    injection = Injection(order.fault)
    files = install(injection)
    if order.bug is not None:
        PLANTED_BUGS[order.bug].plant()
    code = main(order.arguments)
    del files
    if order.counts is not None:
        with open(order.counts, "wb") as file:
            file.write(msgspec.json.encode(injection.counts))
    return code


async def _nothing(_: object) -> None:
    """In place of something that takes long."""


def _serve() -> None:
    for line in sys.stdin.buffer:
        order = msgspec.json.decode(line, type=Order)
        child = os.fork()
        if child == 0:
            sys.exit(_run(order))
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    _serve()

"""Starts workers quickly: it has everything imported, and forks a process for each order that comes over its socket.

A connection is the standard output of one worker. Its first line is `pid NUMBER`, its last `ended CODE`.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from .worker import Order, say, work

_LOOK_SECONDS = 0.01


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A worker to start, and where it writes what is wrong."""

    order: Order
    errors: str


def serve(path: Path) -> None:
    """Take orders until the standard input ends; then nothing that was started is left."""
    workers: dict[int, socket.socket] = {}
    heard: list[int | socket.socket] = [0]
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        heard.append(listening)
        print("ready", flush=True)
        try:
            while True:
                ready, _, _ = select.select(heard, [], [], _LOOK_SECONDS)
                if 0 in ready:
                    return
                if listening in ready:
                    connection, _ = listening.accept()
                    workers[_forked(connection, others=[listening, *workers.values()])] = connection
                while workers and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    with workers.pop(ended[0]) as connection, suppress(OSError):  # nobody may listen any more
                        connection.sendall(b"ended %d\n" % os.waitstatus_to_exitcode(ended[1]))
        finally:
            for pid in workers:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _forked(connection: socket.socket, *, others: Sequence[socket.socket]) -> int:
    """`others` are not for this worker: who waits for their end would wait for this one too."""
    with connection.makefile("rb") as file:
        start = msgspec.json.decode(file.readline(), type=Start)
    pid = os.fork()
    if pid == 0:
        os._exit(_run(start, connection, others))
    return pid


def _run(start: Start, connection: socket.socket, others: Sequence[socket.socket]) -> int:
    try:
        for each in others:
            each.close()
        os.dup2(connection.fileno(), 1)
        os.dup2(os.open(start.errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
        os.environ |= {"OPENAI_BASE_URL": start.order.model_url, "OPENAI_API_KEY": "none"}
        say(f"pid {os.getpid()}")
        asyncio.run(work(start.order))
    except BaseException:  # noqa: BLE001 - a process that ends so tells why, whatever it was
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

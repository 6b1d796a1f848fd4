"""The process from which keepers are forked: it has loaded what they need, and has nothing of the server.

`python -c "… main(descriptor)"`: it takes sockets over the one with that number and gives each to a keeper of its own.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket

from ai_whisperer.tools.sandbox import keeper


def main(descriptor: int) -> None:
    """Fork a keeper for every socket that comes; return when the server is gone."""
    with contextlib.suppress(ImportError, OSError, RuntimeError):
        import sandlock  # noqa: F401 - loaded once, for all keepers
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.disable()  # keepers live for one job; to collect would only copy the pages that they share
    gc.freeze()
    orders = socket.socket(fileno=descriptor)
    while True:
        sent, descriptors, _, _ = socket.recv_fds(orders, 1, 1)
        if not sent:
            return
        for each in descriptors:
            _fork_keeper(orders, each)


def _fork_keeper(orders: socket.socket, descriptor: int) -> None:
    if os.fork() == 0:
        try:
            orders.close()
            os.setsid()
            keeper.keep(socket.socket(fileno=descriptor))
        finally:
            os._exit(0)
    os.close(descriptor)

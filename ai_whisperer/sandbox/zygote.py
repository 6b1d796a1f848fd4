"""The process from which keepers are forked: it has loaded what they need, and has nothing of the server.

`python -c "… main(descriptor)"`: it takes sockets over the one with that number and gives each to a keeper of its own.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
from collections.abc import Sequence

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox import cgroups, family, keeper
from ai_whisperer.sandbox.wire import LEVEL_BYTES


def main(descriptor: int) -> None:
    """Fork a keeper for every socket that comes; return when the server is gone."""
    with contextlib.suppress(ImportError, OSError, RuntimeError):
        import sandlock  # noqa: F401 - loaded once, for all keepers
    with contextlib.suppress(SandboxError):  # each keeper says so again, to who can hear it
        family.adopt_orphans()
    cgroups.remove_left_over()
    woken, wake = socket.socketpair()
    wake.setblocking(False)  # noqa: FBT003 - the socket's own words
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    gc.disable()  # keepers live for one job; to collect would only copy the pages that they share
    gc.freeze()
    orders = socket.socket(fileno=descriptor)
    keepers: set[int] = set()
    while True:
        ready = select.select([orders, woken], [], [])[0]
        if woken in ready:
            woken.recv(1 << 12)
            _clear_up(keepers)
        if orders in ready:
            level, descriptors, _, _ = socket.recv_fds(orders, LEVEL_BYTES, 1)
            if not level:
                return
            for each in descriptors:
                keepers.add(_fork_keeper((orders, woken, wake), each, level.strip().decode()))


def _clear_up(keepers: set[int]) -> None:
    """Bury keepers that have ended. What becomes a child of this process then is of a job whose keeper was killed."""
    was_killed = False
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
            was_killed = was_killed or ended[0] not in keepers or ended[1] != 0
            keepers.discard(ended[0])
    if was_killed:
        cgroups.remove_left_over()
    family.kill_with_all_below([pid for pid in family.children(os.getpid()) if pid not in keepers])


def _fork_keeper(own: Sequence[socket.socket], descriptor: int, level: str) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)
            for each in own:
                each.close()
            os.setsid()
            keeper.keep(socket.socket(fileno=descriptor), level)
        finally:
            os._exit(0)
    os.close(descriptor)
    return pid

"""The process that keepers of sandboxes are forked from: whatever happens while it starts, nothing of it is left."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from ai_whisperer.sandbox.launcher import Launcher


class SlowLauncher(Launcher):
    """It starts its process when it is let, and keeps the sockets that it has made."""

    def __init__(self) -> None:
        super().__init__()
        self.let = threading.Event()
        self.has_started = threading.Event()
        self.made: list[socket.socket] = []

    def _restarted(self, level: str) -> socket.socket:
        self.let.wait(30)
        try:
            self.made.append(super()._restarted(level))
            return self.made[-1]
        finally:
            self.has_started.set()


def test_a_process_that_is_being_started_is_ended_by_close_though_nobody_waits_for_it_any_more() -> None:
    async def main() -> None:
        launcher = SlowLauncher()
        connecting = asyncio.create_task(launcher.connect("rlimits"))
        await asyncio.sleep(0)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        closing = asyncio.create_task(launcher.close())
        await asyncio.sleep(0)
        launcher.let.set()
        await closing
        assert await asyncio.to_thread(launcher.has_started.wait, 30)
        assert launcher._process is None
        assert [each.fileno() for each in launcher.made] == [-1]

    asyncio.run(main())


def test_whoever_waits_has_a_keeper_though_another_gave_up() -> None:
    async def main() -> None:
        launcher = SlowLauncher()
        launcher.let.set()
        impatient, patient = (asyncio.create_task(launcher.connect("rlimits")) for _ in range(2))
        await asyncio.sleep(0)
        impatient.cancel()
        (await patient).close()
        await launcher.close()
        assert launcher._process is None

    asyncio.run(main())

"""Being asked to leave."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Leaving:
    """Knows whether somebody has asked this process to leave, and how."""

    def __init__(self) -> None:
        self._asked: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()

    def ask(self, number: signal.Signals) -> None:
        if not self._asked.done():
            self._asked.set_result(number)

    async def asked(self) -> signal.Signals:
        """Wait until somebody asks."""
        return await asyncio.shield(self._asked)


@contextmanager
def until_asked_to_leave() -> Iterator[Leaving]:
    """Take Ctrl-C and SIGTERM as requests to leave, while the block runs."""
    loop = asyncio.get_running_loop()
    leaving = Leaving()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, leaving.ask, number)
    try:
        yield leaving
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)

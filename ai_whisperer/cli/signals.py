"""Being asked to leave: by Ctrl-C, by SIGTERM, or because the terminal was closed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ai_whisperer.cli.output import Output

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Leaving:
    """Knows whether somebody has asked this process to leave. Whoever asks twice has it leave at once."""

    def __init__(self, output: Output, sentence: str, at_once: Callable[[], None]) -> None:
        self._asked: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
        self._output = output
        self._sentence = sentence
        self._at_once = at_once

    def ask(self, number: signal.Signals) -> None:
        if self._asked.done():
            try:
                self._at_once()
            finally:
                os._exit(128 + number)  # as if it were killed: what was accepted is on disk, and all else may be lost
        self._asked.set_result(number)
        if self._output.as_json:
            return
        with suppress(OSError):  # the terminal may be gone
            self._output.note(f"{self._sentence} Once more leaves at once.")

    async def asked(self) -> signal.Signals:
        """Wait until somebody asks."""
        return await asyncio.shield(self._asked)


@contextmanager
def until_asked_to_leave(
    output: Output, sentence: str, *, at_once: Callable[[], None] = lambda: None
) -> Iterator[Leaving]:
    """Take signals as requests to leave while the block runs. The first is answered with the sentence.

    The second ends the process with 128 and its number; `at_once` is what must be done even then. A process that was
    told not to mind the end of its terminal (`nohup`) does not.
    """
    loop = asyncio.get_running_loop()
    leaving = Leaving(output, sentence, at_once)
    numbers = [each for each in _NUMBERS if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN]
    for number in numbers:
        loop.add_signal_handler(number, leaving.ask, number)
    try:
        yield leaving
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)

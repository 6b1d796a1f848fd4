"""Being asked to leave: by Ctrl-C, by SIGTERM, or because the terminal was closed.

Signals are taken by a thread that waits for nothing else: they are heard even while the event loop is held up, as by a
disk that does not answer, and a process that does not leave in time is ended by that thread.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from ai_whisperer.cli.output import Output
from ai_whisperer.cli.printable import as_json
from ai_whisperer.secrets import redacted

STUCK = 3
"""The exit code of a process that was asked to leave, or had to, and could not."""
LAST_SECONDS = 40.0
"""How much longer than the grace a process may take to leave before it is ended.

It is more than all that is waited for then takes together, each at its longest: the connections to MCP servers and the
end of their processes, the requests under way, those who have the logs of agents passed on, the last commit and the log
of the process.
"""

TROUBLED_SECONDS = 5.0
"""How much longer than the grace it may take if it is in trouble, as one whose disk does not answer."""

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AT_ONCE_SECONDS = 2.0
_LOOK_SECONDS = 1.0
_STDERR = 2
_STOP = b"\0"
_LOOK = b"\xff"


class Leaving:
    """Knows whether somebody has asked this process to leave. Whoever asks twice has it leave at once."""

    def __init__(self, output: Output, sentence: str, at_once: Callable[[], None]) -> None:
        self._asked: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
        self._output = output
        self._sentence = sentence
        self._at_once = at_once
        self.trouble: Callable[[], str | None] = lambda: None
        self.watchman: Watchman | None = None

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
            self._output.note(f"{self._sentence} A second signal ends it at once.")

    async def asked(self) -> signal.Signals:
        """Wait until somebody asks."""
        return await asyncio.shield(self._asked)

    def begin(self) -> None:
        """It leaves by itself, as something has failed: if it should do so in time, the time begins now."""
        if self.watchman is not None:
            self.watchman.begin()

    def last_words(self) -> str:
        """What is told of a process that has to be ended."""
        why = self.trouble()
        message = (
            f"The process could not exit in time, so it was killed.{f' {why}' if why else ''} Everything that was "
            "accepted is on disk and resumes at the next start."
        )
        if self._output.as_json:
            return as_json({"error": {"code": "stuck", "message": message}})
        return f"whisperer: {message}"


class Watchman:
    """The thread that hears signals, passes them on, and ends a process that does not leave in time."""

    def __init__(self, leaving: Leaving, *, numbers: Collection[signal.Signals], within_seconds: float | None) -> None:
        self._leaving = leaving
        self._numbers = numbers
        self._loop = asyncio.get_running_loop()
        self._within_seconds = within_seconds
        self._heard = 0
        self._ends_at: float | None = None
        self._patient_until = 0.0
        self._exit_code = STUCK
        self._reading, self._writing = socket.socketpair()
        self._writing.setblocking(False)  # noqa: FBT003
        threading.Thread(target=self._run, name="whisperer-signals", daemon=True).start()

    @property
    def descriptor(self) -> int:
        """Where the numbers of signals are to be written. Those that ask nobody to leave are skipped."""
        return self._writing.fileno()

    def begin(self) -> None:
        """From now on the time runs."""
        if self._within_seconds is not None and self._ends_at is None:
            self._ends_at = time.monotonic() + self._within_seconds
            self._patient_until = self._ends_at - LAST_SECONDS + TROUBLED_SECONDS
            self._writing.send(_LOOK)

    def close(self) -> None:
        """Hear no more. If the time runs it runs on: all that comes after this can hang as well."""
        self._writing.send(_STOP)

    def _run(self) -> None:
        hearing = True
        while hearing or self._ends_at is not None:
            if not select.select([self._reading], [], [], self._next_look())[0]:
                if self._is_over():
                    self._end()
                continue
            for number in self._reading.recv(64):
                if number == _STOP[0]:
                    hearing = False
                elif number in self._numbers and hearing:
                    self._hear(signal.Signals(number))
        self._reading.close()
        self._writing.close()

    def _next_look(self) -> float | None:
        """In how many seconds it is looked whether the time is over; None if no time runs."""
        if self._ends_at is None:
            return None
        now = time.monotonic()
        first = min(self._ends_at, max(self._patient_until, now + _LOOK_SECONDS))
        return max(first - now, 0.0)

    def _is_over(self) -> bool:
        now = time.monotonic()
        if self._ends_at is None or now >= self._ends_at:
            return self._ends_at is not None
        return now >= self._patient_until and self._leaving.trouble() is not None

    def _hear(self, number: signal.Signals) -> None:
        self._heard += 1
        self.begin()
        if self._heard > 1:
            self._exit_code = 128 + number
            self._ends_at = time.monotonic() + _AT_ONCE_SECONDS
        with suppress(RuntimeError):  # the event loop may be closed
            self._loop.call_soon_threadsafe(self._leaving.ask, number)

    def _end(self) -> None:
        if self._exit_code == STUCK and self._within_seconds is not None:
            with suppress(Exception):  # nobody may be there to read it
                _say(self._leaving.last_words())
        os._exit(self._exit_code)


def _say(sentence: str) -> None:
    """Write to stderr if that can be done at once. What Python has there may be locked by a thread that hangs."""
    if select.select([], [_STDERR], [], 0)[1]:
        os.write(_STDERR, f"{redacted(sentence)}\n".encode()[: select.PIPE_BUF])


@contextmanager
def until_asked_to_leave(
    output: Output, sentence: str, *, at_once: Callable[[], None] = lambda: None, within_seconds: float | None = None
) -> Iterator[Leaving]:
    """Take signals as requests to leave while the block runs. The first is answered with the sentence.

    The second ends the process with 128 and its number; `at_once` is what must be done even then. A process that was
    told not to mind the end of its terminal (`nohup`) does not. With `within_seconds` the process is ended with the
    code 3 if it still lives so long after it was first asked; that holds after the block, too.
    """
    leaving = Leaving(output, sentence, at_once)
    numbers = [each for each in _NUMBERS if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN]
    leaving.watchman = watchman = Watchman(leaving, numbers=numbers, within_seconds=within_seconds)
    before = signal.set_wakeup_fd(watchman.descriptor, warn_on_full_buffer=False)
    handlers = {number: signal.signal(number, lambda *_: None) for number in numbers}
    try:
        yield leaving
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        watchman.close()

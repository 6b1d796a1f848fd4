"""The store's own way to commit on virtual time: what its thread does is done on the event loop, some time later.

The code is the store's. Only the queue, the thread and the stopwatch that it is given are others.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from ai_whisperer.store.sqlite import committers

_SLOWEST_HANDOVER_SECONDS = 0.03


class LoopThread:
    """In place of the modules `queue` and `threading` of one committer at a time."""

    def __init__(self, chance: random.Random, is_on: Callable[[], bool]) -> None:
        self._chance = chance
        self._is_on = is_on
        self._jobs: deque[Any] = deque()
        self._turn: list[Any] = []
        self._target: Callable[[], None] = lambda: None
        self.now = 0.0

    def SimpleQueue(self) -> LoopThread:  # noqa: N802 - the name in `queue`
        self._jobs.clear()
        return self

    def Thread(self, *, target: Callable[[], None], name: str, daemon: bool) -> LoopThread:  # noqa: N802 - as above
        del name, daemon
        self._target = target
        return self

    def start(self) -> None:
        """It works when there is something to do."""

    def is_alive(self) -> bool:
        return False

    def join(self, timeout: float) -> None:
        del timeout
        while self._jobs and self._is_on():
            self._serve()

    def put(self, job: Any) -> None:
        if job is not None:
            self._jobs.append(job)
            asyncio.get_running_loop().call_later(self._chance.random() * _SLOWEST_HANDOVER_SECONDS, self._serve)

    def get(self) -> Any:
        return self._turn.pop(0)

    def _serve(self) -> None:
        if self._jobs and self._is_on():  # a process without power commits nothing, and hears of nothing
            self._turn = [self._jobs.popleft(), None]
            self._target()

    def perf_counter(self) -> float:
        """Commits are quick or slow by chance, so that both ways are gone."""
        self.now += (self._chance.choice((0.1, 2.0)) if self._is_on() else 2.0) * committers.QUICK_SECONDS
        return self.now

    def sleep(self, seconds: float) -> None:
        """There is no thread to give way to."""


@contextmanager
def committing_on_the_loop(
    chance: random.Random, is_on: Callable[[], bool], *, checkpoint_pages: int
) -> Iterator[None]:
    thread = LoopThread(chance, is_on)
    with (
        patch.object(committers, "queue", thread),
        patch.object(committers, "threading", thread),
        patch.object(committers, "time", thread),
        patch.object(committers, "CHECKPOINT_PAGES", checkpoint_pages),
    ):
        yield

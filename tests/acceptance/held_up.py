"""How much the callbacks of the event loop work in one go, in CPU time: a busy machine makes no difference."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import fmean

import pytest

DOCUMENT = json.dumps([{"id": n, "name": f"value {n}", "at": n / 7, "tags": ["a", "b"]} for n in range(900)])
LONGEST = 20
"""So many times as long as it takes to read the document a callback may take: 20 ms where reading takes 1 ms."""


class Longest:
    """The CPU time of the callback that took most."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0

    @property
    def readings(self) -> float:
        """The same, measured by how long the machine takes to read the document now, on average.

        CPU time passes faster where others use the same caches: the readings meet that as the callback did.
        """
        return self.cpu_seconds / fmean(_reading_seconds() for _ in range(LONGEST))


def _reading_seconds() -> float:
    began = time.thread_time()
    json.loads(DOCUMENT)
    return time.thread_time() - began


@contextmanager
def longest_callback() -> Iterator[Longest]:
    """Measure every callback that a loop of this process runs in the block.

    What the tests before have left is kept from the garbage collector, which would look through it in some callback.
    """
    longest = Longest()
    run = asyncio.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        longest.cpu_seconds = max(longest.cpu_seconds, time.thread_time() - began)

    gc.collect()
    gc.freeze()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.Handle, "_run", measured)
            yield longest
    finally:
        gc.unfreeze()

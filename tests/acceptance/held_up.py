"""How much the callbacks of the event loop work in one go, in CPU time: a busy machine makes no difference."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class Longest:
    """The CPU time of the callback that took most."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0


@contextmanager
def longest_callback() -> Iterator[Longest]:
    """Measure every callback that a loop of this process runs in the block."""
    longest = Longest()
    run = asyncio.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        longest.cpu_seconds = max(longest.cpu_seconds, time.thread_time() - began)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.Handle, "_run", measured)
        yield longest

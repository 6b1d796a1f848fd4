"""The event loop of a process that is there to serve: Python's own, or that of uvloop where somebody wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ai_whisperer.errors import SettingsError
from ai_whisperer.settings import EventLoop

R = TypeVar("R")

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def run(main: Coroutine[Any, Any, R], event_loop: EventLoop) -> R:
    """Run this to its end, as `asyncio.run` does; raises `SettingsError` if the event loop is not there."""
    try:
        runner = asyncio.Runner(loop_factory=loop_factory(event_loop))
    except SettingsError:
        main.close()
        raise
    with runner:
        return runner.run(main)


def loop_factory(event_loop: EventLoop) -> LoopFactory | None:
    """What makes such a loop; None is Python's own."""
    if event_loop == "asyncio":
        return None
    try:
        import uvloop
    except ImportError as error:
        raise SettingsError(
            "The setting event_loop is uvloop, which is not installed. Install it (pip install uvloop), or leave the "
            "setting out."
        ) from error
    factory: LoopFactory = uvloop.new_event_loop
    return factory


def name_of(event_loop: EventLoop) -> str:
    """The name of the event loop that `run` would use, with its version where it has one of its own."""
    if loop_factory(event_loop) is None:
        return "asyncio"
    from importlib.metadata import version

    return f"uvloop {version('uvloop')}"

"""An event loop in a thread of its own, for programs that have none."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from ai_whisperer.errors import ClosedError, StateError

P = ParamSpec("P")
R = TypeVar("R")


class BackgroundLoop:
    """Runs coroutines for threads that wait for them. A process that is forked has the object, but not the thread."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_LastingExecutor(thread_name_prefix="whisperer-scripting"))
        # A daemon, since Python waits for other threads before it calls those who want to know that it ends.
        self._thread = threading.Thread(target=self._loop.run_forever, name="whisperer-scripting", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        return not self._loop.is_closed() and self._process == os.getpid()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Wait for the result. Whoever interrupts the wait (Ctrl-C) cancels the work."""
        try:
            self._check_usable()
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except BaseException:
            work.close()
            raise
        try:
            return future.result()
        finally:
            future.cancel()

    def close(self) -> None:
        """Cancel what still runs, and end the thread; in a forked process nothing is left to do."""
        if not self.is_open:
            return
        self.run(_cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _check_usable(self) -> None:
        if self._process != os.getpid():
            raise StateError("The connection belongs to the process that this one was forked from. Call connect().")
        if not self.is_open:
            raise ClosedError("The connection was closed. Call connect() for another.")
        if threading.current_thread() is self._thread:
            raise StateError("This would wait for itself. Use the asynchronous Client here.")


class _LastingExecutor(ThreadPoolExecutor):
    """Does its work also when the program ends, as the closing of a server needs it: then on the spot."""

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        try:
            return super().submit(function, *args, **kwargs)
        except RuntimeError:  # Python ends, and begins no more threads
            outcome: Future[R] = Future()
            try:
                outcome.set_result(function(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - it goes to whoever waits for the outcome
                outcome.set_exception(error)
            return outcome


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()

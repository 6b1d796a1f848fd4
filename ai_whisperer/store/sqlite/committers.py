"""Making an open transaction durable: in place, or on a thread that waits for the disk in place of the event loop."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

import apsw

from ai_whisperer.errors import StoreFailedError

QUICK_SECONDS = 0.001
CHECKPOINT_PAGES = 1_000
"""At so many pages the write-ahead log is copied into the database; if that is not possible, so many pages later."""
BUSY_MILLISECONDS = 5_000
"""So long it is waited for whoever else has the database locked."""
LAST_COMMIT_SECONDS = 5.0
"""So long the end of a commit under way is waited for when the database is let go of."""

Committed = Callable[[BaseException | None], None]
Before = Callable[[], None]

_PASSING = (apsw.FullError, apsw.BusyError, apsw.LockedError)
"""What keeps a checkpoint from its work and harms nothing: the log has everything, and it is tried again later."""

_log = logging.getLogger(__name__)


class Committer(Protocol):
    """Makes an open transaction of so many units durable and calls back on the event loop, with the error if any.

    `before` is what has to be on disk before the transaction is; it waits for the disk, too.
    `rows_in_group` is how many rows it wants to see together: many where a commit costs something; few where it does
    not, so that the first who wait go on while the others are written. `warning` is what a person should know of while
    everything still works.
    """

    rows_in_group: int
    warning: str | None

    def commit(
        self, connection: apsw.Connection, done: Committed, *, units: int, before: Before | None = None
    ) -> None: ...

    def empty_log_soon(self) -> None:
        """Have the next commit copied into the database at once, and nothing be left in the file of the log."""
        ...

    def close(self) -> None:
        """Let go of the connection; raises `StoreFailedError` if it is in use for good, as the disk does not answer."""
        ...


class InlineCommitter:
    """Commits at once. For databases in memory, where nothing can block."""

    rows_in_group = 200
    warning: str | None = None

    def commit(self, connection: apsw.Connection, done: Committed, *, units: int, before: Before | None = None) -> None:
        del units
        if before is not None:
            before()
        done(_commit(connection))

    def empty_log_soon(self) -> None:
        """There is none."""

    def close(self) -> None:
        """There is nothing to let go of."""


class _Job(NamedTuple):
    """A commit for the thread."""

    connection: apsw.Connection
    done: Committed
    loop: asyncio.AbstractEventLoop
    before: Before | None


class ThreadCommitter:
    """Commits on a thread of its own, so that the event loop does not wait for the disk.

    A unit that is alone is committed in place while commits are quick: handing it over would take longer than the
    commit does. A commit that turns out slow holds the event loop up once; those after it go to the thread.

    The write-ahead log is copied into the database here too (the checkpoint). Where that is not possible because the
    disk is full or somebody has the database locked, it is tried again later: all commits are in the log. Any other
    error is that of the commit, and whoever writes stops.
    """

    rows_in_group = 2_000

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._last_seconds = 1.0
        self._log_pages = 0
        self._checkpoint_at = CHECKPOINT_PAGES
        self._is_to_empty = False
        self.warning: str | None = None
        self._thread = threading.Thread(target=self._run, name="whisperer-commit", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            raise StoreFailedError(
                f"The system gives this process no thread to commit on ({error}). Raise its limit of processes."
            ) from error

    def prepare(self, connection: apsw.Connection) -> None:
        """Have the write-ahead log copied into the database here, on the thread, not wherever a commit happens."""
        connection.set_wal_hook(self._log_grew)

    def commit(self, connection: apsw.Connection, done: Committed, *, units: int, before: Before | None = None) -> None:
        quick = self._last_seconds < QUICK_SECONDS and self._log_pages < self._checkpoint_at
        if units == 1 and quick and before is None:
            done(self._timed_commit(connection))
        else:
            self._jobs.put(_Job(connection, done, asyncio.get_running_loop(), before))
            time.sleep(0)  # gives the interpreter lock to the thread, which would wait for it up to 5 ms

    def empty_log_soon(self) -> None:
        self._is_to_empty = True
        self._checkpoint_at = 0

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join(LAST_COMMIT_SECONDS)
        if self._thread.is_alive():
            raise StoreFailedError(
                f"The disk has not answered for {LAST_COMMIT_SECONDS:g} s, so the database cannot be closed. End the "
                "process and check the disk; nothing that was accepted is lost."
            )

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            failure = self._durable(job.connection, job.before)
            try:
                job.loop.call_soon_threadsafe(job.done, failure)
            except RuntimeError:
                return  # the event loop was closed under us: nobody is left to tell

    def _durable(self, connection: apsw.Connection, before: Before | None) -> BaseException | None:
        """Commit, and make a checkpoint if it is time; returns the error, whatever it is: nobody hears one raised."""
        try:
            if before is not None:
                before()
            failure = self._timed_commit(connection)
            if failure is None and self._log_pages >= self._checkpoint_at:
                self._checkpoint(connection)
        except BaseException as error:  # noqa: BLE001 - it stops whoever waits for this commit
            return error
        return failure

    def _checkpoint(self, connection: apsw.Connection) -> None:
        try:
            if self._is_to_empty:
                self._is_to_empty = not _was_emptied(connection)
            else:
                connection.wal_checkpoint()
        except _PASSING as error:
            self._put_off(error)
        except Exception as error:
            raise StoreFailedError(
                f"The log of the database cannot be copied into it ({error}), so the runtime stopped. Fix the cause "
                "and start again; nothing that was accepted is lost."
            ) from error
        else:
            self._log_pages, self._checkpoint_at = 0, CHECKPOINT_PAGES
            if self.warning is not None:
                self.warning = None
                _log.warning("the log of the database could be copied into it again")

    def _put_off(self, error: apsw.Error) -> None:
        self._checkpoint_at = self._log_pages + CHECKPOINT_PAGES
        if self.warning is None:
            what = "Free some space" if isinstance(error, apsw.FullError) else "End what has it locked"
            self.warning = (
                f"The log of the database cannot be copied into it ({error}). {what}; it is tried again, and until "
                "then the log grows. Nothing is lost."
            )
            _log.warning("%s", self.warning)

    def _log_grew(self, connection: apsw.Connection, name: str, pages: int) -> int:
        del connection, name
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _timed_commit(self, connection: apsw.Connection) -> BaseException | None:
        begun = time.perf_counter()
        failure = _commit(connection)
        self._last_seconds = time.perf_counter() - begun
        return failure


def _was_emptied(connection: apsw.Connection) -> bool:
    """Copy the log into the database and cut its file to nothing; False if somebody reads what is in it.

    Nobody is waited for: then all is copied that can be, and the rest is for the next time.
    """
    connection.set_busy_timeout(0)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    finally:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
    return True


def _commit(connection: apsw.Connection) -> BaseException | None:
    try:
        connection.execute("COMMIT")
    except apsw.Error as error:
        return error
    return None

"""Bugs that the harness must find: each is put into one server and lets a fault do harm that it must not do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import apsw

from ai_whisperer.cli.signals import Watchman
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.server.host import SessionHost
from ai_whisperer.store.group import Group
from ai_whisperer.store.groups import GroupCommit
from ai_whisperer.store.sqlite.committers import ThreadCommitter

from .injection import HANG, SURPRISE, Fault


def put(owner: type, name: str, replacement: Callable[..., Any] | None) -> None:
    """Have objects of the class do something else."""
    setattr(owner, name, replacement)


class PlantedBug(NamedTuple):
    """How a bug is planted, the fault that shows it, and what the harness then has to say."""

    plant: Callable[[], None]
    fault: Fault
    finding: str


def checkpoint_unhandled() -> None:
    """The error of a checkpoint ends the thread that commits."""

    def run(self: Any) -> None:
        while (job := self._jobs.get()) is not None:
            connection, done, loop, _ = job
            failure = self._timed_commit(connection)
            if self._log_pages >= self._checkpoint_at:
                self._log_pages = 0
                try:
                    connection.wal_checkpoint()
                except apsw.Error:
                    return
            loop.call_soon_threadsafe(done, failure)

    put(ThreadCommitter, "_run", run)


def statements_unhandled() -> None:
    """Only errors of the database are handled where a group is written."""

    def flush(self: Any) -> None:
        self._scheduled = False
        if self._flying or not self._waiting or self._failure is not None:
            return
        self._flying = Group(self._take_group(), self._last_seq, self._banned, self._packing)
        try:
            self._writer.commit(self._flying, self._loop, self._committed)
        except apsw.Error as error:
            self._fail(error)

    put(GroupCommit, "_flush", flush)


def health_always_ok() -> None:
    put(SessionHost, "trouble", lambda _: None)


def acknowledge_before_commit() -> None:
    async def commit(self: Decision) -> None:
        self.submit()

    put(Decision, "commit", commit)


def wait_for_the_commit() -> None:
    """Whoever leaves waits for the thread that commits, and nobody watches over it."""
    put(Watchman, "begin", lambda _: None)

    def close(self: Any) -> None:
        self._jobs.put(None)
        self._thread.join()

    put(ThreadCommitter, "close", close)


def go_on_after_a_failure() -> None:
    """A commit that failed is told to nobody but those who wait for it, and nobody asks."""
    put(GroupCommit, "watch", lambda *_: None)
    put(SessionHost, "failure", None)


def signals_on_the_event_loop() -> None:
    """Signals are heard by the event loop alone, which may be held up."""
    original = Watchman._hear

    def hear(self: Any, number: Any) -> None:
        self._within_seconds = None
        original(self, number)

    put(Watchman, "_hear", hear)


PLANTED_BUGS = {
    "checkpoint-unhandled": PlantedBug(
        checkpoint_unhandled, Fault(call="checkpoint", kind="full", number=3), "was not answered"
    ),
    "statements-unhandled": PlantedBug(
        statements_unhandled, Fault(call="write", kind=SURPRISE, number=40), "was not answered"
    ),
    "health-always-ok": PlantedBug(health_always_ok, Fault(call="checkpoint", kind=HANG, number=3), "healthz says ok"),
    "acknowledge-before-commit": PlantedBug(
        acknowledge_before_commit, Fault(call="checkpoint", kind=HANG, number=3), "was acknowledged and is lost"
    ),
    "wait-for-the-commit": PlantedBug(
        wait_for_the_commit, Fault(call="commit", kind=HANG, number=8), "SIGTERM does not end it"
    ),
    "go-on-after-a-failure": PlantedBug(
        go_on_after_a_failure, Fault(call="commit", kind="io", number=8), "goes on although its store has failed"
    ),
    "signals-on-the-event-loop": PlantedBug(
        signals_on_the_event_loop, Fault(call="begin", kind=HANG, number=8), "SIGTERM does not end it"
    ),
}

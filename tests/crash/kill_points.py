"""The named points at which the worker can be made to die, and how they are put into the runtime.

Each point is counted as it is reached; `commit.before:7` means the seventh time, and `timer.decided:1>commit.after:2`
the second commit after the first timer. A process that dies here dies by SIGKILL, between two instructions, with
nothing flushed and nobody told.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import apsw

from ai_whisperer.runtime.life import recovery
from ai_whisperer.runtime.session.timers import Timers
from ai_whisperer.store.sqlite.committers import Before, Committed, ThreadCommitter

_STATEMENTS = {
    "PRAGMA journal_mode": "store.opening",
    "CREATE TABLE": "store.creating",
    "PRAGMA user_version=": "store.created",
}
_TURNS_UNTIL_SENT = 5
_TURNS_UNTIL_TOLD = 3
"""After so many turns of the event loop everyone who waited for a commit has gone on."""


class KillSwitch:
    """Counts the points as they are reached and kills the process at the one it was told."""

    def __init__(self, die_at: str = "") -> None:
        self._way = deque((point, int(number)) for point, number in re.findall(r"([a-z.]+):([0-9]+)", die_at))
        self._since: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()

    def reached(self, point: str) -> None:
        self.counts[point] += 1
        self._since[point] += 1
        if self._way and self._way[0] == (point, self._since[point]):
            self._way.popleft()
            self._since.clear()
            if not self._way:
                os.kill(os.getpid(), signal.SIGKILL)


def install(switch: KillSwitch) -> None:
    """Put the points that lie inside the runtime there, in this process; those of commits are the committer's."""
    apsw.connection_hooks.append(lambda connection: _watch_statements(connection, switch))
    swap(Timers, "at", lambda original: _watch_timers(original, switch))
    swap(recovery, "resume", lambda original: _around(original, switch, "recovery"))


def install_for_postgresql(switch: KillSwitch) -> None:
    """The points of commits in PostgreSQL: those of SQLite, and one when the group is sent and nothing is heard yet."""
    from ai_whisperer.store.postgresql.lane import Lane
    from ai_whisperer.store.postgresql.writing import PostgresqlWriter

    def watched(original: Callable[..., None]) -> Callable[..., None]:
        def commit(self: Any, group: Any, loop: asyncio.AbstractEventLoop, done: Committed) -> None:
            def committed(failure: BaseException | None) -> None:
                switch.reached("commit.after")
                done(failure)
                _later(loop, _TURNS_UNTIL_TOLD, lambda: switch.reached("commit.told"))

            switch.reached("commit.before")
            original(self, group, loop, committed)

        return commit

    def sent(original: Callable[..., Any]) -> Callable[..., Any]:
        async def write(self: Any, *group: Any) -> None:
            writing = asyncio.ensure_future(original(self, *group))
            for _ in range(_TURNS_UNTIL_SENT):
                await asyncio.sleep(0)
            switch.reached("commit.sent")
            await writing

        return write

    swap(PostgresqlWriter, "commit", watched)
    swap(Lane, "write", sent)


def _later(loop: asyncio.AbstractEventLoop, turns: int, callback: Callable[[], None]) -> None:
    if turns:
        loop.call_soon(_later, loop, turns - 1, callback)
    else:
        callback()


def swap(owner: object, name: str, make: Callable[[Any], Any]) -> None:
    """Replace an attribute by what is made of it."""
    setattr(owner, name, make(getattr(owner, name)))


class WatchedCommitter(ThreadCommitter):
    """Has a point before each COMMIT, one after it before anyone is told, and one when all have been told."""

    def __init__(self, switch: KillSwitch) -> None:
        super().__init__()
        self._switch = switch

    def commit(self, connection: apsw.Connection, done: Committed, *, units: int, before: Before | None = None) -> None:
        def committed(failure: BaseException | None) -> None:
            self._switch.reached("commit.after")
            done(failure)
            self._told(_TURNS_UNTIL_TOLD)

        self._switch.reached("commit.before")
        super().commit(connection, committed, units=units, before=before)

    def _told(self, turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._told, turns - 1)
        else:
            self._switch.reached("commit.told")


def _around(original: Callable[..., None], switch: KillSwitch, name: str) -> Callable[..., None]:
    def wrapped(*arguments: Any) -> None:
        switch.reached(f"{name}.before")
        original(*arguments)
        switch.reached(f"{name}.decided")

    return wrapped


def _watch_timers(original: Callable[..., None], switch: KillSwitch) -> Callable[..., None]:
    def at(self: Timers, due_at: float, key: str, callback: Callable[[], None]) -> None:
        original(self, due_at, key, _around(callback, switch, "timer"))

    return at


def _watch_statements(connection: apsw.Connection, switch: KillSwitch) -> None:
    """Have a point before each statement that makes the database what it is."""

    def about_to_run(cursor: apsw.Cursor, statement: str, bindings: Any) -> bool:
        del cursor, bindings
        for beginning, point in _STATEMENTS.items():
            if statement.lstrip().startswith(beginning):
                switch.reached(point)
        return True

    connection.exec_trace = about_to_run

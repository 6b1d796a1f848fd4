"""Group commit, PostgreSQL's half: a group is one statement, which proves first that its writer may write.

A statement that a lost connection leaves in doubt is sent again under its number: it takes effect once. Nothing outside
has happened meanwhile, since everything outside waits for its commit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

import asyncpg

from ai_whisperer.errors import NodeFencedError, StoreError, StoreFailedError, StoreFullError, StoreLostError
from ai_whisperer.store import tables
from ai_whisperer.store.base import SERVER, Change, Unit
from ai_whisperer.store.group import Group, Pending
from ai_whisperer.store.groups import Done
from ai_whisperer.store.operations import INSERT_NOTIFICATION
from ai_whisperer.store.postgresql import queries
from ai_whisperer.store.postgresql.connecting import LOST, TAKES_NO_WRITES, explained, in_words, state_of
from ai_whisperer.store.postgresql.lane import ALONE, Fence, Lane
from ai_whisperer.store.postgresql.merging import DuplicateRowError, Wave, merged
from ai_whisperer.store.postgresql.statements import with_epoch
from ai_whisperer.store.tables import Table

_AGAIN = ("40001", "40P01", "55P03")
"""Others were in the way; nothing was written."""
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_LONGEST_ATTEMPT_SECONDS = 10.0
_NOT_OURS = 0
"""The epoch of a session that is not claimed, which none has."""

_log = logging.getLogger(__name__)

_T = TypeVar("_T")


class State(StrEnum):
    """How the function `hold` of the database names what keeps a group from being written."""

    FENCED = "WH001"
    COMMITTED = "WH002"
    WENT_BACK = "WH003"
    SESSIONS_LOST = "WH004"


class _RefusedError(Exception):
    """What was sent cannot be written."""


class PostgresqlWriter:
    """See `GroupWriter` for the contract.

    `claims` has the sessions that are ours, with their epochs, where several processes share the database: what is
    done in any other is refused. Without it all sessions go with the database.
    """

    rows_in_group = 2_000

    def __init__(
        self,
        lane: Lane,
        *,
        writer: str = ALONE,
        epoch: int,
        claims: Mapping[str, int] | None = None,
        patience_seconds: float,
    ) -> None:
        self._lane = lane
        self._writer = writer
        self._epoch = epoch
        self._patience_seconds = patience_seconds
        self._number = 0
        self._last_seqs: dict[str, int] = {}
        self._lost_since: float | None = None
        self._now: Callable[[], float] = time.monotonic
        self._task: asyncio.Task[None] | None = None
        self.claims = claims

    def commit(self, group: Group, loop: asyncio.AbstractEventLoop, done: Done) -> None:
        self._task = loop.create_task(self._commit(group, done), name="commit")

    def committed(self, group: Group, loop: asyncio.AbstractEventLoop) -> None:
        """There is nothing to be seen to."""

    def explained(self, cause: BaseException) -> StoreError | None:
        return StoreFullError() if isinstance(cause, asyncpg.DiskFullError) else None

    def roll_back(self, failure: StoreError) -> None:
        """No transaction outlives its statement."""

    def forget(self, session_id: str) -> None:
        """Its last number may be another when it is ours again."""
        self._last_seqs.pop(session_id, None)

    def abandon(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._lane.lose()

    @property
    def warning(self) -> str | None:
        if self._lost_since is None:
            return None
        since = self._now() - self._lost_since  # a thread may ask, which has no event loop
        return (
            f"PostgreSQL has not answered for {since:.0f} s. It is tried again, up to "
            f"{self._patience_seconds:g} s; until then everything waits, and nothing is lost."
        )

    async def _commit(self, group: Group, done: Done) -> None:
        failure: BaseException | None = None
        try:
            await self._write(group)
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits must hear of it
            failure = error
        done(failure)

    async def _write(self, group: Group) -> None:
        for session_id in group.unknown_sessions():
            self._last_seqs[session_id] = await self._lasting(partial(self._last_seq, session_id)) or 0
        if not group.banned:
            try:
                await self._send(group, group.pending)
            except _RefusedError:
                group.anew()
            else:
                return
        await self._write_one_by_one(group)

    async def _write_one_by_one(self, group: Group) -> None:
        for pending in group.one_by_one():
            mark = group.mark()
            try:
                await self._send(group, (pending,))
            except _RefusedError as error:
                group.refuse(pending, error, back_to=mark)
            else:
                group.accept(pending)

    async def _send(self, group: Group, units: Sequence[Pending]) -> None:
        """Have these units written, all or none; raises `_RefusedError` if they cannot be."""
        changes = [change for unit, _ in units for change in unit.changes]
        rows = group.number(units, self._last_seqs.__getitem__)
        if group.shapes:
            changes += _putting(group)
        told: list[Change] = [(INSERT_NOTIFICATION, row) for row in rows]
        try:
            waves = [self._stamped(wave) for wave in merged([*changes, *told])]
        except (DuplicateRowError, TypeError, ValueError) as error:
            raise _RefusedError(str(error)) from error
        if waves:
            self._number += 1
            try:
                await self._lasting(lambda: self._lane.write(self._fence(waves), waves))
            except _RefusedError:
                self._number -= 1
                raise

    def _stamped(self, wave: Wave) -> Wave:
        """The wave with the epochs in what goes into the log."""
        stamped: Wave = {}
        for part, rows in wave.items():
            written = with_epoch(part)
            if written is not part:
                place = part.columns.index("session_id")
                claims = self.claims or {}
                rows = [(*row, claims.get(row[place], self._epoch)) for row in rows]  # noqa: PLW2901
            stamped[written] = rows
        return stamped

    def _fence(self, waves: Sequence[Wave]) -> Fence:
        claims = self.claims
        if claims is None:
            return Fence(self._writer, self._epoch, self._number)
        touched = {
            row[place]
            for wave in waves
            for part, rows in wave.items()
            if (place := _session_place(part.columns, part.table)) is not None
            for row in rows
        }
        held = sorted(touched - {SERVER})
        return Fence(self._writer, self._epoch, self._number, held, [claims.get(each, _NOT_OURS) for each in held])

    async def _last_seq(self, session_id: str) -> int:
        connection = await self._lane.connected()
        return int(await connection.fetchval(queries.LAST_SEQ, session_id))

    async def _lasting(self, attempt: Callable[[], Awaitable[_T]]) -> _T | None:
        """Do it, over lost connections; returns None for a group that turns out to be committed already."""
        loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE_SECONDS
        while True:
            try:
                async with asyncio.timeout(min(_LONGEST_ATTEMPT_SECONDS, self._patience_seconds)):
                    result = await attempt()
            except LOST as error:
                self._lane.lose()
                if self._lost_since is None:
                    self._lost_since, self._now = loop.time(), loop.time
                    why = in_words(error, names_address=True)
                    _log.warning("the connection to PostgreSQL is lost (%s); it is tried again", why)
                if loop.time() - self._lost_since >= self._patience_seconds:
                    raise self._out_of_patience(error) from error
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            except asyncpg.PostgresError as error:
                if state_of(error) in _AGAIN and pause < _LONGEST_PAUSE_SECONDS:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                    continue
                if state_of(error) == State.COMMITTED and self._lost_since is not None:
                    self._found_again()
                    return None
                raise self._told(error) from error
            except (UnicodeError, OverflowError) as error:
                raise _RefusedError(str(error)) from error
            else:
                self._found_again()
                return result

    def _found_again(self) -> None:
        if self._lost_since is not None:
            self._lost_since = None
            _log.warning("PostgreSQL answers again, and all that was sent is committed once")

    def _told(self, error: asyncpg.PostgresError) -> Exception:
        """What the database says of a group that it does not write."""
        match state_of(error):
            case State.FENCED:
                return fenced()
            case State.WENT_BACK:
                return went_back(int(str(error)) if str(error).isdigit() else None)
            case State.SESSIONS_LOST:
                return _RefusedError(f"another process has taken over: {error}")
            case state if state[:2] in ("22", "23", "54"):
                return _RefusedError(str(error))
            case _:
                return explained(error)

    def _out_of_patience(self, error: BaseException) -> StoreFailedError:
        if isinstance(error, TAKES_NO_WRITES):
            return StoreFailedError(
                f"No PostgreSQL has taken writes for {self._patience_seconds:g} s: what answers at the address of the "
                "store is a standby, or is read-only. So the runtime stopped. Let one of them take writes, and "
                "start again; nothing that was accepted is lost."
            )
        return StoreFailedError(
            f"PostgreSQL has not answered for {self._patience_seconds:g} s ({in_words(error)}), so "
            "the runtime stopped. Start it, and start again; nothing that was accepted is lost."
        )


def fenced() -> NodeFencedError:
    """What is told by a process in whose place another writes."""
    return NodeFencedError(
        "Another process has taken over: this one was not heard of for too long, so it stopped. "
        "Nothing that was accepted is lost. Start it again to have it join."
    )


def went_back(lost: int | None = 0) -> StoreLostError:
    """What is told by a process that finds a database which is older than what it knows to be committed.

    `lost` are the commits of this process that are gone, if it is known how many: none if it had made none.
    """
    what = "commits" if lost is None else "1 commit" if lost == 1 else f"{lost} commits"
    what = f"{what} that were acknowledged" if lost != 0 else "the last commits, and that this node joined"
    return StoreLostError(
        f"The PostgreSQL that answers has lost {what}: a standby that was behind took over, or a "
        "backup was restored. Start again to continue without them; let the primary wait for its standby "
        "(synchronous_standby_names) to lose none."
    )


def _putting(group: Group) -> list[Change]:
    unit = Unit()
    for shape in group.shapes:
        unit.put_shape(shape)
    return unit.changes


def _session_place(columns: Sequence[str], table: Table[Any]) -> int | None:
    """Where the id of the session stands among the values; None for what belongs to no session."""
    name = "id" if table is tables.SESSION else "session_id"
    return columns.index(name) if name in columns else None

"""Bugs that the nemesis must find: each is put into all nodes of a run, and a fault then does harm."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ai_whisperer.cluster import judging
from ai_whisperer.domain.nodes import Seen
from ai_whisperer.server.held_sessions import HeldSessions
from ai_whisperer.store.postgresql.lane import Fence
from ai_whisperer.store.postgresql.merging import Wave
from ai_whisperer.store.postgresql.store import PostgresqlStore
from ai_whisperer.store.postgresql.writing import PostgresqlWriter

from .schedule import Act, Kind, Schedule

_LOADING_SECONDS = 1.5

NO_FENCE = """
CREATE OR REPLACE FUNCTION whisperer.hold(my_id text, my_epoch bigint, n bigint, sessions text[], epochs bigint[])
RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$"""


class PlantedBug(NamedTuple):
    """How a bug is planted in nodes and in the database, what then happens, and what must be found.

    Without a finding it is no bug: it only makes it likely that others show.
    """

    plant: Callable[[], None]
    schedule: Schedule
    finding: str
    sql: str = ""


def put(owner: Any, name: str, replacement: Any) -> None:
    """Have objects of the class, or a module, do something else."""
    setattr(owner, name, replacement)


def nothing_but_the_fence() -> None:
    """It takes long until a session that was read goes on, and no node is told that it was removed."""
    load = PostgresqlStore.load

    async def slowly(self: PostgresqlStore, session_id: str) -> Any:
        loaded = await load(self, session_id)
        await asyncio.sleep(_LOADING_SECONDS)
        return loaded

    put(PostgresqlStore, "load", slowly)
    put(PostgresqlStore, "stop_absent", lambda _, __: None)


def group_sent_twice() -> None:
    """A group whose answer is lost is sent again as another, under the number that the database has come to."""
    lasting, fence = PostgresqlWriter._lasting, PostgresqlWriter._fence

    async def again(self: PostgresqlWriter, attempt: Any) -> Any:
        attempts = 0

        async def counted() -> Any:
            nonlocal attempts
            attempts += 1
            if attempts > 1:
                connection = await self._lane.connected()
                commits = await connection.fetchval("SELECT commits FROM writer WHERE id=$1", self._writer)
                self._number = commits + 1
            return await attempt()

        return await lasting(self, counted)

    def numbered(self: PostgresqlWriter, waves: Sequence[Wave]) -> Fence:
        return fence(self, waves)._replace(number=self._number)

    put(PostgresqlWriter, "_lasting", again)
    put(PostgresqlWriter, "_fence", numbered)


def freed_before_the_last_commit() -> None:
    """A session that is to go elsewhere is let go before it is closed."""
    let_go = HeldSessions.let_go

    async def sooner(self: HeldSessions, session_id: str, *, grace_seconds: float) -> None:
        placing = self._store.placing  # type: ignore[attr-defined]
        epoch = placing.claims.get(session_id)
        await placing.release(session_id)
        placing.claims[session_id] = epoch
        await let_go(self, session_id, grace_seconds=grace_seconds)

    put(HeldSessions, "let_go", sooner)


def judging_by_the_clock() -> None:
    """A node is gone when it was not seen to beat for two seconds, whoever could beat meanwhile."""
    seen_at: dict[tuple[str, int], float] = {}

    def looked(_: judging.Sightings, seen: Seen, *, own_id: str, is_full_beat: bool = True) -> judging.Sightings:
        del is_full_beat
        found = {}
        for each in seen.nodes:
            since = time.monotonic() - seen_at.setdefault((each.id, each.beat), time.monotonic())
            if each.id != own_id:
                found[each.id] = judging.Sighting(each.beat, judging.SILENT_BEATS if since > 2 else 0)
        return found

    put(judging, "looked", looked)
    put(judging, "forgiven", lambda known: known)


_TWO = ("a", "b")
_WRITTEN_TWICE = "wrote what was there already"
_THAWED_AS_IT_IS_TAKEN = Schedule(155, _TWO, (Act(0.3, Kind.FREEZE, "a", 3.4),))
_CUT_OFTEN = Schedule(1, _TWO, tuple(Act(0.15 * n, Kind.CUT_AFTER, "ab"[n % 2], bytes=1) for n in range(1, 21)))
_SILENT_AROUND_A_CRASH = Schedule(
    1,
    _TWO,
    (
        Act(0.1, Kind.FREEZE, "b", 0.6),
        Act(0.7, Kind.CRASH_DATABASE, seconds=2.5),
        Act(3.15, Kind.FREEZE, "b", 0.5),
    ),
)
_MOVED_OFTEN = Schedule(
    1, _TWO, tuple(Act(0.4 * n, Kind.MOVE, "ab"[n // 4 % 2], session=f"s{n % 3}") for n in range(1, 13))
)

PLANTED_BUGS = {
    "nothing-but-the-fence": PlantedBug(nothing_but_the_fence, _THAWED_AS_IT_IS_TAKEN, ""),
    "no-fence": PlantedBug(nothing_but_the_fence, _THAWED_AS_IT_IS_TAKEN, _WRITTEN_TWICE, NO_FENCE),
    "group-sent-twice": PlantedBug(group_sent_twice, _CUT_OFTEN, _WRITTEN_TWICE),
    "freed-before-last-commit": PlantedBug(freed_before_the_last_commit, _MOVED_OFTEN, "was refused what it wrote"),
    "judging-by-the-clock": PlantedBug(
        judging_by_the_clock,
        _SILENT_AROUND_A_CRASH,
        "was taken for dead without a cause",
    ),
}

"""A session that goes from node to node: whatever happens to nodes and their database, every promise is kept.

`WHISPERER_TEST_TWO_NODES_RUNS` is how many seeds are played, `WHISPERER_TEST_TWO_NODES_SEED` the first of them. A run
is played again by `python -m tests.simulation.hosts.chaos SEED`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from ai_whisperer.cluster import judging
from ai_whisperer.cluster.beating import Beating
from ai_whisperer.domain.nodes import Seen
from ai_whisperer.server.held_sessions import HeldSessions
from ai_whisperer.store.base import SessionSnapshot
from ai_whisperer.store.postgresql.lane import Fence
from ai_whisperer.store.postgresql.store import PostgresqlStore
from ai_whisperer.store.postgresql.writing import State
from tests.planted import Caught, SignedSearch, search, searched
from tests.simulation.hosts.chaos import TwoNodes, failure_of
from tests.simulation.hosts.faults import Kind, drawn
from tests.simulation.hosts.server import Database
from tests.simulation.hosts.tables import HoldError, NodeTables
from tests.simulation.hosts.wire import Connection
from tests.simulation.plants import acknowledge_before_the_commit

RUNS = int(os.environ.get("WHISPERER_TEST_TWO_NODES_RUNS", "6"))
FIRST_SEED = int(os.environ.get("WHISPERER_TEST_TWO_NODES_SEED", "0"))
_PARTS = 2
"""So that several processes share the seeds."""
_SEEDS_FOR_A_PLANTED_BUG = 60
_LOADING_SECONDS = 1.5


@pytest.mark.parametrize("part", range(_PARTS))
def test_whatever_happens_to_two_nodes_every_promise_is_kept(part: int) -> None:
    seeds = range(FIRST_SEED + part, FIRST_SEED + RUNS, _PARTS)
    broken = {seed: failure for seed in seeds if (failure := failure_of(seed))}
    print(f"two nodes: {len(seeds)} seeds from {seeds.start}, each {_PARTS}th, {len(broken)} broken")
    assert broken == {}


def test_a_seed_replays_exactly_and_the_session_goes_from_node_to_node() -> None:
    runs = [TwoNodes(4) for _ in range(2)]
    for run in runs:
        run.run()
    assert runs[0].log == runs[1].log
    assert len(runs[0].log) > 100
    assert len({epoch for *_, epoch in runs[0].log}) > 2


def test_the_schedules_have_all_kinds_of_faults() -> None:
    assert drawn(7) == drawn(7)
    assert {fault.kind for seed in range(50) for fault in drawn(seed)} == set(Kind)


Plant = Callable[[pytest.MonkeyPatch], None]


def let_anybody_write(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NodeTables, "hold", lambda *_: None)


def prove_in_another_statement_than_the_one_that_writes(patch: pytest.MonkeyPatch) -> None:
    """Whoever takes a node for dead ends its connections too, which is a fence by itself: that is forgotten here."""
    write, hold = NodeTables.write, NodeTables.hold

    async def proved_before(self: Connection, prepared: Any, values: Sequence[Any]) -> None:
        fence, wave = prepared.taken_apart(values)
        tables: NodeTables = self._database.tables  # type: ignore[attr-defined]
        if fence is not None:
            await self._asked(lambda: hold(tables, fence))
            self._proved = fence  # type: ignore[attr-defined]
        await self._asked(lambda: write(tables, self._proved, [wave]))  # type: ignore[attr-defined]

    patch.setattr(Connection, "write", proved_before)
    patch.setattr(NodeTables, "hold", lambda *_: None)
    patch.setattr(Database, "end_connections", lambda *_: [])
    load_slowly(patch)


def load_slowly(patch: pytest.MonkeyPatch) -> None:
    load = PostgresqlStore.load

    async def slowly(self: PostgresqlStore, session_id: str) -> SessionSnapshot:
        loaded = await load(self, session_id)
        await asyncio.sleep(_LOADING_SECONDS)
        return loaded

    patch.setattr(PostgresqlStore, "load", slowly)


def raise_the_epoch_after_loading(patch: pytest.MonkeyPatch) -> None:
    """Until its successor has loaded the session, a node may still write: what it writes then is not loaded."""
    remove, hold, load = NodeTables.remove, NodeTables.hold, PostgresqlStore.load
    former: dict[str, Any] = {}

    def remove_later(self: NodeTables, host_id: str, *values: Any) -> bool:
        former[host_id] = self.writers.get(host_id)
        return remove(self, host_id, *values)

    def hold_for_both(self: NodeTables, fence: Fence) -> None:
        known = former.get(fence.writer)
        if known is None or known.commits != fence.number - 1:
            hold(self, fence)

    async def load_and_raise(self: PostgresqlStore, session_id: str) -> SessionSnapshot:
        loaded = await load(self, session_id)
        await asyncio.sleep(_LOADING_SECONDS)
        former.clear()
        return loaded

    patch.setattr(NodeTables, "remove", remove_later)
    patch.setattr(NodeTables, "hold", hold_for_both)
    patch.setattr(PostgresqlStore, "load", load_and_raise)


def free_the_placement_before_the_last_commit(patch: pytest.MonkeyPatch) -> None:
    let_go = HeldSessions.let_go

    async def sooner(self: HeldSessions, session_id: str, *, grace_seconds: float) -> None:
        placing = self._store.placing  # type: ignore[attr-defined]
        epoch = placing.claims.get(session_id)
        await placing.release(session_id)
        placing.claims[session_id] = epoch
        await let_go(self, session_id, grace_seconds=grace_seconds)

    patch.setattr(HeldSessions, "let_go", sooner)


def send_a_group_twice(patch: pytest.MonkeyPatch) -> None:
    """A group whose answer was lost is written again, as if it were another."""
    hold = NodeTables.hold

    def hold_any_number(self: NodeTables, fence: Fence) -> None:
        try:
            hold(self, fence)
        except HoldError as error:
            if error.sqlstate != State.COMMITTED:
                raise

    patch.setattr(NodeTables, "hold", hold_any_number)


def judge_by_the_clock(patch: pytest.MonkeyPatch) -> None:
    """A node is gone when it was not seen to beat for two seconds, whoever could beat meanwhile."""
    seen_at: dict[tuple[str, str, int], float] = {}

    def looked(_: judging.Sightings, seen: Seen, *, own_id: str, is_full_beat: bool = True) -> judging.Sightings:
        del is_full_beat
        found, now = {}, asyncio.get_running_loop().time()
        for each in seen.nodes:
            since = now - seen_at.setdefault((own_id, each.id, each.beat), now)
            if each.id != own_id:
                found[each.id] = judging.Sighting(each.beat, judging.SILENT_BEATS if since > 2 else 0)
        return found

    patch.setattr(judging, "looked", looked)
    patch.setattr(judging, "forgiven", lambda known: known)


def take_a_session_that_another_has(patch: pytest.MonkeyPatch) -> None:
    claim = NodeTables.claim

    def claim_anyway(self: NodeTables, host_id: str, session_id: str) -> int | None:
        placed = self.placements.get(session_id)
        if placed is not None and placed.writer_id != host_id:
            placed.writer_id = None
        return claim(self, host_id, session_id)

    patch.setattr(NodeTables, "claim", claim_anyway)


def tell_from_memory(patch: pytest.MonkeyPatch) -> None:
    """A node that was frozen, or cut off, answers before it asks whether it was taken for dead meanwhile."""
    patch.setattr(Beating, "is_sure", property(lambda _: True))


_WRITTEN_BY_TWO = "a node wrote to a session that is another's"
_TOLD_OF_AN_OLDER_STATE = "a node tells of an older state than another did"
PLANTED: dict[str, tuple[Plant, str, int]] = {
    plant.__name__: (plant, sign, first)
    for plant, sign, first in (
        (let_anybody_write, _WRITTEN_BY_TWO, 15),
        (prove_in_another_statement_than_the_one_that_writes, _WRITTEN_BY_TWO, 39),
        (raise_the_epoch_after_loading, _WRITTEN_BY_TWO, 3),
        (free_the_placement_before_the_last_commit, "another process has taken over: default", 0),
        (acknowledge_before_the_commit, "a node does not know what another has accepted", 17),
        (send_a_group_twice, "UNIQUE constraint failed: notification.session_id", 0),
        (judge_by_the_clock, "a node was taken for dead without a cause", 15),
        (take_a_session_that_another_has, _TOLD_OF_AN_OLDER_STATE, 0),
        (tell_from_memory, _TOLD_OF_AN_OLDER_STATE, 18),
    )
}
"""Each bug with the sign by which it is caught, and the seed at which it showed, where the search begins.

Whatever changes a run may change these seeds.
"""


@pytest.mark.planted("two nodes, simulated", unit="seed")
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_caught_by_its_sign(name: str, monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    plant, sign, first = PLANTED[name]
    plant(monkeypatch)
    found = SignedSearch(sign, failure_of)
    is_caught = search(searched(_SEEDS_FOR_A_PLANTED_BUG, shows_at=first), found.failure_of, caught)
    assert is_caught, f"{name} was not caught in {_SEEDS_FOR_A_PLANTED_BUG} seeds {found.told}"

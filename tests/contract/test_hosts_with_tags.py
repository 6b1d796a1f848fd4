"""Sessions that need tags are at nodes that have them, whoever claims, moves or sheds them at whatever moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from ai_whisperer.cluster.joining import join
from ai_whisperer.cluster.membership import membership_of
from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.nodes import NodeCard
from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.errors import SessionElsewhereError, StateError, UnknownSessionError
from ai_whisperer.store.base import Unit
from ai_whisperer.store.postgresql import node_queries as queries
from ai_whisperer.store.postgresql.connecting import connect
from ai_whisperer.store.postgresql.store import PostgresqlStore
from tests.contract.records import agent, task
from tests.contract.test_hosts import asked, card, made, play, removed
from tests.postgresql import Server


def tagged(name: str, *tags: str, strength: int = 0) -> NodeCard:
    return replace(card(name, strength=strength), tags=tags)


@asynccontextmanager
async def joined_as(address: str, *cards: NodeCard) -> AsyncIterator[list[PostgresqlStore]]:
    stores: list[PostgresqlStore] = []
    try:
        for each in cards:
            stores += [await join(address, each, patience_seconds=10)]
        yield stores
    finally:
        for store in stores:
            await store.close()


async def at_rest(store: PostgresqlStore, session_id: str, *needs: str) -> None:
    """Make a session that needs tags, with a task that waits, and let it go."""
    unit = Unit()
    unit.insert_session(SessionRecord(id=session_id, title="", owner="local", created_at=1.0, needs=needs))
    unit.insert_agent(agent("ann", session_id=session_id))
    unit.insert_task(replace(task("t"), session_id=session_id))
    await store.claim(session_id)
    await store.submit(unit)
    await store.release(session_id)


def test_a_session_that_needs_tags_is_only_at_nodes_that_have_them_all(database: str) -> None:
    async def scenario() -> None:
        cards = (tagged("a"), tagged("b", "eu"), tagged("c", "eu", "gpu"))
        async with joined_as(database, *cards) as (a, b, c):
            await at_rest(a, "s", "eu", "gpu")
            await at_rest(a, "anywhere")
            with pytest.raises(
                SessionElsewhereError, match=r"needs the tags 'eu', 'gpu', .* 'a' .*: ask .* 'c' at"
            ) as told:
                await a.claim("s")
            assert told.value.data == {"node": "c", "address": "http://c:1"}
            assert await b.take(9) == ["anywhere"]
            assert await c.take(9) == ["s"]
            with pytest.raises(StateError, match=r"needs the tags 'eu', 'gpu', and the node 'b' has the tag 'eu'"):
                await membership_of(a).move("s", "b", patience_seconds=1)
            assert {each.name: each.tags for each in (await membership_of(a).status()).nodes} == {
                "a": (),
                "b": ("eu",),
                "c": ("eu", "gpu"),
            }

    play(scenario)


def test_a_session_whose_tags_no_node_has_waits_and_whoever_asks_is_told_which_have_which(
    postgresql_server: Server, database: str
) -> None:
    async def scenario() -> None:
        async with joined_as(database, tagged("a"), tagged("b", "gpu")) as (a, b):
            await at_rest(b, "s", "gpu")
            await removed(postgresql_server, database, "b")
            with pytest.raises(
                SessionElsewhereError, match=r"no node .* has the tag 'gpu' \('a' has no tags\)"
            ) as told:
                await a.claim("s")
            assert told.value.data == {"node": "", "address": ""}
            assert await a.take(9) == []
            status = await membership_of(a).status()
            assert (status.waiting, status.unmet) == (1, (("gpu",),))
            await membership_of(a).need("s", ())
            assert (await membership_of(a).status()).unmet == ()
            assert await a.take(9) == ["s"]

    play(scenario)


def test_a_session_goes_to_the_tags_that_it_is_given_to_need(database: str) -> None:
    async def scenario() -> None:
        cards = (tagged("a"), tagged("b", "gpu"), tagged("c", "gpu", strength=2))
        async with joined_as(database, *cards) as (a, b, c):
            await at_rest(a, "s")
            await a.claim("s")
            with pytest.raises(StateError, match=r"no node .* has the tag 'gpus' .* Did you mean 'gpu'\?"):
                await membership_of(b).need("s", ("gpus",))
            await membership_of(b).need("s", ("gpu",))
            assert (await membership_of(b).status()).nodes[0].sessions == 1, "it goes when it is let go"
            await a.release("s")
            assert await b.take(9) == [], "it is on its way to the stronger one"
            assert await c.take(9) == ["s"]
            await membership_of(b).need("s", ())
            with pytest.raises(UnknownSessionError, match="'gone' was deleted"):
                await membership_of(b).need("gone", ())
            await c.release("s")
            assert await a.claim("s"), "nothing keeps it any more"

    play(scenario)


@pytest.mark.parametrize("before", ["it was at a node", "no node ever had it"])
@pytest.mark.parametrize("verb", ["claim", "move"])
def test_who_claims_or_moves_a_session_that_begins_to_need_tags_sees_these(
    postgresql_server: Server, database: str, verb: str, before: str
) -> None:
    waiting = (
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type='Lock' AND query LIKE '%INSERT INTO placement AS kept%'"
    )

    async def refused(a: PostgresqlStore) -> None:
        with pytest.raises(SessionElsewhereError, match=r"needs the tag 'gpu', which the node 'a' does not have"):
            await a.claim("s")

    async def moved(b: PostgresqlStore) -> None:
        await membership_of(b).move("s", "a", patience_seconds=0)

    async def scenario() -> None:
        async with joined_as(database, tagged("a"), tagged("b", "gpu")) as (a, b):
            await at_rest(b, "s")
            if before == "no node ever had it":
                await asked(postgresql_server, database, "DELETE FROM whisperer.placement RETURNING session_id")
            first = await connect(database, name="sets the needs, and has not committed them yet")
            async with first.transaction():
                assert await first.fetchval(queries.NEED, "s", '["gpu"]')
                second = asyncio.create_task(refused(a) if verb == "claim" else moved(b))
                while not await asked(postgresql_server, database, waiting):
                    assert not second.done()
            await first.close()
            await second
            assert await a.take(9) == []
            assert await b.take(9) == ["s"], "it has work, and is on its way to nobody else"

    play(scenario)


def test_a_session_that_is_claimed_while_it_begins_to_need_tags_goes_to_them(
    postgresql_server: Server, database: str
) -> None:
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type='Lock' AND query LIKE '%need_tags%'"

    async def scenario() -> None:
        async with joined_as(database, tagged("a"), tagged("b", "gpu")) as (a, b):
            await at_rest(b, "s")
            await asked(postgresql_server, database, "DELETE FROM whisperer.placement RETURNING session_id")
            first = await connect(database, name="claims, and has not committed it yet")
            async with first.transaction():
                ((host_id,),) = await asked(postgresql_server, database, "SELECT id FROM whisperer.host WHERE name='a'")
                assert await first.fetchval(queries.CLAIM, host_id, "s") is not None
                second = asyncio.create_task(membership_of(b).need("s", ("gpu",)))
                while not await asked(postgresql_server, database, waiting):
                    assert not second.done()
            await first.close()
            await second
            assert await a.claim("s"), "it is told that it has it already"
            await a.release("s")
            assert await b.take(9) == ["s"]

    play(scenario)


def test_a_session_that_begins_to_need_tags_is_not_shed_to_where_they_are_missing(
    postgresql_server: Server, database: str
) -> None:
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type='Lock' AND query LIKE '%AS chosen%'"

    async def scenario() -> None:
        async with joined_as(database, tagged("a", "gpu"), tagged("b")) as (a, _b):
            await at_rest(a, "s")
            await a.claim("s")
            ((host_id,),) = await asked(postgresql_server, database, "SELECT id FROM whisperer.host WHERE name='a'")
            first = await connect(database, name="sets the needs, and has not committed them yet")
            other = await connect(database, name="sheds")
            async with first.transaction():
                assert await first.fetchval(queries.NEED, "s", '["gpu"]')
                second = asyncio.create_task(other.fetchval(queries.SHED, host_id, "b"))
                while not await asked(postgresql_server, database, waiting):
                    assert not second.done()
            assert await second is None
            await membership_of(a).need("s", ())
            assert await other.fetchval(queries.SHED, host_id, "b") == "s", "now it may"
            await first.close()
            await other.close()

    play(scenario)


def test_programs_are_held_best_among_the_nodes_with_the_tags(database: str) -> None:
    async def scenario() -> None:
        cards = (tagged("weak", "gpu", strength=1), tagged("strong", strength=3))
        async with joined_as(database, *cards) as (weak, strong):
            unit = made("s")
            unit.insert_agent(replace(agent("ann"), definition=AgentDefinition(tools=("run_command",))))
            await weak.claim("s")
            await weak.submit(unit)
            await weak.release("s")
            with pytest.raises(SessionElsewhereError, match="holds less than others do: ask the node 'strong'"):
                await weak.claim("s")
            await membership_of(weak).need("s", ("gpu",))
            with pytest.raises(SessionElsewhereError, match="ask the node 'weak'"):
                await strong.claim("s")
            assert await weak.claim("s")

    play(scenario)


def test_a_node_is_not_drained_whose_tags_a_session_needs_there(database: str) -> None:
    async def scenario() -> None:
        async with joined_as(database, tagged("a"), tagged("b", "gpu")) as (a, b):
            await at_rest(b, "s", "gpu")
            await b.claim("s")
            with pytest.raises(StateError, match="Sessions of the node 'b' need tags that no other node has"):
                await membership_of(a).drain("b")
            assert (await membership_of(a).drain("b", force=True)).nodes[1].state is NodeState.DRAINING

    play(scenario)

"""Which nodes Ray is to run is kept in the database, by which they are also drained, moved and ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from ai_whisperer.cluster.joining import join
from ai_whisperer.cluster.ray.chores import names_of
from ai_whisperer.cluster.ray.keeping import Hands, NoCrew, Rounds
from ai_whisperer.cluster.ray.shell import launch_of
from ai_whisperer.domain.agents import AgentRecord, AgentState
from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.nodes import NodeCard
from ai_whisperer.store.base import Unit
from ai_whisperer.store.postgresql.launching import LaunchBook
from ai_whisperer.store.postgresql.store import PostgresqlStore
from tests.cluster.stage import eventually

RAY = "10.0.0.1:6379"
LAUNCH = '{"cluster_id": "c", "settings": {}}'


class Crew(NoCrew):
    """Actors that are only names. Those that are to leave do so when they may."""

    def __init__(self, *names: str) -> None:
        self.actors = set(names)
        self.may_leave = threading.Event()
        self.started: list[str] = []

    def names(self) -> Collection[str]:
        return set(self.actors)

    def start(self, name: str) -> None:
        self.started.append(name)

    def has_started(self, number: int) -> Callable[[], Awaitable[bool]]:
        async def look() -> bool:
            return len(self.started) >= number

        return look

    def end(self, name: str, *, has_node: bool) -> None:  # noqa: ARG002
        self.may_leave.wait()
        self.actors.discard(name)


def with_book(database: str, scenario: Callable[[LaunchBook], Awaitable[None]]) -> None:
    async def played() -> None:
        book = LaunchBook(database)
        try:
            await book.order(RAY, LAUNCH, sessions_each=2)
            await scenario(book)
        finally:
            await book.close()

    asyncio.run(played())


async def joined(database: str, *names: str, strongest: str = "") -> list[PostgresqlStore]:
    cards = [NodeCard(name=name, version="0.1.0", serves=True, strength=int(name == strongest)) for name in names]
    return [await join(database, card, patience_seconds=10) for card in cards]


def test_nodes_that_ray_has_left_are_drained_and_let_go_all_at_once(database: str) -> None:
    async def scenario(book: LaunchBook) -> None:
        names = names_of(3)
        stores = await joined(database, *names, "mine")
        try:
            hands = Hands(book, NoCrew())
            assert not await hands.do(0, ())
            assert {each.state for each in await book.run_nodes() if each.name in names} == {NodeState.DRAINING}
            while not await hands.do(0, ()):
                pass
            assert [each.name for each in await book.run_nodes()] == ["mine"]
        finally:
            for store in stores:
                store.abandon()

    with_book(database, scenario)


def test_a_node_that_takes_its_time_to_leave_keeps_no_other_from_being_started(database: str) -> None:
    async def scenario(book: LaunchBook) -> None:
        crew = Crew("ray-1", "ray-3")
        hands = Hands(book, crew)
        try:
            assert not await hands.do(2, crew.names())
            assert not await hands.do(2, crew.names())
            await eventually(crew.has_started(1))
            assert (crew.started, crew.actors) == (["ray-2"], {"ray-1", "ray-3"})
        finally:
            crew.may_leave.set()
        crew.actors.add("ray-2")
        while not await hands.do(2, crew.names()):
            pass
        assert crew.actors == {"ray-1", "ray-2"}

    with_book(database, scenario)


def test_an_actor_that_never_comes_to_be_is_not_tried_all_the_time(database: str) -> None:
    async def scenario(book: LaunchBook) -> None:
        crew = Crew()
        now = 0.0
        hands = Hands(book, crew, now=lambda: now)
        for _ in range(300):
            await hands.do(1, crew.names())
            now += 0.5
        await eventually(crew.has_started(8))
        assert len(crew.started) < 12, "after half a second, one, two, four … and then every thirty"

    with_book(database, scenario)


def test_a_node_is_started_only_while_it_is_wanted_and_does_not_live(database: str) -> None:
    async def scenario(book: LaunchBook) -> None:
        await book.want(1, 1)
        launch = await launch_of("ray-1", book)
        assert launch is not None
        assert launch.cluster_id == "c"
        assert await launch_of("ray-2", book) is None
        stores = await joined(database, "ray-1")
        try:
            while not (await book.run_nodes())[0].has_lock:
                pass
            assert await launch_of("ray-1", book) is None, "it lives elsewhere"
        finally:
            for store in stores:
                await store.close()
        assert await launch_of("ray-1", book) is not None
        await book.order("", LAUNCH)
        assert await launch_of("ray-1", book) is None, "Ray is to run none any more"

    with_book(database, scenario)


def test_a_keeper_leaves_the_nodes_alone_that_another_ray_has(database: str) -> None:
    async def scenario(book: LaunchBook) -> None:
        await book.want(2, 2)
        crew = Crew()
        await Rounds(book, crew, "10.9.9.9:6379").once()
        assert crew.started == []
        mine = Rounds(book, crew, RAY)
        await mine.once()
        await eventually(crew.has_started(2))
        assert sorted(crew.started) == ["ray-1", "ray-2"]

    with_book(database, scenario)


def test_the_number_stays_in_the_range_and_what_a_person_says_counts(database: str) -> None:
    async def scenario(book: LaunchBook) -> None:
        async def known() -> tuple[int, int, int, str]:
            ray = await book.ray()
            assert ray is not None
            return (ray.wanted, ray.least, ray.most, ray.why)

        await book.want(2, 6)
        assert await known() == (2, 2, 6, "")
        assert await book.choose(4, "so it is", before=2)
        assert await known() == (4, 2, 6, "so it is")
        assert not await book.choose(5, "no", before=2), "a person has chosen meanwhile"
        assert not await book.choose(7, "no", before=4)
        await book.want(1, 3)
        assert await known() == (3, 1, 3, "")

    with_book(database, scenario)


def test_one_session_at_a_time_goes_from_one_node_to_another(database: str) -> None:
    async def scenario(book: LaunchBook) -> None:
        stores = await joined(database, "ray-1", "ray-2")
        try:
            for session_id in ("a", "b"):
                assert stores[0].placing is not None
                await stores[0].placing.claim(session_id)
            ids = {each.name: each.host_id for each in await book.run_nodes()}
            assert await book.shed(ids["ray-1"], "nobody") is None
            assert await book.shed(ids["ray-1"], "ray-2") == "a"
            assert await book.shed(ids["ray-1"], "ray-2") is None, "one is on its way"
        finally:
            for store in stores:
                store.abandon()

    with_book(database, scenario)


def test_no_session_whose_agents_run_programs_goes_to_a_weaker_sandbox_for_its_load(database: str) -> None:
    async def scenario(book: LaunchBook) -> None:
        stores = await joined(database, "ray-1", "ray-2", strongest="ray-1")
        try:
            unit = Unit()
            definition = AgentDefinition(tools=("run_python",))
            unit.insert_agent(AgentRecord(session_id="a", id="ann", definition=definition, state=AgentState.IDLE))
            for session_id in ("a", "b"):
                assert stores[0].placing is not None
                await stores[0].placing.claim(session_id)
            await stores[0].submit(unit)
            ids = {each.name: each.host_id for each in await book.run_nodes()}
            assert await book.shed(ids["ray-1"], "ray-2") == "b"
        finally:
            for store in stores:
                store.abandon()

    with_book(database, scenario)


def test_a_node_says_what_it_has_to_do_when_it_beats(database: str) -> None:
    async def scenario(book: LaunchBook) -> None:
        (store,) = await joined(database, "ray-1")
        try:

            async def is_told() -> bool:
                return (await book.run_nodes())[0].load.busy > 0

            await eventually(is_told)
            (found,) = (await book.status()).nodes
            assert found.busy > 0
        finally:
            store.abandon()

    with_book(database, scenario)

"""How many nodes Ray is to run: decided by what they have to do, between two numbers, and not to and fro."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ai_whisperer.cli.ray_cluster import bounds, choice
from ai_whisperer.cluster.load import WINDOW_SECONDS, Gauge, averaged
from ai_whisperer.cluster.ray.chores import names_of
from ai_whisperer.cluster.ray.scaling import (
    IN_AFTER_SECONDS,
    MOVE_AFTER_SECONDS,
    NOT_AGAIN_SECONDS,
    OUT_AFTER_SECONDS,
    Choice,
    Move,
    Watch,
    choose,
)
from ai_whisperer.domain.cluster import NodeState, RayStatus
from ai_whisperer.domain.nodes import IDLE, Load, RunNode
from ai_whisperer.errors import InvalidInputError

LATE = Load(0.4, 1.0)
ROUND_SECONDS = 5.0


def ray(wanted: int, least: int = 1, most: int = 6, *, sessions_each: int = 10) -> RayStatus:
    return RayStatus(
        address="10.0.0.1:6379", wanted=wanted, silent_seconds=0, least=least, most=most, sessions_each=sessions_each
    )


def node(number: int, load: Load = IDLE, sessions: int = 0, state: NodeState = NodeState.JOINED) -> RunNode:
    return RunNode(
        host_id=f"id-{number}",
        name=f"ray-{number}",
        address="",
        state=state,
        beat=1,
        has_lock=True,
        sessions=sessions,
        load=load,
    )


def chosen(
    status: RayStatus, look: Callable[[int], Sequence[RunNode]], *, seconds: float
) -> list[tuple[float, Choice]]:
    """The changes, with their times, if the nodes have that to do, by how many they are, for so long."""
    changes = []
    watch, now = Watch(), 0.0
    while now < seconds:
        made = choose(status, look(status.wanted), 0, watch, now)
        watch = made.watch
        if made.wanted != status.wanted:
            changes.append((now, made))
            status = msgspec.structs.replace(status, wanted=made.wanted)
        now += ROUND_SECONDS
    return changes


def test_a_node_is_added_when_one_has_lagged_for_a_while_and_no_other_has_room() -> None:
    nodes = [node(1, LATE, 3), node(2, Load(0.1, 0.8), 1)]
    first = choose(ray(2), nodes, 0, Watch(), 100.0)
    assert (first.wanted, first.move) == (2, None)
    assert choose(ray(2), nodes, 0, first.watch, 99.0 + OUT_AFTER_SECONDS).wanted == 2
    later = choose(ray(2), nodes, 0, first.watch, 100.0 + OUT_AFTER_SECONDS)
    assert (later.wanted, later.why) == (3, "ray-1 was 0.40 s late, and no other node had room")


def test_a_lag_that_passes_changes_nothing() -> None:
    watch = choose(ray(1), [node(1, LATE, 3)], 0, Watch(), 0.0).watch
    watch = choose(ray(1), [node(1, Load(0.1, 0.9), 3)], 0, watch, 6.0).watch
    assert choose(ray(1), [node(1, LATE, 3)], 0, watch, 12.0).wanted == 1


def test_a_session_goes_to_a_node_that_has_room_before_another_is_added_and_one_at_a_time() -> None:
    nodes = [node(1, LATE, 4), node(2, IDLE, 1), node(3, IDLE, 0)]
    first = choose(ray(3), nodes, 0, Watch(), 0.0)
    assert (first.wanted, first.move) == (3, Move("id-1", "ray-3"))
    again = choose(ray(3), nodes, 0, first.watch, MOVE_AFTER_SECONDS / 2)
    assert (again.wanted, again.move) == (3, None)
    assert choose(ray(3), nodes, 0, again.watch, 10 * OUT_AFTER_SECONDS).move is not None


def test_another_node_is_no_help_to_one_session_alone() -> None:
    assert chosen(ray(1), lambda _: [node(1, LATE, 1)], seconds=1_000) == []


def test_nodes_are_added_for_sessions_at_once_as_many_as_are_needed() -> None:
    ((at, made),) = chosen(ray(1), lambda n: [node(1 + i, IDLE, 35 // n) for i in range(n)], seconds=1_000)
    assert (at, made.wanted, made.why) == (OUT_AFTER_SECONDS, 4, "35 sessions, 10 for each node")
    assert choose(ray(1), [node(1)], 35, Watch(crowded_since=0.0), OUT_AFTER_SECONDS).wanted == 4, (
        "those that wait count"
    )
    assert choose(ray(1, most=2), [node(1)], 35, Watch(crowded_since=0.0), OUT_AFTER_SECONDS).wanted == 2


def test_nothing_is_added_while_those_that_were_added_have_not_joined() -> None:
    assert chosen(ray(2), lambda _: [node(1, LATE, 3)], seconds=1_000) == []
    leaving = node(2, LATE, 3, NodeState.DRAINING)
    assert chosen(ray(2), lambda _: [node(1, LATE, 3), leaving], seconds=1_000) == []


def test_nodes_are_taken_away_one_by_one_when_there_is_little_to_do_for_long() -> None:
    changes = chosen(ray(4, least=2), lambda n: [node(1 + i) for i in range(n)], seconds=3_000)
    assert [made.wanted for _, made in changes] == [3, 2]
    assert changes[0][0] == IN_AFTER_SECONDS
    assert changes[0][1].why == "5 minutes with little to do"


def test_nodes_that_die_again_and_again_do_not_count_as_idle() -> None:
    watch, now = Watch(), 0.0
    while now < 3 * IN_AFTER_SECONDS:
        is_missing = now % 40 == 0  # it cannot be said how much one has to do that is not there,
        life = int(now // 40)  # nor one that has just been started
        nodes = [node(1, IDLE, 1)] if is_missing else [node(1, IDLE, 1), node(2 + life, IDLE, 1)]
        made = choose(ray(2), nodes, 0, watch, now)
        assert made.wanted == 2, f"one less after {now:g} s"
        watch, now = made.watch, now + ROUND_SECONDS
    alike = [node(1, IDLE, 1), node(2, IDLE, 1)]
    assert chosen(ray(2), lambda _: alike, seconds=2 * IN_AFTER_SECONDS), "one that lives is taken away"


def test_nodes_are_kept_that_have_something_to_do_or_nearly_enough_sessions() -> None:
    assert chosen(ray(2), lambda _: [node(1, Load(0.0, 0.3)), node(2, Load(0.0, 0.3))], seconds=3_000) == []
    assert chosen(ray(2), lambda _: [node(1, IDLE, 9), node(2)], seconds=3_000) == []
    uneven = [node(1, Load(0.0, 0.6)), node(2), node(3, Load(0.0, 0.3))]
    assert chosen(ray(3), lambda _: uneven, seconds=3_000) == [], "all of the last one may go to the first"
    assert chosen(ray(2), lambda _: [node(1, Load(0.06, 0.1)), node(2)], seconds=3_000) == []


def test_a_number_outside_of_the_range_is_corrected_at_once_and_a_fixed_one_is_kept() -> None:
    assert choose(ray(7, 2, 6), [], 0, Watch(), 0.0).wanted == 6
    assert choose(ray(1, 2, 6), [], 0, Watch(), 0.0).wanted == 2
    assert chosen(ray(2, 2, 2), lambda _: [node(1, LATE, 9), node(2, LATE, 9)], seconds=3_000) == []


LOADS = st.builds(Load, st.floats(0, 3), st.floats(0, 2))
NODES = st.lists(st.tuples(LOADS, st.integers(0, 300), st.sampled_from(NodeState)), max_size=8)


@given(
    bounds=st.tuples(st.integers(1, 8), st.integers(1, 8)).map(sorted),
    looks=st.lists(st.tuples(NODES, st.integers(0, 100), st.floats(0, 1_000)), max_size=30),
    wanted=st.integers(1, 10),
)
def test_the_number_is_never_outside_of_the_range(
    bounds: list[int], looks: list[tuple[list[tuple[Load, int, NodeState]], int, float]], wanted: int
) -> None:
    status, watch, now = ray(wanted, *bounds), Watch(), 0.0
    for figures, waiting, passed in looks:
        now += passed
        nodes = [node(1 + i, load, sessions, state) for i, (load, sessions, state) in enumerate(figures)]
        made = choose(status, nodes, waiting, watch, now)
        assert bounds[0] <= made.wanted <= bounds[1]
        status, watch = msgspec.structs.replace(status, wanted=made.wanted), made.watch


@settings(max_examples=25)
@example(weights=[0.5, 0.0, 0.0, 1.0], start=3)
@given(weights=st.lists(st.floats(0.0, 1.5), max_size=40), start=st.integers(1, 6))
def test_a_load_that_stays_the_same_comes_to_rest(weights: list[float], start: int) -> None:
    """Sessions take so much of a processor each; a node that has more than one of those lags."""
    places = {number: (number % start) + 1 for number in range(len(weights))}
    moves = dict.fromkeys(places, 0)
    status, watch = ray(start, sessions_each=15), Watch()
    changed_at = moved_at = 0.0
    for now in range(0, 12_000, int(2 * ROUND_SECONDS)):
        at = {number: [each for each, place in places.items() if place == number] for number in range(1, 7)}
        busy = {number: sum(weights[each] for each in sessions) for number, sessions in at.items()}
        nodes = [
            node(n, Load(0.5 if busy[n] > 1 else 0.01, min(busy[n], 1)), len(at[n]))
            for n in range(1, status.wanted + 1)
        ]
        made = choose(status, nodes, 0, watch, now)
        watch = made.watch
        if made.move is not None:
            moved = min(at[int(made.move.host_id.removeprefix("id-"))], key=lambda each: (moves[each], each))
            places[moved] = int(made.move.name.removeprefix("ray-"))
            moves[moved] += 1
            moved_at = now
        if made.wanted != status.wanted:
            for each, place in places.items():  # those of nodes that are drained go to the others
                if place > made.wanted:
                    places[each] = each % made.wanted + 1
            status, changed_at = msgspec.structs.replace(status, wanted=made.wanted), now
    assert max(changed_at, moved_at) < 9_000


@settings(max_examples=25)
@given(loads=st.lists(LOADS, min_size=6, max_size=6), sessions=st.lists(st.integers(0, 20), min_size=6, max_size=6))
def test_whatever_stays_the_same_does_not_go_to_and_fro(loads: list[Load], sessions: list[int]) -> None:
    """Even where a number of nodes lags for no reason that is seen: it is tried twice an hour, no more."""

    def look(number: int) -> list[RunNode]:
        return [node(1 + i, loads[number - 1], sessions[number - 1]) for i in range(number)]

    changes = chosen(ray(1, sessions_each=1_000), look, seconds=4 * NOT_AGAIN_SECONDS)
    assert len(changes) <= 5 + 2 * 4


def test_a_range_is_written_with_dots() -> None:
    assert [bounds(text) for text in ("3", "2..6", "2-6", " 1..1 ")] == [(3, 3), (2, 6), (2, 6), (1, 1)]
    for wrong in ("", "0", "0..3", "6..2", "2..", "..6", "2...6", "a", "-1", "1001", "1..99999", "\u0663"):
        with pytest.raises(InvalidInputError, match=r"is no number of nodes\. Write one from 1 to 1,000, or the least"):
            bounds(wrong)


def test_a_status_says_how_many_nodes_are_wanted_and_why() -> None:
    told = "The Ray at 10.0.0.1:6379 is to run 3 nodes"
    assert choice(ray(3, 3, 3)) == f"{told}."
    assert choice(msgspec.structs.replace(ray(3, 2, 6), why="so it is")) == f"{told}, of 2 to 6: so it is."


def test_names_of_a_number_are_those_of_all_smaller_ones_too() -> None:
    assert names_of(3)[:2] == names_of(2)


def test_an_event_loop_that_does_not_answer_is_late_and_one_that_does_is_not() -> None:
    async def scenario() -> None:
        now = used = 0.0
        gauge = Gauge(now=lambda: now, used=lambda: used)
        for _ in range(100):
            gauge.read()
            await asyncio.sleep(0)
            now, used = now + 0.5, used + 0.25
        assert gauge.read() == pytest.approx(Load(0.0, 0.5), abs=0.01)
        for _ in range(8):
            now += 0.5
            gauge.read()
        assert gauge.read().lag_seconds > 0.4, "it was held up for four seconds"
        await asyncio.sleep(0)
        for _ in range(100):
            gauge.read()
            await asyncio.sleep(0)
            now += 0.5
        assert gauge.read() == pytest.approx(IDLE, abs=0.01)

    asyncio.run(scenario())


def test_the_average_is_of_the_last_seconds_however_often_it_is_taken() -> None:
    once = averaged(IDLE, Load(1, 1), WINDOW_SECONDS)
    often = IDLE
    for _ in range(20):
        often = averaged(often, Load(1, 1), WINDOW_SECONDS / 20)
    assert once == pytest.approx(often)
    assert 0.6 < once.busy < 0.7

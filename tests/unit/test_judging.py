"""When a node is taken for gone: counted in the judge's own beats, without a clock."""

from __future__ import annotations

import pytest

from ai_whisperer.cluster.judging import (
    SILENT_BEATS,
    SILENT_BEATS_WITHOUT_LOCK,
    Sightings,
    forgiven,
    gone,
    is_hurried,
    looked,
)
from ai_whisperer.cluster.sharing import fair_share, own_share, raised_min_version, with_other_settings
from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.domain.nodes import NodeCard, Seen, SeenNode
from ai_whisperer.errors import StoreVersionError


def node(
    host_id: str,
    beat: int = 0,
    *,
    has_lock: bool = True,
    serves: bool = True,
    state: NodeState = NodeState.JOINED,
    version: str = "0.1.0",
    settings: str = "a",
) -> SeenNode:
    return SeenNode(
        id=host_id,
        name=f"node {host_id}",
        address="",
        version=version,
        settings=settings,
        sandbox="",
        strength=0,
        serves=serves,
        state=state,
        beat=beat,
        started_at=0.0,
        has_lock=has_lock,
    )


def seen(*nodes: SeenNode, incarnation: str = "first", wanted: int = 0) -> Seen:
    return Seen(nodes=(node("me", 999), *nodes), incarnation=incarnation, wanted=wanted)


def after(*sights: Seen, known: Sightings | None = None) -> Sightings:
    found: Sightings = known or {}
    for each in sights:
        found = looked(found, each, own_id="me")
    return found


def test_a_node_that_beats_is_there_however_long_it_is_looked_at() -> None:
    assert gone(after(*(seen(node("a", beat)) for beat in range(50)))) == []


def test_a_node_is_gone_when_it_did_not_beat_during_four_beats_of_the_judge() -> None:
    still = [seen(node("a", 7))] * (SILENT_BEATS + 1)
    assert gone(after(*still[:-1])) == []
    assert gone(after(*still)) == [("a", 7)]


def test_a_node_whose_lock_is_gone_too_is_gone_after_two() -> None:
    known = after(seen(node("a", 7)))
    silent = [seen(node("a", 7, has_lock=False))] * (SILENT_BEATS_WITHOUT_LOCK + 1)
    assert gone(after(*silent[:-1], known=known)) == []
    assert is_hurried(after(silent[0], known=known))
    assert gone(after(*silent, known=known)) == [("a", 7)]


def test_a_lock_that_went_with_the_database_tells_nothing() -> None:
    known = after(seen(node("a", 7)))
    silent = [seen(node("a", 7, has_lock=False), incarnation="second")] * SILENT_BEATS
    assert gone(after(*silent[:-1], known=known)) == []
    assert not is_hurried(after(silent[0], known=known))
    assert gone(after(*silent, known=known)) == [("a", 7)]


def test_a_lock_that_was_never_seen_tells_nothing() -> None:
    silent = [seen(node("a", 7, has_lock=False))] * (SILENT_BEATS + 1)
    assert gone(after(*silent[:-1])) == []
    assert gone(after(*silent)) == [("a", 7)]


def test_a_node_that_connects_again_begins_anew() -> None:
    lost = seen(node("a", 7, has_lock=False))
    known = after(seen(node("a", 7)), lost, lost, seen(node("a", 8)), seen(node("a", 8, has_lock=False)))
    assert gone(known) == []
    assert gone(after(seen(node("a", 8, has_lock=False)), known=known)) == []


def test_a_judge_whose_beats_do_not_come_through_condemns_nobody() -> None:
    known = after(seen(node("a", 7)))
    assert gone(known) == []  # however much time passes: what is not seen is not counted


def test_a_judge_that_missed_a_beat_itself_begins_to_count_again() -> None:
    still = seen(node("a", 7, has_lock=False))
    known = after(seen(node("a", 7)), still, still)
    assert not forgiven(known)["a"].is_gone
    assert gone(after(still, still, known=forgiven(known))) == []
    assert gone(after(*[seen(node("b", 7))] * SILENT_BEATS)) == []
    known = forgiven(after(*[seen(node("b", 7))] * SILENT_BEATS))
    assert gone(after(*[seen(node("b", 7))] * (SILENT_BEATS - 1), known=known)) == []


def test_a_lock_that_went_while_the_judge_could_not_beat_tells_nothing_until_it_was_seen_again() -> None:
    without = [seen(node("a", 7, has_lock=False))] * (SILENT_BEATS - 1)
    assert gone(after(*without, known=after(seen(node("a", 7))))) == [("a", 7)]
    stalled = forgiven(after(seen(node("a", 7))))
    assert gone(after(*without, known=stalled)) == []
    assert not is_hurried(after(*without, known=stalled))
    assert gone(after(seen(node("a", 8)), seen(node("a", 8)), *[seen(node("a", 8, has_lock=False))] * 3)) == [("a", 8)]


def test_a_beat_that_was_made_sooner_counts_only_without_a_lock() -> None:
    known = after(seen(node("a", 7), node("b", 7)))
    for _ in range(9):
        known = looked(known, seen(node("a", 7), node("b", 7, has_lock=False)), own_id="me", is_full_beat=False)
    assert gone(known) == [("b", 7)]


def test_the_judge_does_not_judge_itself() -> None:
    assert "me" not in after(*[seen()] * 9)


@pytest.mark.parametrize("wanted", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("takers", [1, 2, 3, 8])
def test_together_all_take_all(wanted: int, takers: int) -> None:
    left, rounds = wanted, 0
    while left:
        for _ in range(takers):
            left -= min(left, fair_share(wanted, takers))
        rounds += 1
    assert rounds <= 1
    assert fair_share(wanted, takers) <= wanted / takers + 1


def test_only_nodes_that_serve_and_are_not_drained_take_a_share() -> None:
    others = (node("a", serves=False), node("b", state=NodeState.DRAINING), node("c"))
    assert own_share(seen(*others, wanted=10), "me") == 5
    assert own_share(seen(*others, wanted=10), "a") == 0
    assert own_share(seen(*others, wanted=10), "b") == 0


def test_versions_that_do_not_go_together_are_refused() -> None:
    card = NodeCard(name="n", version="0.1.0", settings="a", serves=True)
    assert raised_min_version(card, [], "0") == "0.1.0"
    assert raised_min_version(card, [node("a", version="0.2.0")], "0.1.0") == "0.1.0"
    with pytest.raises(StoreVersionError, match=r"takes nodes of version 0.10.0 or newer, and this is 0.1.0. Upgrade"):
        raised_min_version(card, [], "0.10.0")
    with pytest.raises(StoreVersionError, match=r"older nodes: 'node a' \(0.0.9\). Drain and upgrade"):
        raised_min_version(card, [node("a", version="0.0.9")], "0")


def test_nodes_with_other_settings_are_named() -> None:
    card = NodeCard(name="n", version="0.1.0", settings="a", serves=True)
    others = [node("a"), node("b", settings="b"), node("c", settings="", serves=False)]
    assert list(with_other_settings(card, others)) == ["node b"]

"""The lines of those who touch the same thing: turns, in the order of arrival, and readers together."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_whisperer.core.resources import ResourceLines, ResourceRequest
from ai_whisperer.domain.definition import Access
from ai_whisperer.domain.waits import Touch


class Calls:
    """Lines in which the call `a1` belongs to task and agent `a`. Touches are written as `r:x` and `w:x`."""

    def __init__(self) -> None:
        self.unready: set[str] = set()
        self.lines = ResourceLines(lambda request: request.task_id not in self.unready)

    def ask(self, name: str, *touches: str) -> bool:
        """Whether the call begins at once."""
        request = self.lines.waiting(name) or self.lines.enter(asked(name, touches))
        if not self.lines.may_begin(request):
            return False
        self.lines.begin(request, at=0.0)
        return True

    def end(self, name: str) -> list[str]:
        """End a call, and let those begin that may."""
        request = self.lines.leave(name)
        assert request is not None
        return [each.id for each in self.lines.unblocked(request.resources) if self.ask(each.id)]

    def in_the_way_of(self, name: str) -> list[str]:
        request = self.lines.waiting(name)
        assert request is not None
        return [each.id for each in self.lines.in_the_way(request)]


def asked(name: str, touches: Iterable[str]) -> ResourceRequest:
    kinds = {"r": Access.READ, "w": Access.WRITE}
    found = tuple(Touch(resource=each[2:], access=kinds[each[0]]) for each in touches)
    return ResourceRequest(id=name, agent_id=name[0], task_id=name[0], touches=found)


def test_one_that_writes_lets_no_other_begin() -> None:
    calls = Calls()
    assert calls.ask("a", "w:x")
    assert not calls.ask("b", "w:x")
    assert not calls.ask("c", "r:x")
    assert calls.in_the_way_of("c") == ["a"]


def test_readers_share() -> None:
    calls = Calls()
    assert calls.ask("a", "r:x")
    assert calls.ask("b", "r:x")
    assert not calls.ask("c", "w:x")
    assert calls.in_the_way_of("c") == ["a", "b"]


def test_a_writer_that_waits_is_not_passed_by_readers() -> None:
    calls = Calls()
    calls.ask("a", "r:x")
    calls.ask("b", "w:x")
    assert not calls.ask("c", "r:x")
    assert calls.in_the_way_of("c") == ["b"]
    assert calls.end("a") == ["b"]
    assert calls.end("b") == ["c"]


def test_all_readers_before_the_next_writer_begin_together() -> None:
    calls = Calls()
    calls.ask("a", "w:x")
    for name, touch in (("b", "r:x"), ("c", "r:x"), ("d", "w:x"), ("e", "r:x")):
        assert not calls.ask(name, touch)
    assert calls.end("a") == ["b", "c"]
    assert calls.end("c") == []
    assert calls.end("b") == ["d"]
    assert calls.end("d") == ["e"]


def test_a_call_takes_all_that_it_touches_or_nothing() -> None:
    calls = Calls()
    calls.ask("a", "w:x")
    assert not calls.ask("b", "w:x", "w:y")
    assert calls.lines.held_by("b") == []
    assert not calls.ask("c", "w:y"), "who came later does not pass"
    assert calls.end("a") == ["b"]
    assert calls.end("b") == ["c"]


def test_two_that_touch_two_things_in_opposite_order_take_turns() -> None:
    calls = Calls()
    assert calls.ask("a", "w:x", "w:y")
    assert not calls.ask("b", "w:y", "w:x")
    assert calls.end("a") == ["b"]


def test_one_that_cannot_go_on_is_passed_and_keeps_its_place() -> None:
    calls = Calls()
    calls.ask("a", "w:x")
    calls.ask("b", "w:x")
    calls.ask("c", "w:x")
    calls.unready.add("b")
    calls.ask("d", "w:x")
    assert calls.end("a") == ["c"]
    calls.unready.clear()
    assert calls.end("c") == ["b"]


def test_calls_of_one_task_keep_their_order_even_if_it_cannot_go_on() -> None:
    calls = Calls()
    calls.ask("b", "w:x")
    calls.ask("a1", "w:x", "w:y")
    calls.unready.add("a")
    assert not calls.ask("a2", "r:y")
    assert calls.in_the_way_of("a2") == ["a1"]


def test_one_that_leaves_the_line_is_waited_for_no_more() -> None:
    calls = Calls()
    calls.ask("a", "r:x")
    calls.ask("b", "w:x")
    calls.ask("c", "r:x")
    assert calls.end("b") == ["c"]


def test_nothing_is_kept_of_calls_that_have_left() -> None:
    calls = Calls()
    calls.ask("a", "w:x", "r:y")
    calls.ask("b", "r:x")
    calls.end("a")
    calls.end("b")
    assert calls.lines.leave("a") is None
    assert calls.lines.names() == []
    kept = (calls.lines._waiting, calls.lines._holding, calls.lines._of_task, calls.lines._lines)
    assert not any(kept)


@pytest.mark.parametrize("kind", ["w", "r"])
def test_a_thousand_that_wait_for_one_thing_are_looked_at_a_few_times_each(kind: str) -> None:
    looks = 0

    def is_ready(_: ResourceRequest) -> bool:
        nonlocal looks
        looks += 1
        return True

    calls = Calls()
    calls.lines = ResourceLines(is_ready)
    calls.ask("first", "w:x")
    for number in range(1000):
        calls.ask(f"{number}", f"{kind}:x")
    under_way = ["first"]
    ended = 0
    while under_way:
        under_way += calls.end(under_way.pop())
        ended += 1
    assert ended == 1001
    assert looks < 10_000


class Model:
    """What must hold of the lines, told as plainly as possible: a list of all calls in the order of their arrival."""

    def __init__(self) -> None:
        self.calls: list[ResourceRequest] = []
        self.holding: set[str] = set()

    def conflict(self, one: ResourceRequest, other: ResourceRequest) -> bool:
        return any(
            mine.resource == theirs.resource and Access.WRITE in (mine.access, theirs.access)
            for mine in one.touches
            for theirs in other.touches
        )

    def may_begin(self, request: ResourceRequest, unready: set[str]) -> bool:
        for other in self.calls:
            if other.id == request.id:
                continue
            earlier = self.calls.index(other) < self.calls.index(request)
            counts = other.task_id not in unready or other.task_id == request.task_id
            if self.conflict(request, other) and (other.id in self.holding or (earlier and counts)):
                return False
        return True


TOUCHES = st.sets(st.sampled_from("wxyz"), min_size=1, max_size=3).flatmap(
    lambda names: st.tuples(*(st.sampled_from([f"r:{name}", f"w:{name}"]) for name in sorted(names)))
)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), wanted=st.lists(TOUCHES, min_size=2, max_size=25))
def test_the_lines_do_what_a_plain_list_of_all_calls_says(seed: int, wanted: list[tuple[str, ...]]) -> None:
    chance = random.Random(seed)
    calls, model = Calls(), Model()
    pending = [asked(f"{chance.choice('abcdef')}{number}", touches) for number, touches in enumerate(wanted)]
    while pending or model.calls:
        if pending and chance.random() < 0.5:
            request = pending.pop(0)
            model.calls.append(request)
            entered = calls.lines.enter(request)
            assert calls.lines.may_begin(entered) == model.may_begin(request, calls.unready)
            released = [entered]
        elif chance.random() < 0.2:
            calls.unready = set(chance.sample("abcdef", chance.randint(0, 3)))
            released = []
        elif model.calls:
            gone = chance.choice(model.calls)
            model.calls.remove(gone)
            model.holding.discard(gone.id)
            left = calls.lines.leave(gone.id)
            assert left is not None
            released = calls.lines.unblocked(left.resources)
        else:
            continue
        for each in released:
            if each.task_id not in calls.unready and calls.ask(each.id):
                assert model.may_begin(next(call for call in model.calls if call.id == each.id), calls.unready)
                model.holding.add(each.id)
        _assert_alike(calls, model)


def _assert_alike(calls: Calls, model: Model) -> None:
    """The same hold, nobody conflicts, and whoever may begin is found."""
    holding = [call for call in model.calls if call.id in model.holding]
    assert not any(model.conflict(one, other) for one in holding for other in holding if one is not other)
    waiting = [call for call in model.calls if call.id not in model.holding]
    may = {call.id for call in waiting if call.task_id not in calls.unready and model.may_begin(call, calls.unready)}
    found = {each.id for each in calls.lines.unblocked("wxyz")}
    assert found == may, "a turn was lost, or given to one whose turn it is not"
    if not calls.unready:
        assert not waiting or holding or found, "nobody goes on"

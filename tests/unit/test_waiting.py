"""The graph of waits: every circle is refused with its name, and nothing else is."""

from __future__ import annotations

import itertools
import random

import pytest

from ai_whisperer.core.waiting import WaitGraph
from ai_whisperer.domain.waits import WaitKind, WaitRecord

SWITCH, HELD, QUEUED = "switch", "lock", "queue"
"""How one task waits for another: for its answer, for a lock that it holds, for a lock that it gets first."""

STRANGER = "stranger"


class Situation:
    """A graph in which task `a` belongs to agent `a`, and so do `a.1`, `a.2` …"""

    def __init__(self) -> None:
        self.graph = WaitGraph()
        self._arrival = 0

    def wait(self, task: str, kind: WaitKind, target: str, *, deadline_at: float = 100.0) -> WaitRecord:
        self._arrival += 1
        wait = WaitRecord(
            session_id="s",
            id=f"{task}/{self._arrival}",
            kind=kind,
            agent_id=agent_of(task),
            task_id=task,
            target=target,
            target_agent="",
            arrival=self._arrival,
            deadline_at=deadline_at,
        )
        self.graph.add(wait)
        return wait

    def prepare(self, kind: str, waiter: str, waited_for: str) -> None:
        """Bring about that which makes it a wait for that task to wait for the lock of the two."""
        if kind == HELD:
            self.graph.holds(waited_for, f"{waiter}-{waited_for}")
        elif kind == QUEUED:
            self.graph.holds(STRANGER, f"{waiter}-{waited_for}")
            self.wait(waited_for, WaitKind.LOCK, f"{waiter}-{waited_for}")

    def circle(self, kind: str, waiter: str, waited_for: str) -> list[str] | None:
        """The circle that this wait would close."""
        if kind == SWITCH:
            return self.graph.circle_of_switch(agent_of(waiter), waiter, agent_of(waited_for))
        return self.graph.circle_of_lock(agent_of(waiter), waiter, f"{waiter}-{waited_for}")

    def begin(self, kind: str, waiter: str, waited_for: str) -> None:
        if kind == SWITCH:
            self.wait(waiter, WaitKind.REPLY, f"{waiter}-{waited_for}")
            self.graph.answers(waited_for, f"{waiter}-{waited_for}")
        else:
            self.wait(waiter, WaitKind.LOCK, f"{waiter}-{waited_for}")


def agent_of(task: str) -> str:
    return task.partition(".")[0]


def built(edges: list[tuple[str, str, str]], situation: Situation) -> None:
    """Begin waits none of which closes a circle."""
    for edge in edges:
        assert situation.circle(*edge) is None, f"{edge} was refused"
        situation.begin(*edge)


def ring(kinds: tuple[str, ...], names: str) -> list[tuple[str, str, str]]:
    return [(kind, names[i], names[(i + 1) % len(kinds)]) for i, kind in enumerate(kinds)]


def turned(names: list[str], first: str) -> list[str]:
    at = names.index(first)
    return [*names[at:], *names[:at], first]


@pytest.mark.parametrize("size", range(2, 7))
def test_a_circle_of_any_waits_is_refused_whichever_of_them_comes_last(size: int) -> None:
    names = "abcdef"[:size]
    chance = random.Random(size)
    for kinds in itertools.product((SWITCH, HELD, QUEUED), repeat=size):
        edges = ring(kinds, names)
        for last in edges:
            others = [edge for edge in edges if edge is not last]
            for order in (others, others[::-1], chance.sample(others, len(others))):
                situation = Situation()
                for edge in edges:
                    situation.prepare(*edge)
                built(order, situation)
                assert situation.circle(*last) == turned(list(names), last[1]), (edges, last)


@pytest.mark.parametrize("size", range(2, 5))
def test_the_order_in_which_the_other_waits_began_does_not_matter(size: int) -> None:
    names = "abcdef"[:size]
    for kinds in itertools.product((SWITCH, HELD), repeat=size):
        edges = ring(kinds, names)
        for last in edges:
            for order in itertools.permutations([edge for edge in edges if edge is not last]):
                situation = Situation()
                for edge in edges:
                    situation.prepare(*edge)
                built(list(order), situation)
                assert situation.circle(*last) == turned(list(names), last[1])


@pytest.mark.parametrize("size", range(2, 7))
def test_those_who_wait_for_a_circle_from_outside_are_not_on_it(size: int) -> None:
    names = "abcdef"[:size]
    for kinds in itertools.product((SWITCH, HELD), repeat=size):
        edges = ring(kinds, names)
        for tail in ((HELD,), (HELD, SWITCH), (HELD, SWITCH, SWITCH, HELD, SWITCH)):
            situation = Situation()
            outside = [f"t{place}" for place in range(len(tail))]
            hanging = list(zip(tail, outside, [names[size // 2], *outside], strict=False))
            for edge in (*edges, *hanging):
                situation.prepare(*edge)
            built([*hanging, *edges[:-1]], situation)
            assert situation.circle(*edges[-1]) == turned(list(names), names[-1])


@pytest.mark.parametrize("size", range(2, 7))
def test_other_tasks_of_the_same_agents_do_not_hide_a_circle_and_are_not_named(size: int) -> None:
    names = "abcdef"[:size]
    for kinds in itertools.product((SWITCH, HELD), repeat=size):
        edges = ring(kinds, names)
        situation = Situation()
        beside = [(HELD, f"{name}.1", f"{other}.2") for name, other in itertools.pairwise(names)]
        below = [(SWITCH, f"{name}.3", f"{name}.4") for name in names]
        for edge in (*edges, *beside, *below):
            situation.prepare(*edge)
        for edge in (*beside, *below):
            situation.begin(*edge)
        built(edges[:-1], situation)
        assert situation.circle(*edges[-1]) == turned(list(names), names[-1])


def test_a_circle_over_several_tasks_of_one_agent_names_the_agent_as_often() -> None:
    situation = Situation()
    edges = [(HELD, "a.1", "b.1"), (HELD, "b.1", "a.2"), (HELD, "a.2", "c.1"), (HELD, "c.1", "a.1")]
    for edge in edges:
        situation.prepare(*edge)
    built(edges[:-1], situation)
    assert situation.circle(*edges[-1]) == ["c", "a", "b", "a", "c"]


@pytest.mark.parametrize("names", ["ce", "ec"])
def test_the_shortest_of_several_circles_is_named(names: str) -> None:
    situation = Situation()
    near, far = tuple(names)
    edges = [(HELD, near, "d"), (HELD, "a", near), (HELD, far, "d"), (HELD, "b", far), (HELD, "a", "b")]
    for edge in (*edges, (HELD, "d", "a")):
        situation.prepare(*edge)
    built(edges, situation)
    assert situation.circle(HELD, "d", "a") == ["d", "a", near, "d"]


def test_whoever_is_behind_in_a_queue_may_ask_those_before_it_but_not_the_other_way_round() -> None:
    situation = Situation()
    situation.graph.holds(STRANGER, "lock")
    situation.wait("before", WaitKind.LOCK, "lock")
    situation.wait("behind", WaitKind.LOCK, "lock")
    assert situation.circle(SWITCH, "behind", "before") is None
    assert situation.circle(SWITCH, "before", "behind") == ["before", "behind", "before"]


@pytest.mark.parametrize("kinds", list(itertools.product((SWITCH, HELD, QUEUED), repeat=3)))
@pytest.mark.parametrize("size", range(3, 7))
def test_chains_trees_and_diamonds_are_not_refused(size: int, kinds: tuple[str, ...]) -> None:
    names = "abcdef"[:size]
    first, *middle, last = list(names)
    chain = [(kinds[i % 3], names[i], names[i + 1]) for i in range(size - 1)]
    tree = [(kinds[i % 3], names[i // 2], names[i]) for i in range(1, size)]
    diamond = [(kinds[i % 3], first, name) for i, name in enumerate(middle)]
    diamond += [(HELD, name, last) for name in middle]
    for edges in (chain, chain[::-1], tree, tree[::-1], diamond, diamond[::-1]):
        situation = Situation()
        for edge in edges:
            situation.prepare(*edge)
        built(edges, situation)


@pytest.mark.parametrize("kinds", list(itertools.product((SWITCH, HELD), repeat=2)))
def test_two_matters_between_the_same_two_agents_are_not_a_circle(kinds: tuple[str, str]) -> None:
    situation = Situation()
    edges = [(kinds[0], "a.1", "b.1"), (kinds[1], "b.2", "a.2")]
    for edge in edges:
        situation.prepare(*edge)
    built(edges, situation)


def test_whoever_asks_one_that_waits_for_it_is_refused_though_that_one_could_answer_in_another_loop() -> None:
    situation = Situation()
    situation.prepare(HELD, "a.1", "b")
    situation.begin(HELD, "a.1", "b")
    assert situation.graph.circle_of_switch("b", "b", "a") == ["b", "a", "b"]


def test_a_wait_that_has_ended_counts_no_more() -> None:
    situation = Situation()
    situation.graph.holds("b", "lock")
    wait = situation.wait("a", WaitKind.LOCK, "lock")
    assert situation.circle(SWITCH, "b", "a") == ["b", "a", "b"]
    situation.graph.remove(wait)
    assert situation.circle(SWITCH, "b", "a") is None
    assert situation.graph.waits_of("a") == situation.graph.waits_for(WaitKind.LOCK, "lock") == []


def test_only_questions_count_for_depth_and_patience() -> None:
    situation = Situation()
    graph = situation.graph
    situation.wait("a", WaitKind.REPLY, "a-b", deadline_at=50.0)
    graph.answers("b", "a-b")
    situation.wait("b", WaitKind.REPLY, "b-c", deadline_at=60.0)
    graph.answers("c", "b-c")
    for task in ("b", "c"):
        graph.holds(task, f"lock of {task}")
        situation.wait(f"impatient-{task}", WaitKind.LOCK, f"lock of {task}", deadline_at=1.0)
    assert [graph.depth(task) for task in "abc"] == [0, 1, 2]
    assert [graph.earliest_deadline(task) for task in "abc"] == [None, 50.0, 50.0]


class Locks:
    """Locks with fair queues over a graph, as the runtime has them, and what each task waits for."""

    def __init__(self) -> None:
        self.situation = Situation()
        self.holders: dict[str, str] = {}
        self.refused = 0

    def acquire(self, task: str, lock: str) -> None:
        graph = self.situation.graph
        if self.holders.get(lock, task) == task:
            self.holders[lock] = task
            graph.holds(task, lock)
        elif graph.circle_of_lock(agent_of(task), task, lock) is None:
            self.situation.wait(task, WaitKind.LOCK, lock)
        else:
            self.refused += 1

    def release(self, task: str, lock: str) -> None:
        graph = self.situation.graph
        graph.frees(task, lock)
        del self.holders[lock]
        waiting = graph.waits_for(WaitKind.LOCK, lock)
        for wait in waiting:
            if wait.task_id == waiting[0].task_id:
                graph.remove(wait)
                graph.holds(wait.task_id, lock)
                self.holders[lock] = wait.task_id

    def end(self, task: str) -> None:
        for lock in self.situation.graph.held_by(task):
            self.release(task, lock)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_locks_are_asked_for_at_once_somebody_can_always_go_on(seed: int) -> None:
    """Also at a hand-over, where the others suddenly wait for another one: all of them end, without a timeout."""
    chance = random.Random(seed)
    locks = Locks()
    tasks = [f"{agent}.{number}" for agent in "abc" for number in range(2)]
    for _ in range(100):
        free = [task for task in tasks if not locks.situation.graph.waits_of(task)]
        task = chance.choice(free)
        held = locks.situation.graph.held_by(task)
        if held and chance.random() < 0.3:
            locks.release(task, chance.choice(held))
        elif held and chance.random() < 0.1:
            locks.end(task)
        else:
            for lock in chance.choices("KLMN", k=chance.randint(1, 3)):
                locks.acquire(task, lock)
        assert [t for t in tasks if not locks.situation.graph.waits_of(t)], "everybody waits"
    assert locks.refused
    for _ in range(len(tasks)):
        for task in tasks:
            if not locks.situation.graph.waits_of(task):
                locks.end(task)
    assert not locks.holders
    assert not any(locks.situation.graph.waits_of(task) for task in tasks)

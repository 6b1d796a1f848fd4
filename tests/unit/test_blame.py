"""The rule of who is to blame for a death, played on a small model of a session: no runtime, no disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_whisperer.core import blame
from ai_whisperer.core.blame import MOST_STARTS, SUSPECT, Verdict, attempts_at_start, judge, rest_seconds
from tests.effort import some


@dataclass
class Task:
    """A task whose one step takes so long, or kills the process after so long."""

    step_seconds: float
    deadly: bool = False
    attempts: int = 0
    started_at: float | None = None
    held_until: float | None = None
    is_set_aside: bool = False
    is_done: bool = False


@dataclass
class World:
    """Lives of a process: who is started when follows from the rule, deaths from deadly tasks and from outside."""

    tasks: list[Task]
    now: float = 0.0
    deaths: int = 0
    is_dead: bool = False
    chance: Random = field(default_factory=lambda: Random(0))

    def live(self, *, killed_after: float) -> None:
        """Until a death, or until the kill from outside."""
        suspects, others = self._take_up()
        end = self.now + killed_after
        if suspects and suspects[0].held_until is not None:
            self._run(others, end)
            others = []
        for task in suspects:
            self._try(task, end)
        self._run(others, end)

    def _take_up(self) -> tuple[list[Task], list[Task]]:
        self.is_dead = False
        resting: list[Task] = []
        suspects: list[Task] = []
        others: list[Task] = []
        for task in self.tasks:
            if task.is_done or task.is_set_aside:
                continue
            held, under_way = task.held_until is not None, task.started_at is not None
            verdict = judge(task.attempts, under_way=under_way, held_back=held)
            ran = self.now - (task.started_at or self.now)
            task.started_at, task.held_until = None, None
            if held:
                task.attempts = SUSPECT
            if verdict is Verdict.SET_ASIDE:
                task.is_set_aside = True
            elif verdict is Verdict.HOLD_BACK:
                task.held_until = self.now + rest_seconds(ran, chance=self.chance.random())
                resting.append(task)
            else:
                (suspects if verdict is Verdict.TRY else others).append(task)
        return [*resting, *suspects], others

    def _try(self, task: Task, end: float) -> None:
        if self.is_dead:
            return
        if task.held_until is not None:
            if task.held_until >= end:
                self._die(end)
                return
            self.now, task.held_until = max(self.now, task.held_until), None
        self._run([task], end)

    def _run(self, tasks: list[Task], end: float) -> None:
        if self.is_dead:
            return
        for task in tasks:
            task.attempts = attempts_at_start(task.attempts, under_way=True)
            task.started_at = self.now
        for task in sorted(tasks, key=lambda each: each.step_seconds):
            ends_at = (task.started_at or 0.0) + task.step_seconds
            if ends_at >= end:
                self._die(end)
                return
            if task.deadly:
                self._die(ends_at)
                return
            self.now = ends_at
            task.is_done, task.attempts, task.started_at = True, 0, None

    def _die(self, at: float) -> None:
        self.now, self.deaths, self.is_dead = at, self.deaths + 1, True


@pytest.mark.parametrize("count", [1, 2, 100])
@pytest.mark.parametrize("kills_after", [0.0, 0.5, 100.0])
def test_one_deadly_task_is_set_aside_after_five_deaths_whenever_it_kills(count: int, kills_after: float) -> None:
    deadly = Task(kills_after, deadly=True)
    world = World([*(Task(1.0) for _ in range(count - 1)), deadly])
    while not deadly.is_set_aside:
        world.live(killed_after=1e9)
        assert world.deaths <= MOST_STARTS
    world.live(killed_after=1e9)
    assert [task.is_done for task in world.tasks] == [True] * (count - 1) + [False]
    assert world.deaths == MOST_STARTS


@settings(max_examples=some(100))
@given(
    steps=st.lists(st.floats(0.001, 1e6), min_size=1, max_size=8),
    lives=st.lists(st.floats(0.001, blame._SHORTEST_REST_SECONDS), max_size=60),
)
def test_no_innocent_task_is_set_aside_however_fast_the_process_is_killed(
    steps: list[float], lives: list[float]
) -> None:
    world = World([Task(seconds) for seconds in steps])
    for seconds in lives:
        world.live(killed_after=seconds)
    assert not any(task.is_set_aside for task in world.tasks)
    world.live(killed_after=1e12)
    world.live(killed_after=1e12)
    assert all(task.is_done for task in world.tasks)


@pytest.mark.parametrize("period", [1.0, 5.0, 20.0, 120.0])
def test_a_long_step_is_not_blamed_for_kills_that_come_at_regular_times(period: float) -> None:
    world = World([Task(1e6), Task(0.1)])
    for _ in range(200):
        world.live(killed_after=period)
    assert not any(task.is_set_aside for task in world.tasks)


def test_a_death_without_the_task_makes_it_a_mere_suspect_again() -> None:
    for attempts in (3, 4, 5):
        assert judge(attempts, under_way=True, held_back=True) is Verdict.TRY


def test_a_task_with_nothing_under_way_is_not_blamed() -> None:
    for attempts in range(10):
        assert judge(attempts, under_way=False, held_back=False) is Verdict.GO_ON
        assert attempts_at_start(attempts, under_way=False) == max(attempts, 1)


def test_a_rest_is_longer_than_the_task_had_run_but_not_without_end() -> None:
    assert rest_seconds(0.0, chance=0.0) == 3.0
    assert rest_seconds(2.0, chance=0.5) == 30.0
    assert rest_seconds(-5.0, chance=0.0) == 3.0
    assert rest_seconds(1e9, chance=1.0) == 3600.0

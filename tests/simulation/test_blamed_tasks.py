"""Tasks that kill the process are found and become dead letters; those that were only there never are."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable

import pytest
from msgspec.structs import replace

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.core import blame
from ai_whisperer.core.blame import Verdict
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import ModelRateLimitError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.runtime.life import recovery
from ai_whisperer.runtime.life.trial_turn import TrialTurn
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import EPOCH, VirtualClock, simulate
from ai_whisperer.store.base import SessionSnapshot, Store
from ai_whisperer.store.sqlite.store import SqliteStore
from tests.effort import some
from tests.simulation.stage import call, opened, round_of

STEP_SECONDS = 1.0

Begin = Callable[[AsyncAgentSessionManager], Awaitable[None]]


class Lives:
    """A session that dies again and again: of tasks whose agent's name says so, and of kills from outside."""

    def __init__(self, *, seed: int = 0, sessions: Iterable[str] = ("default",)) -> None:
        self._sessions = list(sessions)
        self._disk = SimulatedDisk(seed)
        self._chance = random.Random(seed)
        self._clock = VirtualClock()
        self._alive = False
        self._seconds = 0.0
        self.deaths = 0
        self.is_busy = False

    def live(self, begin: Begin | None = None, *, kill_after_seconds: float | None = None) -> bool:
        """Live until nothing is to be done any more, or until a death; True if nothing is to be done."""
        lived = False

        async def life() -> None:
            nonlocal lived
            store = self._disk.open()
            self._alive = True
            self._clock = VirtualClock().later(self._seconds)
            managers = self._managers(store)
            for manager in managers:
                await manager.open()
            if begin is not None:
                await asyncio.gather(*map(begin, managers))
            if kill_after_seconds is not None:
                asyncio.get_running_loop().call_later(kill_after_seconds, self.die)
            await asyncio.gather(
                *[each.wait_task(task) for each in managers for task in await each.list_tasks(limit=1000)]
            )
            for manager in managers:
                await manager.close()
            await store.close()
            lived = True

        try:
            simulate(life(), seed=self._chance.randrange(1 << 30))
        except RuntimeError as error:
            assert "Event loop stopped before Future completed" in str(error)  # noqa: PT017
        return lived

    def states(self) -> dict[str, TaskState]:
        """The tasks by id."""
        states: dict[str, TaskState] = {}

        async def look() -> None:
            store = self._disk.open()
            for manager in self._managers(store):
                async with manager:
                    states.update({task.id: task.state for task in await manager.list_tasks(limit=1000)})
            await store.close()

        simulate(look())
        return states

    def close(self) -> None:
        self._disk.close()

    def _managers(self, store: Store) -> list[AsyncAgentSessionManager]:
        trial_turn = TrialTurn()
        return [
            opened(
                store,
                self._say,
                tools=[self._deadly()],
                clock=self._clock,
                latency_seconds=8 * STEP_SECONDS if "slow" in session else STEP_SECONDS,
                seed=self._chance.randrange(1 << 30),
                session_id=session,
                trial_turn=trial_turn,
            )
            for session in self._sessions
        ]

    def _say(self, request: ModelRequest) -> Answer | str:
        if "deadly-model" in request.agent_id:
            self.die()
        if self.is_busy and "busy-model" in request.agent_id and request.attempt < 4:
            raise ModelRateLimitError(retry_after_seconds=600.0)
        if "deadly-tool" in request.agent_id and round_of(request) < 50:
            return call("detonate")
        return call("list_agents") if round_of(request) < 2 else "done"

    def _deadly(self) -> Callable[[], Awaitable[str]]:
        @tool
        async def detonate() -> str:
            """Kill the process."""
            self.die()
            await asyncio.sleep(1)
            return "never"

        return detonate  # type: ignore[return-value]

    def die(self) -> None:
        if not self._alive:
            return  # two may do it at the same instant
        self._alive = False
        self.deaths += 1
        self._seconds = self._clock.now() - EPOCH
        self._disk.crash()
        asyncio.get_running_loop().stop()


def tasks_for(names: Iterable[str]) -> Begin:
    """Give each of these agents a task, all at the same time."""

    async def begin(manager: AsyncAgentSessionManager) -> None:
        wanted = list(names)
        for name in wanted:
            await manager.create_agent(name)
        await asyncio.gather(*(manager.send_task(name, "go", task_id=name) for name in wanted))

    return begin


def crew(count: int, *guilty: str) -> list[str]:
    """So many agents, with these among them."""
    names = [f"a{number}" for number in range(count - len(guilty))]
    middle = len(names) // 2
    return [*names[:middle], *guilty, *names[middle:]]


def live_until_all_is_done(lives: Lives, begin: Begin, *, most: int) -> None:
    done = lives.live(begin)
    while not done:
        assert lives.deaths <= most
        done = lives.live()


@pytest.mark.parametrize("deadly", ["deadly-model", "deadly-tool"])
@pytest.mark.parametrize("count", [1, 6, 100])
def test_a_task_that_kills_the_process_is_set_aside_after_five_deaths_and_the_others_live(
    deadly: str, count: int
) -> None:
    lives = Lives()
    live_until_all_is_done(lives, tasks_for(crew(count, deadly)), most=blame.MOST_STARTS)
    states = lives.states()
    assert states.pop(deadly) is TaskState.DEAD
    assert set(states.values()) <= {TaskState.COMPLETED}
    assert lives.deaths == blame.MOST_STARTS
    lives.close()


def task_named_like_the_session(manager: AsyncAgentSessionManager) -> Awaitable[None]:
    return tasks_for([manager.session_id])(manager)


def live_in_sessions(*sessions: str, seed: int) -> set[str]:
    """The tasks that are dead letters, of sessions that have one task each."""
    lives = Lives(seed=seed, sessions=sessions)
    live_until_all_is_done(lives, task_named_like_the_session, most=3 * blame.MOST_STARTS)
    dead = {task for task, state in lives.states().items() if state is TaskState.DEAD}
    lives.close()
    return dead


BESIDE = [f"slow-{number}" for number in range(30)]


@pytest.mark.parametrize("sessions", [["deadly-model", *BESIDE], [*BESIDE, "deadly-model"]], ids=["first", "last"])
@pytest.mark.parametrize("seed", range(some(1)))
def test_no_task_of_another_session_is_blamed(seed: int, sessions: list[str]) -> None:
    assert live_in_sessions(*sessions, seed=seed) == {"deadly-model"}


@pytest.mark.parametrize("seed", range(some(3)))
def test_tasks_of_two_sessions_that_kill_the_process_are_both_set_aside(seed: int) -> None:
    guilty = ("deadly-model-1", "deadly-tool-2")
    assert live_in_sessions(*guilty, seed=seed) == set(guilty)


@pytest.mark.parametrize("closes", [True, False])
def test_a_suspect_waits_while_another_session_has_the_turn_and_nobody_else_does(*, closes: bool) -> None:
    lives = Lives(sessions=["deadly-model", "slow"])
    lives.live(task_named_like_the_session)
    for _ in range(2):
        lives.live()
    begun: list[bool] = []

    async def look(manager: AsyncAgentSessionManager) -> None:
        if manager.session_id == "deadly-model":  # which is held back now
            if closes:
                await manager.close()
            return
        await manager.create_agent("b")
        task = await manager.send_task("b", "go")
        await asyncio.sleep(5)
        attempts = (await manager.list_steps("slow"))[0].attempt
        begun.extend((attempts > 2, bool(await manager.list_steps(task.id))))
        lives.die()
        await asyncio.sleep(1)

    lives.live(look)
    assert begun == [closes, True]
    lives.close()


@pytest.mark.parametrize("was_cut_off", [True, False], ids=["cut off", "ended"])
def test_a_task_is_not_suspected_if_its_process_did_not_end_by_itself(
    monkeypatch: pytest.MonkeyPatch, *, was_cut_off: bool
) -> None:
    load = SqliteStore.load
    attempts: list[int] = []

    async def told(store: SqliteStore, session_id: str) -> SessionSnapshot:
        snapshot = await load(store, session_id)
        attempts.extend(task.attempts for task in snapshot.tasks)
        return replace(snapshot, was_cut_off=was_cut_off)

    async def begin(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("harmless")
        await manager.send_task("harmless", "go", task_id="t")

    monkeypatch.setattr(SqliteStore, "load", told)
    lives = Lives()
    lives.live(begin, kill_after_seconds=STEP_SECONDS / 2)
    for _ in range(blame.SUSPECT + 1):
        lives.live(kill_after_seconds=STEP_SECONDS / 2)
    assert max(attempts) == (1 if was_cut_off else blame.SUSPECT + 1)
    lives.close()


def test_trials_that_know_nothing_of_each_other_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrialTurn, "take", lambda *_: True)
    assert live_in_sessions("deadly-model", *BESIDE, seed=0) > {"deadly-model"}


@pytest.mark.parametrize("seed", range(5))
def test_several_tasks_that_kill_the_process_are_all_set_aside_and_no_other(seed: int) -> None:
    guilty = ["deadly-model-1", "deadly-tool-2", "deadly-model-3"]
    lives = Lives(seed=seed)
    live_until_all_is_done(lives, tasks_for(crew(20, *guilty)), most=blame.MOST_STARTS * len(guilty))
    assert {task for task, state in lives.states().items() if state is TaskState.DEAD} == set(guilty)
    lives.close()


def live_through_kills(seed: int, *, longest_seconds: float, kills: int = 40) -> dict[str, TaskState]:
    """Kill a session with many tasks again and again, then leave it alone."""
    lives, chance = Lives(seed=seed), random.Random(seed)
    lives.live(tasks_for(crew(30)), kill_after_seconds=chance.uniform(0.01, longest_seconds))
    for _ in range(kills):
        lives.live(kill_after_seconds=chance.uniform(0.01, longest_seconds))
    assert lives.live()
    states = lives.states()
    lives.close()
    return states


@pytest.mark.parametrize("longest_seconds", [0.3, 1.2, 2.5])
@pytest.mark.parametrize("seed", range(some(1)))
def test_rapid_kills_from_outside_set_no_task_aside(seed: int, longest_seconds: float) -> None:
    assert set(live_through_kills(seed, longest_seconds=longest_seconds).values()) == {TaskState.COMPLETED}


@pytest.mark.planted("deaths by the dozen, simulated", name="count every start at a death")
def test_the_rule_that_counted_every_start_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def old_rule(attempts: int, *, under_way: bool, held_back: bool) -> Verdict:
        del under_way, held_back
        return {2: Verdict.TRY}.get(attempts, Verdict.SET_ASIDE if attempts > 2 else Verdict.GO_ON)

    monkeypatch.setattr(recovery, "judge", old_rule)
    assert TaskState.DEAD in live_through_kills(0, longest_seconds=1.2).values()


def test_a_task_at_whose_trial_the_process_was_killed_from_outside_is_cleared_by_the_next_kill() -> None:
    lives = Lives()
    lives.live(tasks_for(["a0"]), kill_after_seconds=0.5)
    for _ in range(3):
        lives.live(kill_after_seconds=0.5)  # together, at its trial, and while it is held back
    assert lives.live()
    assert lives.states() == {"a0": TaskState.COMPLETED}
    lives.close()


def test_a_suspect_that_is_told_to_wait_by_its_provider_holds_nobody_up() -> None:
    busy = "busy-model"
    lives = Lives()
    lives.live(tasks_for([busy, "a0"]), kill_after_seconds=0.5)
    lives.live(kill_after_seconds=0.5)
    lives.is_busy = True

    async def send_another(manager: AsyncAgentSessionManager) -> None:
        begun = asyncio.get_running_loop().time()
        await manager.create_agent("b")
        await manager.run_task("b", "go")
        assert asyncio.get_running_loop().time() - begun < 10

    assert lives.live(send_another)
    assert set(lives.states().values()) == {TaskState.COMPLETED}
    lives.close()


def test_what_becomes_of_a_task_that_is_held_back_is_told() -> None:
    lives = Lives()
    told: list[object] = []

    async def look(manager: AsyncAgentSessionManager) -> None:
        await manager.flushed()
        told.extend(
            note.params["error"]["code"]
            for note in await manager.notifications()
            if note.name == "async.task.restarting"
        )
        assert manager.get_agent_status("deadly-model").state is AgentState.ACTIVE
        await manager.cancel_task("deadly-model")
        assert manager._session.kernel.timers.keys == []  # nobody waits for the end of its rest

    lives.live(tasks_for(["deadly-model"]))
    for _ in range(2):
        lives.live()
    assert lives.live(look)
    assert told == ["crash_limit"]
    assert lives.states() == {"deadly-model": TaskState.CANCELLED}
    assert lives.deaths == 3
    lives.close()

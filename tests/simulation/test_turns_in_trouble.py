"""Turns when agents are paused, stopped and cancelled, when calls fail, and when the process dies."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.core.resources import ResourceRequest
from ai_whisperer.runtime.agents.task import RunningTask
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.waiting.turns import Turns
from tests.simulation.stage import call, play, play_over_crash, results_of, round_of, until
from tests.simulation.turn_stage import (
    Things,
    assert_nothing_is_left,
    by_prompt,
    done,
    give,
    now,
    paused_for,
    play_things,
)


def test_a_paused_agent_is_passed_and_has_its_old_place_when_it_is_resumed() -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="write x", b="write x", c="write x", d="write x")
        await asyncio.sleep(5)
        await manager.pause_agent("b")
        await until(lambda: len(things.ended) == 1)
        assert paused_for(manager, "b") == ("x",)
        await manager.resume_agent("b")
        await done(manager, *"abcd")
        assert [name for name, _ in things.began] == ["a", "c", "b", "d"]

    play_things(scenario)


def test_a_reader_need_not_wait_for_a_writer_that_is_paused_before_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="read x 100", b="write x", c="read x")
        await asyncio.sleep(5)
        assert paused_for(manager, "c") == ("x",)
        await manager.pause_agent("b")
        await done(manager, "c")
        assert now() < 20
        await manager.resume_agent("b")
        await done(manager, "a", "b")

    play_things(scenario)


def test_an_agent_that_is_paused_when_its_turn_comes_does_not_begin() -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="write x", b="write x")
        await asyncio.sleep(5)
        await manager.pause_agent("b")
        await asyncio.sleep(100)
        assert [name for name, _ in things.began] == ["a"]
        assert [each.waiting[0].agent_id for each in manager.list_resources() if not each.holders] == ["b"]
        await manager.resume_agent("b")
        await done(manager, "a", "b")

    play_things(scenario)


@pytest.mark.parametrize("who", ["b", "a"])
def test_a_task_that_is_cancelled_leaves_the_line_or_frees_what_it_holds(who: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="read x 100", b="write x", c="read x")
        await asyncio.sleep(5)
        await manager.cancel_task(who)
        await done(manager, "c")
        assert now() < 30
        await done(manager, *({"a", "b"} - {who}))

    play_things(scenario)


@pytest.mark.parametrize("seed", range(5))
def test_a_call_that_is_cancelled_when_it_has_its_turn_and_has_not_run_frees_what_it_has(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Turns._begin

    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        cancelling: list[asyncio.Task[Any]] = []

        def begin_and_cancel(self: Turns, decision: Any, request: ResourceRequest, *, waited: bool) -> None:
            begin(self, decision, request, waited=waited)
            if request.task_id == "b":
                cancelling.append(asyncio.ensure_future(manager.cancel_task("b")))

        monkeypatch.setattr(Turns, "_begin", begin_and_cancel)
        await give(manager, a="write x", b="write x", c="write x")
        await done(manager, "a", "c")
        assert now() < 25
        await asyncio.gather(*cancelling)

    play_things(scenario, seed=seed)


@pytest.mark.parametrize("who", ["b", "a"])
def test_an_agent_that_is_stopped_leaves_the_line_or_frees_what_it_holds(who: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="read x 100", b="write x", c="read x")
        await asyncio.sleep(5)
        await manager.stop_agent(who)
        assert paused_for(manager, who) == ()
        await done(manager, "c")
        assert now() < 30
        await done(manager, *({"a", "b"} - {who}))

    play_things(scenario)


def test_the_deadline_of_a_task_ends_its_wait_and_nothing_else_does() -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="write x 1000")
        for name in "bc":
            await manager.create_agent(name, {"limits": {"switch_timeout_seconds": 5}})
        late = await manager.send_task("b", "write x", timeout_seconds=50)
        await manager.send_task("c", "write x", task_id="c")
        ended = await manager.wait_task(late)
        assert ended.state is TaskState.FAILED
        assert round(now()) == 50
        await done(manager, "a", "c")

    play_things(scenario)


def test_a_call_that_fails_frees_what_it_touched() -> None:
    @tool(touches="write x")
    async def fail() -> str:
        """Fail."""
        await asyncio.sleep(5)
        raise ValueError

    say = lambda request: results_of(request)[-1] if round_of(request) else call("fail")  # noqa: E731

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await give(manager, a="go", b="go")
        await manager.at_rest()
        assert round(now()) == 12
        assert_nothing_is_left(manager)

    play(scenario, say, tools=[fail])


def test_a_session_is_closed_at_once_while_agents_wait_for_their_turn() -> None:
    things = Things()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await give(manager, a="write x 3", b="write x", c="write x")
        await asyncio.sleep(2)
        await manager.close()
        assert now() < 5
        assert [name for name, _ in things.began] == ["a"]

    play(scenario, by_prompt, tools=things.tools)


@pytest.mark.parametrize("name", ["write", "rewrite"])
@pytest.mark.parametrize("seed", range(3))
def test_those_who_waited_when_the_process_died_ask_again_and_all_end(name: str, seed: int) -> None:
    things = Things()

    async def before(manager: AsyncAgentSessionManager) -> None:
        await give(manager, a=f"{name} x", b=f"{name} x", c=f"{name} x")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        things.writers.clear()
        repeated = name == "rewrite"
        assert not (await manager._session.kernel.store.load("default")).waits
        await done(manager, *("abc" if repeated else "bc"))
        assert len(things.ended) == (3 if repeated else 2)
        first = await manager.wait_task("a")
        assert first.result is not None
        assert ("Outcome unknown" in first.result.final) is not repeated
        assert_nothing_is_left(manager)

    play_over_crash(before, after, by_prompt, crash_after_seconds=5, tools=things.tools, seed=seed)


def test_a_task_does_not_count_as_running_while_it_waits_so_that_deaths_of_the_process_are_not_blamed_on_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="write x", b="write x")
        await asyncio.sleep(5)
        assert [(await manager.get_task(name)).attempts for name in "ab"] == [1, 0]
        assert [task.attempts for task in (await manager._session.kernel.store.load("default")).tasks] == [1, 0]
        await until(lambda: len(things.began) == 2)
        assert (await manager.get_task("b")).attempts == 1
        await done(manager, "a", "b")

    play_things(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_a_loop_that_crashes_while_one_of_its_calls_waits_asks_again_when_it_goes_on(seed: int) -> None:
    things = Things()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await give(manager, a="write x 20", b="write x", c="write x")
        await asyncio.sleep(5)
        loop = manager._session.roster.running["b"]
        decision = manager._session.kernel.decide("test")
        loop.running.crash(decision, RuntimeError("a fault"))
        decision.then(loop.plan_restart)
        await decision.commit()
        await done(manager, *"abc")
        assert_nothing_is_left(manager)

    play(scenario, by_prompt, tools=things.tools, seed=seed)


def test_a_loop_that_breaks_when_its_turn_comes_harms_neither_who_had_it_before_nor_who_is_next(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    advance = RunningTask.advance

    def broken(running: RunningTask, decision: Decision) -> Any:
        if running.journal.task.id == "b" and things.ended:
            raise RuntimeError("a fault in the loop of b")
        return advance(running, decision)

    things = Things()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("b", {"supervision": {"max_restarts": 0}})
        await manager.create_agent("a")
        await manager.create_agent("c")
        for name in "abc":
            await manager.send_task(name, "write x", task_id=name)
            await asyncio.sleep(0.01)
        await done(manager, "a", "c")
        ended = await manager.wait_task("b")
        assert ended.state is TaskState.DEAD
        assert_nothing_is_left(manager)
        assert manager._session.slots.used == 0

    monkeypatch.setattr(RunningTask, "advance", broken)
    play(scenario, by_prompt, tools=things.tools)
    assert "loop b failed" in caplog.text

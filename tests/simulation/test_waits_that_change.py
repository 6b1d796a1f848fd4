"""Calls that wait, and of which something else becomes meanwhile: their rules and their tools change while they do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState, ToolContext, tool
from ai_whisperer.domain.approvals import ApprovalState
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import ClosedError, StateError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.runtime.agents.task import RunningTask
from ai_whisperer.tools.function import Tool
from tests.simulation.stage import call, calls, play, play_over_crash, prompt_of, round_of, until
from tests.simulation.test_approvals import Till, asked, one_that_waits, pays_once
from tests.simulation.turn_stage import Things, assert_nothing_is_left, by_prompt, done, give, now, paused_for

Scenario = Callable[[AsyncAgentSessionManager], Any]


def writer(touches: Any, *, needs_approval: Any = False) -> Tool:
    """Another `write` than that of the stage."""

    @tool(touches=touches, needs_approval=needs_approval)
    async def write(name: str, context: ToolContext, seconds: float = 10) -> str:
        """Write a thing."""
        await asyncio.sleep(seconds)
        return "touched"

    return write


async def give_own(manager: AsyncAgentSessionManager, name: str, prompt: str, *, needs_approval: Any = False) -> None:
    """Work for a new agent with a tool of its own."""
    await manager.create_agent(name, tools=[writer("write {name}", needs_approval=needs_approval)])
    await manager.send_task(name, prompt, task_id=name)
    await asyncio.sleep(0.01)


async def one_behind_another(manager: AsyncAgentSessionManager, *, needs_approval: Any = False) -> None:
    """Three agents with tools of their own, of which the second and the third wait for the first."""
    for name in "abc":
        await give_own(manager, name, "write x", needs_approval=needs_approval)
    await asyncio.sleep(5)
    assert paused_for(manager, "b") == ("x",)


def fail() -> bool:
    raise ValueError


@pytest.mark.parametrize("by", ["a function", "a function that fails", "a stricter tool"])
def test_a_call_that_comes_to_need_a_yes_while_it_waits_for_its_turn_lets_others_pass_and_runs_on_the_yes(
    by: str,
) -> None:
    state = {"strict": False}

    def wants(_: Any) -> bool:
        return state["strict"] and (by == "a function" or fail())

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await one_behind_another(manager, needs_approval=wants)
        if by == "a stricter tool":
            await manager.give_tools("b", [writer("write {name}", needs_approval=True)])
        else:
            state["strict"] = True
        await asked(manager, count=1 if by == "a stricter tool" else 2)
        assert manager.get_agent_status("b").waiting_for == ("approval:b.2",)
        assert paused_for(manager, "b") == ()
        if by == "a stricter tool":
            await done(manager, "a", "c")
        for approval in await manager.list_approvals():
            await manager.approve(approval.id)
        await done(manager, *"abc")
        assert_nothing_is_left(manager)

    play(scenario, by_prompt)


def test_a_call_that_was_allowed_takes_its_turn_after_those_that_wait_already() -> None:
    began: list[str] = []

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await one_behind_another(manager)
        await manager.give_tools("b", [writer("write {name}", needs_approval=True)])
        await asked(manager)
        await manager.approve("b.2")
        await asyncio.sleep(1)
        assert paused_for(manager, "b") == ("x",)
        await done(manager, *"abc")
        began.extend(
            note.params["taskId"]
            for note in await manager.notifications(limit=1000)
            if note.name == "step.started" and note.params["kind"] == "tool"
        )
        assert_nothing_is_left(manager)

    play(scenario, by_prompt)
    assert began == ["a", "c", "b"]


def test_a_loop_that_gets_nowhere_is_a_dead_letter_and_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_agent("bob")
        await manager.send_task("alice", "go", task_id="t")
        await asked(manager)
        monkeypatch.setattr(RunningTask, "only_waits", lambda _: False)  # a fault such as never must be
        manager._session.roster.running["t"].take_up()
        stuck = await manager.wait_task("t")
        assert (stuck.state, stuck.error and stuck.error.code) == (TaskState.DEAD, "internal")
        assert stuck.restarts
        stored = await manager._session.kernel.store.task("default", "t")
        assert stored is not None
        assert stored.state is TaskState.DEAD
        assert (await manager.get_approval("t.2")).state is ApprovalState.WITHDRAWN
        assert_nothing_is_left(manager)
        await manager.send_task("bob", "go", task_id="u")
        await asked(manager)
        await manager.refuse("u.2")

    play(scenario, pays_once, tools=Till().tools())
    assert "Nothing comes of the calls of task t" in caplog.text


def waits_for_a_lock(request: ModelRequest) -> Answer | str:
    return call("acquire_lock", name="L", ttl_seconds=100, wait_seconds=20) if round_of(request) == 0 else "end"


def test_a_task_that_waits_for_a_person_fails_when_it_may_not_have_so_many_steps_any_more() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)
        await manager.set_limits({"max_steps_per_task": 1})
        ended = await manager.wait_task("t")
        assert (ended.state, ended.error and ended.error.code) == (TaskState.FAILED, "step_limit")
        with pytest.raises(StateError, match="withdrawn already"):
            await manager.refuse("t.2")
        assert_nothing_is_left(manager)

    play(scenario, pays_once, tools=Till().tools())


def test_a_wait_ends_with_its_result_though_the_task_may_not_have_so_many_steps_any_more() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)
        await manager.pause_agent("alice")  # so that it does not fail at once
        await manager.set_limits({"max_steps_per_task": 1}, agent_id="alice")
        assert (await manager.refuse("t.2")).state is ApprovalState.REFUSED
        assert [step.number for step in await manager.list_steps("t")] == [1, 2]
        await manager.resume_agent("alice")
        assert (await manager.wait_task("t")).state is TaskState.FAILED
        assert_nothing_is_left(manager)

    play(scenario, pays_once, tools=Till().tools())


@pytest.mark.parametrize("state", ["paused", "working"])
def test_a_lock_is_not_left_behind_by_a_task_that_may_not_have_so_many_steps_any_more(state: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        lock = await manager.acquire_lock("L", ttl_seconds=50)
        await manager.send_task("alice", "go", task_id="t")
        await asyncio.sleep(3)
        if state == "paused":
            await manager.pause_agent("alice")
        await manager.set_limits({"max_steps_per_task": 1})
        await manager.release_lock("L", lock.token)
        if state == "paused":
            assert [each.task_id for each in manager.list_locks()] == ["t"]
            await manager.resume_agent("alice")
        assert (await manager.wait_task("t")).state is TaskState.FAILED
        assert not manager.list_locks()
        assert_nothing_is_left(manager)

    play(scenario, waits_for_a_lock)


def writes_again_and_again(request: ModelRequest) -> Answer | str:
    if prompt_of(request) != "again":
        return by_prompt(request)
    if round_of(request) < 4:
        return calls(("write", {"name": "x", "seconds": 1}))
    return calls(("nap", {"seconds": 500})) if round_of(request) == 4 else "end"


def test_a_call_that_is_not_made_again_gives_up_its_place_in_the_line() -> None:
    things = Things()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await give(manager, a="again")
        await until(lambda: len(things.began) == 3)
        await give(manager, b="write x 50", c="write x 5")
        await asyncio.sleep(10)
        assert paused_for(manager, "a") == ("x",)
        await manager.set_limits({"max_same_calls": 2})
        await done(manager, "b", "c")
        assert now() < 100
        result = (await manager.list_steps("a"))[7].result
        assert result is not None
        assert result.content.startswith("Not run again")
        assert not (await manager.get_task("a")).state.ended
        assert_nothing_is_left(manager)

    play(scenario, writes_again_and_again, tools=things.tools)


async def take_the_tool_away(manager: AsyncAgentSessionManager) -> None:
    manager._session.roster.agents["b"].registry._tools.pop("write")  # as an MCP server may


async def give_one_that_touches_nothing(manager: AsyncAgentSessionManager) -> None:
    await manager.give_tools("b", [writer(())])


async def give_one_that_touches_nothing_now(manager: AsyncAgentSessionManager) -> None:
    await manager.give_tools("b", [writer(lambda _: [])])


async def give_one_that_cannot_say(manager: AsyncAgentSessionManager) -> None:
    await manager.give_tools("b", [writer(lambda _: fail())])


@pytest.mark.parametrize(
    "change",
    [
        take_the_tool_away,
        give_one_that_touches_nothing,
        give_one_that_touches_nothing_now,
        give_one_that_cannot_say,
    ],
)
def test_a_call_whose_tool_is_another_now_gives_up_its_place_in_the_line(change: Scenario) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await one_behind_another(manager)
        await change(manager)

        async def is_so() -> bool:
            return len(await manager.list_steps("a")) > 2

        await until(is_so)
        await asyncio.sleep(0.1)
        assert not manager._session.waits.of_task("b")
        await done(manager, "a", "c")
        assert now() < 30
        assert (await manager.wait_task("b")).state is TaskState.COMPLETED
        assert_nothing_is_left(manager)

    play(scenario, by_prompt)


def test_a_call_whose_tool_touches_something_else_now_waits_for_that() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await one_behind_another(manager)
        await give_own(manager, "d", "write y 100")
        await manager.give_tools("b", [writer("write y")])
        await done(manager, "a", "c")
        assert paused_for(manager, "b") == ("y",)
        await done(manager, "b", "d")
        assert_nothing_is_left(manager)

    play(scenario, by_prompt)


@pytest.mark.parametrize("terms", [{"timeout_seconds": 60}, {}])
def test_an_approval_is_expired_when_the_time_of_its_task_is_over(terms: Any) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {} if terms else {"limits": {"max_task_seconds": 60}})
        await manager.send_task("alice", "go", task_id="t", **terms)
        await manager.wait_task("t")
        assert round(now()) == 60
        assert (await manager.get_approval("t.2")).state is ApprovalState.EXPIRED

    play(scenario, pays_once, tools=Till().tools())


def test_nothing_is_decided_from_another_event_loop() -> None:
    model = FunctionModel(pays_once)
    manager = AsyncAgentSessionManager(tools=Till().tools(), model_factory=lambda _: model)

    async def first() -> None:
        await manager.open()
        await one_that_waits(manager)

    async def second() -> None:
        for decide in (manager.approve, manager.refuse):
            with pytest.raises(ClosedError, match="another event loop"):
                await decide("t.2")

    asyncio.run(first())
    asyncio.run(second())
    assert manager._open is not None
    (pending,) = manager._open[0].approvals.pending()
    assert pending.state is ApprovalState.PENDING


def test_nothing_can_be_decided_about_a_call_whose_task_has_just_ended() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)
        cancelling = asyncio.ensure_future(manager.cancel_task("t"))
        await asyncio.sleep(0)
        assert not await manager.list_approvals()
        assert not cancelling.done()  # it is not in the store yet
        for decide in (manager.approve, manager.refuse):
            with pytest.raises(StateError, match="withdrawn already"):
                await decide("t.2")
        await cancelling
        assert (await manager.get_approval("t.2")).state is ApprovalState.WITHDRAWN
        assert not manager._session.approvals._leaving

    play(scenario, pays_once, tools=Till().tools())


def test_a_yes_on_which_a_call_has_run_is_not_withdrawn_when_its_task_is_cancelled_later() -> None:
    till = Till()

    async def before(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)
        await manager.set_limits({"max_steps_per_task": 2})
        await manager.approve("t.2")
        assert (await manager.wait_task("t")).state is TaskState.FAILED
        await manager.stop_agent("alice")
        await manager.retry_task("t")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert (await manager.get_task("t")).state is TaskState.QUEUED
        await manager.cancel_task("t")
        assert till.paid == {"t.2": 1}
        assert (await manager.get_approval("t.2")).state is ApprovalState.APPROVED

    play_over_crash(before, after, pays_once, crash_after_seconds=100, tools=till.tools())

"""Tools that touch the same thing take turns; whoever waits is paused for it and goes on by itself."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, calls, play, prompt_of, results_of, round_of
from tests.simulation.turn_stage import (
    Things,
    assert_nothing_is_left,
    by_prompt,
    done,
    give,
    now,
    paused_for,
    play_things,
    told,
)


@pytest.mark.parametrize("seed", range(5))
def test_writers_of_one_thing_take_turns_in_the_order_in_which_they_came(seed: int) -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="write x", b="write x", c="write x", d="write y")
        await done(manager, "a", "b", "c", "d")
        assert [name for name, _ in things.began] == ["a", "d", "b", "c"]
        assert [round(at) for _, at in things.began] == [1, 1, 11, 21]

    play_things(scenario, seed=seed)


@pytest.mark.parametrize("seed", range(5))
def test_who_is_next_begins_before_anything_else_happens(seed: int) -> None:
    gate = asyncio.Event()

    @tool(touches="write {thing}")
    async def hold(thing: str) -> str:
        """Hold a thing until all are let go at once."""
        await gate.wait()
        return thing

    say = lambda request: "end" if round_of(request) else call("hold", thing=prompt_of(request))  # noqa: E731

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name, thing in {"a": "x", "b": "y", "c": "z", "d": "x", "e": "y", "f": "z"}.items():
            await manager.create_agent(name)
            await manager.send_task(name, thing, task_id=name)
            await asyncio.sleep(5)
        gate.set()
        for name in "abcdef":
            await manager.wait_task(name)
        kinds = ("step.finished", "resource.granted")
        notes = [note.params for note in await manager.notifications(limit=1_000) if note.name in kinds]
        steps = [params["stepId"] for params in notes if params.get("kind") != "model"]
        for ended, begun in (("a.2", "d.2"), ("b.2", "e.2"), ("c.2", "f.2")):
            assert steps[steps.index(ended) + 1] == begun, steps

    play(scenario, say, tools=[hold], seed=seed)


def test_readers_of_one_thing_read_together_and_the_writer_between_them_is_not_passed() -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="read x", b="read x", c="write x", d="read x", e="read x")
        await done(manager, *"abcde")
        assert [name for name, _ in things.began[:3]] == ["a", "b", "c"]
        assert [round(at) for _, at in things.began] == [1, 1, 11, 21, 21]
        assert things.most_readers == 2

    play_things(scenario)


def test_who_waits_for_its_turn_shows_what_it_is_paused_for_and_who_is_before_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="read x", b="copy x y", c="copy y x")
        await asyncio.sleep(5)
        assert [paused_for(manager, name) for name in "abc"] == [(), (), ("x", "y")]
        assert manager.get_agent_status("c").state is AgentState.ACTIVE
        assert manager.get_agent_status("c").waiting_for == ()
        x, y = manager.list_resources()
        assert (x.resource, [(use.agent_id, use.access) for use in x.holders]) == ("x", [("a", "read"), ("b", "read")])
        assert [(use.agent_id, use.access, use.step_id) for use in x.waiting] == [("c", "write", "c.2")]
        assert [(use.agent_id, use.access) for use in (*y.holders, *y.waiting)] == [("b", "write"), ("c", "read")]
        await done(manager, *"abc")
        (waiting,), (granted,) = await told(manager, "resource.waiting"), await told(manager, "resource.granted")
        assert waiting == {
            "agentId": "c",
            "taskId": "c",
            "stepId": "c.2",
            "resources": ["x", "y"],
            "access": "write",
            "holders": ["a", "b"],
        }
        assert granted["stepId"] == "c.2"
        assert round(granted["waitedSeconds"]) == 10

    play_things(scenario)


def test_calls_that_meet_nobody_leave_no_notification() -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="write x", b="write y", c="read z", d="read z")
        await done(manager, *"abcd")
        assert not await told(manager, "resource.waiting") + await told(manager, "resource.granted")

    play_things(scenario)


def test_another_agent_can_see_what_one_is_paused_for() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id != "onlooker":
            return by_prompt(request)
        return results_of(request)[-1] if round_of(request) else call("agent_status", agent="b")

    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="write x", b="write x")
        await asyncio.sleep(3)
        await manager.create_agent("onlooker")
        assert '"paused_for":["x"]' in await manager.run_task("onlooker", "look")

    play_things(scenario, say=say)


def test_files_are_the_same_for_all_agents_and_are_shown_without_the_path_on_disk() -> None:
    @tool(touches="write file:{path}")
    async def append(path: str) -> str:
        """Append to a file."""
        await asyncio.sleep(10)
        return "appended"

    say = lambda request: "end" if round_of(request) else call("append", path=prompt_of(request))  # noqa: E731

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        folders = {"folders": {"shared": "write"}}
        prompts = {"a": "shared/report.md", "b": "./shared/../shared/report.md", "c": "report.md", "d": "report.md"}
        for name, path in prompts.items():
            await manager.create_agent(name, folders)
            await manager.send_task(name, path, task_id=name)
        await asyncio.sleep(5)
        paused = [name for name in "abcd" if paused_for(manager, name)]
        assert paused in (["a"], ["b"])
        assert paused_for(manager, paused[0]) == ("file:shared/report.md",)
        listed = [each.resource for each in manager.list_resources()]
        assert sorted(listed) == ["file:agents/c/report.md", "file:agents/d/report.md", "file:shared/report.md"]

    play(scenario, say, tools=[append])


def test_a_tool_that_cannot_say_what_it_touches_is_not_run_and_the_model_is_told() -> None:
    @tool(touches=lambda values: [f"change {values['name']}"])
    async def unclear(name: str) -> str:
        """Touch a thing somehow."""
        raise AssertionError(name)

    @tool(touches="write file:{path}")
    async def outside(path: str) -> str:
        """Write a file."""
        raise AssertionError(path)

    def say(request: ModelRequest) -> Answer | str:
        if round_of(request):
            return " | ".join(results_of(request))
        return calls(("unclear", {"name": "x"}), ("outside", {"path": "../../etc/passwd"}))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        answer = await manager.run_task("a", "go")
        assert "It must say 'read NAME' or 'write NAME'" in answer
        assert "leads out of your folders" in answer
        assert_nothing_is_left(manager)

    play(scenario, say, tools=[unclear, outside])


@pytest.mark.parametrize("seed", range(5))
def test_calls_of_one_answer_that_touch_the_same_take_turns_in_their_order(seed: int) -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="write x 1 and read x 2 and read x 2 and write x 3 and nap 1")
        await done(manager, "a")
        assert [round(at) for _, at in things.began] == [1, 2, 2, 4]
        assert things.most_readers == 2

    play_things(scenario, seed=seed)


@pytest.mark.parametrize("seed", range(5))
def test_who_is_busy_with_another_call_of_the_same_answer_is_passed(seed: int) -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="write x 10", b="nap 100 and write x", c="write x")
        await done(manager, "a", "c")
        assert now() < 30
        assert paused_for(manager, "b") == ("x",)
        await done(manager, "b")

    play_things(scenario, seed=seed)


def test_who_begins_to_be_busy_while_it_waits_is_passed_too() -> None:
    """b waits for x, and gets y before that: those behind it at x need not wait until it is done with y."""

    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, r="read x 30", w="write y 5", b="write x 1 and write y 100", c="read x 10")
        await done(manager, "c")
        assert now() < 20
        await done(manager, "r", "w", "b")

    play_things(scenario)


def test_two_that_touch_two_things_in_opposite_order_both_end() -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="copy x y and copy y x", b="copy y x and copy x y")
        await done(manager, "a", "b")
        assert now() < 45

    play_things(scenario)


@pytest.mark.parametrize("length", [1.0, 7.0])
def test_nobody_waits_longer_than_those_before_it_take(length: float) -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        names = [f"agent{number}" for number in range(40)]
        for name in names:
            await manager.create_agent(name)
        for name in names:
            await manager.send_task(name, f"write {'xyz'[len(name) % 3]} {length}", task_id=name)
        await done(manager, *names)
        waited = {each["taskId"]: each["waitedSeconds"] for each in await told(manager, "resource.granted")}
        assert len(waited) == 40 - 2
        order: Counter[str] = Counter()
        for name, _ in things.began:
            thing = "xyz"[len(name) % 3]
            assert waited.get(name, 0.0) <= order[thing] * length + 0.1
            order[thing] += 1

    play_things(scenario)

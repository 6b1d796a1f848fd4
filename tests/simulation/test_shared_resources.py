"""Tools that touch the same thing take turns; whoever waits is paused for it and goes on by itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState, ToolContext, tool
from ai_whisperer.conversation import Answer
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.tools.function import Tool
from tests.simulation.stage import call, calls, play, play_over_crash, prompt_of, results_of, round_of, until

Call = tuple[str, dict[str, object]]


class Things:
    """Tools that touch things, and a witness of who touched what and when."""

    def __init__(self) -> None:
        self.began: list[tuple[str, float]] = []
        self.ended: list[tuple[str, float]] = []
        self.writers: Counter[str] = Counter()
        self.readers: Counter[str] = Counter()
        self.most_readers = 0

    @property
    def tools(self) -> list[Tool]:
        @tool(touches="write {name}")
        async def write(name: str, context: ToolContext, seconds: float = 10) -> str:
            """Write a thing."""
            return await self._touch(context, [name], [], seconds)

        @tool(touches="write {name}", idempotent=True)
        async def rewrite(name: str, context: ToolContext, seconds: float = 10) -> str:
            """Write a thing; to do it twice does no harm."""
            return await self._touch(context, [name], [], seconds)

        @tool(touches="read {name}")
        async def read(name: str, context: ToolContext, seconds: float = 10) -> str:
            """Read a thing."""
            return await self._touch(context, [], [name], seconds)

        @tool(touches=["read {source}", "write {target}"])
        async def copy(source: str, target: str, context: ToolContext, seconds: float = 10) -> str:
            """Read a thing and write another."""
            return await self._touch(context, [target], [source], seconds)

        @tool
        async def nap(seconds: float) -> str:
            """Let time pass."""
            await asyncio.sleep(seconds)
            return "rested"

        return [write, rewrite, read, copy, nap]

    async def _touch(self, context: ToolContext, written: list[str], read: list[str], seconds: float) -> str:
        for name in written:
            assert not self.writers[name] + self.readers[name], f"two at {name} at once"
            self.writers[name] += 1
        for name in read:
            assert not self.writers[name], f"one reads {name} while another writes it"
            self.readers[name] += 1
            self.most_readers = max(self.most_readers, self.readers[name])
        self.began.append((context.agent_id, now()))
        try:
            await asyncio.sleep(seconds)
        finally:
            self.writers.subtract(written)
            self.readers.subtract(read)
        self.ended.append((context.agent_id, now()))
        return "touched"


def now() -> float:
    return asyncio.get_running_loop().time()


def by_prompt(request: ModelRequest) -> Answer | str:
    """The prompt says what to do: `write x`, or several such with `and` between them, side by side; then the end."""
    if round_of(request):
        return "; ".join(results_of(request))
    wanted: list[Call] = []
    for part in prompt_of(request).split(" and "):
        name, *words = part.split()
        match name:
            case "copy":
                wanted.append((name, {"source": words[0], "target": words[1]}))
            case "nap":
                wanted.append((name, {"seconds": float(words[0])}))
            case "lock":
                wanted.append(("acquire_lock", {"name": words[0], "ttl_seconds": 5000}))
            case _:
                wanted.append((name, {"name": words[0], **({"seconds": float(words[1])} if words[1:] else {})}))
    return calls(*wanted)


async def give(manager: AsyncAgentSessionManager, **prompts: str) -> None:
    """One task for each of these new agents, one after the other. It has the name of the agent."""
    for name, prompt in prompts.items():
        await manager.create_agent(name, {"limits": {"max_concurrent_tasks": 5}})
        await manager.send_task(name, prompt, task_id=name)
        await asyncio.sleep(0.01)


async def done(manager: AsyncAgentSessionManager, *names: str) -> None:
    for name in names:
        ended = await manager.wait_task(name)
        assert ended.state is TaskState.COMPLETED, ended.error
        assert ended.result is not None
        assert "touched" in ended.result.final, ended.result.final


def paused_for(manager: AsyncAgentSessionManager, name: str) -> tuple[str, ...]:
    return manager.get_agent_status(name).paused_for


def told(manager: AsyncAgentSessionManager, name: str) -> list[dict[str, Any]]:
    return [note.params for note in manager.notifications(limit=10_000) if note.name == name]


def assert_nothing_is_left(manager: AsyncAgentSessionManager) -> None:
    workspace = manager._workspace
    assert manager.list_resources() == []
    assert not workspace.waits._waits
    assert not workspace.admission.resources._lines._of_task


def play_things(scenario: Callable[[AsyncAgentSessionManager, Things], Any], **settings: Any) -> None:
    things = Things()

    async def run(manager: AsyncAgentSessionManager) -> None:
        await scenario(manager, things)
        await manager.at_rest()
        assert_nothing_is_left(manager)

    play(run, settings.pop("say", by_prompt), tools=things.tools, **settings)


@pytest.mark.parametrize("seed", range(5))
def test_writers_of_one_thing_take_turns_in_the_order_in_which_they_came(seed: int) -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="write x", b="write x", c="write x", d="write y")
        await done(manager, "a", "b", "c", "d")
        assert [name for name, _ in things.began] == ["a", "d", "b", "c"]
        assert [round(at) for _, at in things.began] == [1, 1, 11, 21]

    play_things(scenario, seed=seed)


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
        (waiting,), (granted,) = told(manager, "resource.waiting"), told(manager, "resource.granted")
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
        assert not told(manager, "resource.waiting") + told(manager, "resource.granted")

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
    @tool(touches="change {name}")
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
        waited = {each["taskId"]: each["waitedSeconds"] for each in told(manager, "resource.granted")}
        assert len(waited) == 40 - 2
        order: Counter[str] = Counter()
        for name, _ in things.began:
            thing = "xyz"[len(name) % 3]
            assert waited.get(name, 0.0) <= order[thing] * length + 0.1
            order[thing] += 1

    play_things(scenario)


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
        await give(manager, a="read x", b="write x", c="read x")
        await asyncio.sleep(5)
        await manager.cancel_task(who)
        await done(manager, "c", *({"a", "b"} - {who}))
        assert now() < 30

    play_things(scenario)


@pytest.mark.parametrize("who", ["b", "a"])
def test_an_agent_that_is_stopped_leaves_the_line_or_frees_what_it_holds(who: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager, things: Things) -> None:
        await give(manager, a="read x", b="write x", c="read x")
        await asyncio.sleep(5)
        await manager.stop_agent(who)
        assert paused_for(manager, who) == ()
        await done(manager, "c", *({"a", "b"} - {who}))
        assert now() < 30

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
        assert not manager._workspace.store.load("default").waits
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
        assert [manager.get_task(name).attempts for name in "ab"] == [1, 0]
        assert [task.attempts for task in manager._workspace.store.load("default").tasks] == [1, 0]
        await until(lambda: len(things.began) == 2)
        assert manager.get_task("b").attempts == 1
        await done(manager, "a", "b")

    play_things(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_a_loop_that_crashes_while_one_of_its_calls_waits_asks_again_when_it_goes_on(seed: int) -> None:
    things = Things()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await give(manager, a="write x 20", b="write x", c="write x")
        await asyncio.sleep(5)
        loop = manager._workspace.running["b"]
        decision = manager._workspace.decide("test")
        loop.running.crash(decision, RuntimeError("a fault"))
        decision.then(loop.plan_restart)
        await decision.commit()
        await done(manager, *"abc")
        assert_nothing_is_left(manager)

    play(scenario, by_prompt, tools=things.tools, seed=seed)

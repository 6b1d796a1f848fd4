"""Circles over questions, locks, turns and tools that wait for tasks: refused at once, and all else ends."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.tools.function import Tool
from tests.simulation.stage import calls, play, prompt_of, results_of, round_of
from tests.simulation.test_wait_circles import Call, acquire, assert_nothing_is_left, nap_until

SWITCH, LOCK, TURN, TOOL = "switch", "lock", "turn", "tool"
AGAIN = "again"
"""What the first one is told by the last: to this it has an answer at once, but not before its turn."""


class Pattern:
    """Agents each of which waits for the next in a way of its own, the last one for the first.

    They begin to wait one after the other, those that wait for their turn last: what they want is held by then.
    """

    def __init__(self, kinds: tuple[str, ...], number: int) -> None:
        self.kinds = kinds
        self.names = [f"{name}{number}" for name in "abcd"[: len(kinds)]]
        places = range(len(kinds))
        self.order = sorted(places, key=lambda place: (kinds[place] == TURN, place))

    @property
    def is_circle(self) -> bool:
        """Only the call of a tool that waits holds what it touches meanwhile; and a question has its answer at once
        unless the one who is asked waits already."""
        following = zip(self.kinds, (*self.kinds[1:], self.kinds[0]), strict=True)
        asked_too_early = TURN in self.kinds and self.kinds[-1] == SWITCH
        return all(then == TOOL for kind, then in following if kind == TURN) and not asked_too_early

    @property
    def circle(self) -> str:
        """As it is told to the one that would close it."""
        last = self.order[-1]
        following = [self.names[(last + step) % len(self.names)] for step in range(len(self.names) + 1)]
        return f"({' → '.join(following)})"

    def is_begun_by_the_user(self, place: int) -> bool:
        return place == 0 or self.kinds[place - 1] in (LOCK, TURN)

    def rounds(self, place: int) -> list[list[Call]]:
        name, kind = self.names[place], self.kinds[place]
        first = [[acquire(f"lock of {name}")]] if self.kinds[place - 1] == LOCK else []
        wait = [self._wait(place)]
        if self.kinds[place - 1] == TURN and kind != TOOL:
            wait.append(("use", {"thing": name, "seconds": 30}))
        return [*first, [("nap_until", {"second": 10.0 * (self.order.index(place) + 1)})], wait]

    def _wait(self, place: int) -> Call:
        name, to = self.names[place], self.names[(place + 1) % len(self.names)]
        what = AGAIN if place == len(self.names) - 1 else "go"
        match self.kinds[place]:
            case "switch":
                return "send_mail_with_switch", {"to_agent": to, "subject": "Question", "body": what}
            case "lock":
                return acquire(f"lock of {to}")
            case "turn":
                return "use", {"thing": to, "seconds": 1}
            case _:
                return "have", {"thing": name, "agent": to, "prompt": what}


def tools_of(managers: list[AsyncAgentSessionManager]) -> list[Tool]:
    @tool(touches="write {thing}")
    async def use(thing: str, seconds: float) -> str:
        """Use a thing for a while."""
        await asyncio.sleep(seconds)
        return f"used {thing}"

    @tool(touches="write {thing}")
    async def have(thing: str, agent: str, prompt: str) -> str:
        """Have another agent do something, and hold a thing meanwhile."""
        return await managers[0].run_task(agent, prompt)

    @tool
    async def just_have(agent: str, prompt: str) -> str:
        """Have another agent do something, and hold nothing meanwhile."""
        return await managers[0].run_task(agent, prompt)

    @tool
    async def just_wait(task: str) -> str:
        """Wait for a task."""
        return str((await managers[0].wait_task(task)).state)

    return [use, have, just_have, just_wait, nap_until]


async def finals(manager: AsyncAgentSessionManager, name: str) -> list[str]:
    tasks = await manager.list_tasks(name)
    assert [task.state for task in tasks] == [TaskState.COMPLETED] * len(tasks)
    return [task.result.final for task in tasks if task.result is not None]


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_pattern_of_waits_either_ends_or_is_refused_at_once(size: int) -> None:
    patterns = [
        Pattern(kinds, at) for at, kinds in enumerate(itertools.product((SWITCH, LOCK, TURN, TOOL), repeat=size))
    ]
    rounds = {name: each.rounds(place) for each in patterns for place, name in enumerate(each.names)}
    managers: list[AsyncAgentSessionManager] = []

    def say(request: ModelRequest) -> Answer | str:
        mine, number = rounds[request.agent_id], round_of(request)
        if AGAIN in prompt_of(request):
            return "fine"
        return calls(*mine[number]) if number < len(mine) else " | ".join(results_of(request))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        managers.append(manager)
        for name in rounds:
            await manager.create_agent(name)
        for pattern in patterns:
            for place, name in enumerate(pattern.names):
                if pattern.is_begun_by_the_user(place):
                    await manager.send_task(name, "go")
        async with asyncio.timeout(10 * size + 50):
            await manager.at_rest()
        for pattern in patterns:
            said = {name: " | ".join(await finals(manager, name)) for name in pattern.names}
            refused = [name for name in pattern.names if "cannot wait" in said[name]]
            closing = pattern.names[pattern.order[-1]]
            if pattern.is_circle:
                assert pattern.circle in said[closing], (pattern.kinds, said)
            else:
                assert refused == [], (pattern.kinds, said)
        await assert_nothing_is_left(manager)
        assert not manager._session.cycles._tool_waits

    play(scenario, say, tools=tools_of(managers), seed=size)


Script = dict[str, list[list[Call]]]


def play_script(
    script: Script, *, begin: list[tuple[float, str, str]], definition: dict[str, object] | None = None
) -> dict[str, str]:
    """What the tasks say in the end; each begins at that second, for that agent, with what it is told as its id.

    What a task is told is what it does in the script; nothing if it is not there.
    """
    managers: list[AsyncAgentSessionManager] = []
    said: dict[str, str] = {}

    def say(request: ModelRequest) -> Answer | str:
        mine, number = script.get(prompt_of(request), []), round_of(request)
        return calls(*mine[number]) if number < len(mine) else " | ".join(results_of(request)) or "fine"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        managers.append(manager)
        for name in "abcd":
            await manager.create_agent(name, definition)
        for second, name, prompt in begin:
            await asyncio.sleep(second - asyncio.get_running_loop().time())
            await manager.send_task(name, prompt, task_id=prompt)
        async with asyncio.timeout(100):
            for _, _, prompt in begin:
                ended = await manager.wait_task(prompt)
                assert ended.result is not None, ended.error
                said[prompt] = ended.result.final
            await manager.at_rest()
        await assert_nothing_is_left(manager)

    play(scenario, say, tools=tools_of(managers))
    return said


def test_a_tool_cannot_wait_for_a_task_in_the_queue_behind_one_that_waits_for_what_the_tool_touches() -> None:
    script: Script = {
        "have": [[("nap_until", {"second": 5.0})], [("have", {"thing": "x", "agent": "b", "prompt": "last"})]],
        "use": [[("nap_until", {"second": 20.0})], [("use", {"thing": "x", "seconds": 1})]],
    }
    said = play_script(script, begin=[(0, "a", "have"), (1, "b", "use")])
    assert said["have"] == "rested | fine"
    assert "You cannot wait for x" in said["use"]
    assert "(b → a → b)" in said["use"]


def test_a_task_in_the_queue_behind_two_is_waited_for_if_one_of_them_goes_on() -> None:
    script: Script = {
        "have": [[("nap_until", {"second": 5.0})], [("have", {"thing": "x", "agent": "b", "prompt": "last"})]],
        "use": [[("nap_until", {"second": 20.0})], [("use", {"thing": "x", "seconds": 1})]],
        "rest": [[("nap_until", {"second": 40.0})]],
    }
    two_at_once: dict[str, object] = {"limits": {"max_concurrent_tasks": 2}}
    said = play_script(script, begin=[(0, "a", "have"), (1, "b", "use"), (2, "b", "rest")], definition=two_at_once)
    assert said == {"have": "rested | fine", "use": "rested | used x", "rest": "rested"}


def test_the_last_of_two_that_keep_a_task_in_the_queue_cannot_wait_for_the_tool_that_waits_for_that_task() -> None:
    script: Script = {
        "have": [[("nap_until", {"second": 5.0})], [("have", {"thing": "x", "agent": "b", "prompt": "last"})]],
        "use": [[("nap_until", {"second": 20.0})], [("use", {"thing": "x", "seconds": 1})]],
        "use too": [[("nap_until", {"second": 40.0})], [("use", {"thing": "x", "seconds": 1})]],
    }
    two_at_once: dict[str, object] = {"limits": {"max_concurrent_tasks": 2}}
    said = play_script(script, begin=[(0, "a", "have"), (1, "b", "use"), (2, "b", "use too")], definition=two_at_once)
    assert said["use"] == "rested | used x"
    assert "(b → a → b)" in said["use too"]


def test_a_tool_cannot_wait_for_one_that_wants_a_lock_whose_holder_waits_for_what_the_tool_touches() -> None:
    script: Script = {
        "hold": [[acquire("L")], [("nap_until", {"second": 20.0})], [("use", {"thing": "x", "seconds": 1})]],
        "have": [[("nap_until", {"second": 5.0})], [("have", {"thing": "x", "agent": "b", "prompt": "want"})]],
        "want": [[acquire("L")]],
    }
    said = play_script(script, begin=[(0, "d", "hold"), (1, "a", "have")])
    assert "(d → a → b → d)" in said["hold"]
    assert "lock 'L'" in said["have"]


def test_a_lock_cannot_be_waited_for_if_its_holder_waits_for_a_tool_that_waits_for_this_task() -> None:
    script: Script = {
        "hold": [[acquire("L")], [("nap_until", {"second": 20.0})], [("use", {"thing": "x", "seconds": 1})]],
        "have": [[("nap_until", {"second": 5.0})], [("have", {"thing": "x", "agent": "b", "prompt": "want"})]],
        "want": [[("nap_until", {"second": 40.0})], [acquire("L")]],
    }
    said = play_script(script, begin=[(0, "d", "hold"), (1, "a", "have")])
    assert "You cannot wait for lock 'L'" in said["have"]
    assert "(b → d → a → b)" in said["have"]
    assert said["hold"].endswith("used x")


def test_a_tool_cannot_wait_for_the_task_that_called_it_nor_for_the_next_of_its_agent() -> None:
    itself = play_script({"wait": [[("just_wait", {"task": "wait"})]]}, begin=[(0, "a", "wait")])
    assert "This tool cannot wait for task wait" in itself["wait"]
    assert "(a → a)" in itself["wait"]
    following = play_script({"have": [[("just_have", {"agent": "a", "prompt": "last"})]]}, begin=[(0, "a", "have")])
    assert "(a → a)" in following["have"]


def test_a_loop_whose_tool_waits_leaves_its_place_to_others_and_there_are_never_more_than_may_be() -> None:
    managers: list[AsyncAgentSessionManager] = []
    at_work = [0, 0]

    @tool
    async def work(seconds: float) -> str:
        """Work for a while."""
        at_work[0] += 1
        at_work[1] = max(at_work)
        await asyncio.sleep(seconds)
        at_work[0] -= 1
        return "worked"

    @tool
    async def have_and_work(agents: str) -> str:
        """Have others work, all at once, and work then."""
        async with asyncio.TaskGroup() as group:
            for name in agents:
                group.create_task(managers[0].run_task(name, "work"))
        return str(await work.function(5))

    def say(request: ModelRequest) -> Answer | str:
        if round_of(request):
            return results_of(request)[-1]
        if prompt_of(request) == "work":
            return calls(("work", {"seconds": 10}))
        return calls(("have_and_work", {"agents": prompt_of(request)}))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        managers.append(manager)
        for name in "abcde":
            await manager.create_agent(name)
        await manager.set_limits({"max_concurrent_loops": 1})
        tasks = [await manager.send_task(name, others) for name, others in (("a", "cd"), ("b", "ce"), ("d", "work"))]
        async with asyncio.timeout(500):
            assert [(await manager.wait_task(task)).state for task in tasks] == [TaskState.COMPLETED] * 3
            await manager.at_rest()
        assert at_work == [0, 1]
        assert manager._session.slots.used == 0
        assert not manager._session.slots._line

    play(scenario, say, tools=[work, have_and_work])


@pytest.mark.parametrize("how", ["it loses patience", "its task is cancelled"])
def test_a_tool_that_waits_no_more_has_its_place_back_or_needs_none(how: str) -> None:
    managers: list[AsyncAgentSessionManager] = []

    @tool
    async def wait_a_little() -> str:
        """Wait for a task of another, but not for long."""
        try:
            async with asyncio.timeout(10 if how == "it loses patience" else 1000):
                return await managers[0].run_task("b", "rest")
        except TimeoutError:
            assert managers[0]._session.slots.used == 2
            return "enough"

    def say(request: ModelRequest) -> Answer | str:
        if round_of(request):
            return results_of(request)[-1]
        return calls(("wait_a_little", {}) if request.agent_id == "a" else ("nap_until", {"second": 50.0}))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        managers.append(manager)
        for name in "ab":
            await manager.create_agent(name)
        await manager.set_limits({"max_concurrent_loops": 1})
        task = await manager.send_task("a", "go")
        if how == "its task is cancelled":
            await asyncio.sleep(10)
            await manager.cancel_task(task)
        else:
            assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        await manager.at_rest()
        assert round(asyncio.get_running_loop().time()) == 51, "b has rested"
        assert manager._session.slots.used == 0
        assert not manager._session.cycles._tool_waits

    play(scenario, say, tools=[wait_a_little, nap_until])

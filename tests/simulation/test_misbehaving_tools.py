"""Tools are anybody's code: whatever they do ends nothing but their call."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState, ToolContext, tool
from ai_whisperer.domain.conversation import Answer, ToolResult
from ai_whisperer.errors import InvalidInputError, ToolError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.tools.returning import as_text, is_large
from tests.simulation.stage import call, play, results_of, round_of


def one_call(request: ModelRequest) -> Answer | str:
    return call("misbehave") if round_of(request) == 0 else results_of(request)[0]


class Odd(BaseException):
    """Not even an Exception."""


def exits() -> str:
    sys.exit(3)


def raises_oddly() -> str:
    raise Odd("odd")


@pytest.mark.parametrize(("function", "told"), [(exits, "SystemExit: 3"), (raises_oddly, "Odd: odd")])
def test_a_plain_function_that_exits_or_raises_oddly_ends_only_its_call(function: Callable[[], str], told: str) -> None:
    async def run() -> None:
        misbehave = tool(name="misbehave")(function)
        async with AsyncAgentSessionManager(tools=[misbehave], model_factory=lambda _: FunctionModel(one_call)) as m:
            await m.create_agent("alice")
            assert await m.run_task("alice", "go") == f"The tool 'misbehave' failed: {told}"

    asyncio.run(run())


def test_a_coroutine_that_raises_oddly_ends_only_its_call() -> None:
    @tool
    async def misbehave() -> str:
        """Raise something odd."""
        raise Odd("odd")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert await manager.run_task("alice", "go") == "The tool 'misbehave' failed: Odd: odd"

    play(scenario, one_call, tools=[misbehave])


def test_a_tool_that_cancels_the_task_it_runs_in_does_not_hold_the_agent_up_for_ever() -> None:
    @tool
    async def misbehave() -> str:
        """Cancel what it should not."""
        current = asyncio.current_task()
        assert current is not None
        current.cancel()
        await asyncio.sleep(1)
        return "never"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert (await manager.run_task("alice", "go")).startswith("Outcome unknown")
        assert manager.get_agent_status("alice").state is AgentState.IDLE

    play(scenario, one_call, tools=[misbehave])


def test_blocking_tools_do_not_wait_for_each_other_and_a_stop_waits_for_its_own() -> None:
    begun = threading.Barrier(21)
    ended: list[str] = []

    @tool
    def block(context: ToolContext) -> str:
        """Block until cancelled."""
        begun.wait(timeout=10)
        while not context.cancelled.is_set():
            threading.Event().wait(0.005)
        ended.append(context.agent_id)
        return "ended"

    def say(request: ModelRequest) -> Any:
        return call("block") if round_of(request) == 0 else "done"

    async def run() -> None:
        async with AsyncAgentSessionManager(tools=[block], model_factory=lambda _: FunctionModel(say)) as manager:
            for n in range(20):
                await manager.create_agent(f"a{n}")
                await manager.send_task(f"a{n}", "go", task_id=f"t{n}")
            await asyncio.to_thread(begun.wait, 10)
            await manager.stop_agent("a0")
            assert ended == ["a0"]
            await asyncio.gather(*(manager.cancel_task(f"t{n}") for n in range(1, 20)))
            assert len(ended) == 20
            assert (await manager.get_task("t1")).state is TaskState.CANCELLED

    asyncio.run(run())


def test_a_blocking_tool_that_ends_while_it_is_stopped_has_its_result_kept() -> None:
    begun = threading.Event()

    @tool
    def misbehave(context: ToolContext) -> str:
        """Do something that cannot be cut short."""
        begun.set()
        while not context.cancelled.is_set():
            threading.Event().wait(0.005)
        return "it happened"

    async def run() -> None:
        model = FunctionModel(one_call)
        async with AsyncAgentSessionManager(tools=[misbehave], model_factory=lambda _: model) as manager:
            await manager.create_agent("alice")
            task = await manager.send_task("alice", "go")
            await asyncio.to_thread(begun.wait, 10)
            await manager.stop_agent("alice")
            result = (await manager.list_steps(task.id))[1].result
            assert result is not None
            assert result.content == "it happened"
            assert (await manager.get_task(task.id)).state is TaskState.CANCELLED

    asyncio.run(run())


@pytest.mark.parametrize("deed", ["stop", "cancel", "close"])
def test_a_tool_cannot_end_what_it_runs_in(deed: str) -> None:
    managers: list[AsyncAgentSessionManager] = []

    @tool
    async def misbehave(context: ToolContext) -> str:
        """Saw off the branch it sits on."""
        if deed == "stop":
            await managers[0].stop_agent(context.agent_id)
        elif deed == "cancel":
            await managers[0].cancel_task(context.task_id)
        else:
            await managers[0].close()
        return "never"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        managers.append(manager)
        await manager.create_agent("alice")
        assert "A tool" in await manager.run_task("alice", "go")

    play(scenario, one_call, tools=[misbehave])


def test_what_a_tool_leaves_behind_may_stop_the_agent_once_the_loop_has_ended() -> None:
    managers: list[AsyncAgentSessionManager] = []
    left: list[asyncio.Task[Any]] = []

    @tool
    async def misbehave(context: ToolContext) -> str:
        """Have the agent stopped later."""

        async def stop_later() -> None:
            await asyncio.sleep(60)
            await managers[0].stop_agent(context.agent_id)

        left.append(asyncio.ensure_future(stop_later()))
        return "later"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        managers.append(manager)
        await manager.create_agent("alice")
        assert await manager.run_task("alice", "go") == "later"
        await left[0]
        assert manager.get_agent_status("alice").state is AgentState.STOPPED

    play(scenario, one_call, tools=[misbehave])


def test_a_result_over_the_limit_is_cut_and_says_so() -> None:
    @tool
    async def misbehave() -> str:
        """Say too much."""
        return "é" * 1000

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_result_bytes": 101}})
        told = await manager.run_task("alice", "go")
        assert told == "é" * 50 + "\n[cut: 2,000 bytes in all, 101 shown]"

    play(scenario, one_call, tools=[misbehave])


def test_a_result_that_had_to_be_made_harmless_is_not_longer_than_others() -> None:
    @tool
    async def misbehave() -> str:
        """Forge many marks."""
        return "<said " * 100

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_result_bytes": 90}})
        told = await manager.run_task("alice", "go")
        assert told == "&lt;said " * 10 + "\n[cut: 900 bytes in all, 90 shown]"

    play(scenario, one_call, tools=[misbehave])


class MuteError(Exception):
    """Fails even to say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("mute")


def cyclic() -> Any:
    found: list[Any] = []
    found.append(found)
    return found


def recursive() -> Any:
    return recursive()


def mute() -> Any:
    raise MuteError


async def asynchronous_pieces() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (cyclic, "is not JSON, so its result is lost"),
        (lambda: b"bytes", "is not JSON, so its result is lost: Object of type bytes"),
        (lambda: [float("nan")], "is not JSON, so its result is lost: Out of range float"),
        (lambda: (each for each in "ab"), "is not JSON, so its result is lost: Encoding objects of type generator"),
        (asynchronous_pieces, "is not JSON, so its result is lost"),
        (lambda: [object()], "is not JSON, so its result is lost"),
        (lambda: ToolResult(content=5), '{"content":5}'),  # type: ignore[arg-type]
        (recursive, "failed: RecursionError"),
        (mute, "The tool 'misbehave' failed: MuteError"),
        (lambda: ["\ud800"], '["\ufffd"]'),
        (lambda: {"when": dt.date(2026, 1, 2), 3: {1}}, '{"when":"2026-01-02","3":[1]}'),
        (lambda: 10**30, "1000000000000000000000000000000"),
    ],
)
def test_whatever_a_tool_returns_or_raises_the_model_reads_what_is_the_matter(
    function: Callable[[], Any], told: str
) -> None:
    async def run() -> None:
        misbehave = tool(name="misbehave")(function)
        async with AsyncAgentSessionManager(tools=[misbehave], model_factory=lambda _: FunctionModel(one_call)) as m:
            await m.create_agent("alice")
            assert told in await m.run_task("alice", "go", task_id="t")
            assert (await m.list_steps("t"))[1].result is not None

    asyncio.run(run())


def test_an_error_that_says_too_much_is_cut_like_a_result() -> None:
    @tool
    async def misbehave() -> str:
        """Complain for long."""
        raise ValueError("x" * 100_000)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_result_bytes": 1000}})
        told = await manager.run_task("alice", "go")
        assert told.startswith("The tool 'misbehave' failed: ValueError: xxx")
        assert len(told) < 1100

    play(scenario, one_call, tools=[misbehave])


class SaysNothing(BaseException):
    """Cannot even be told in words."""

    def __str__(self) -> str:
        raise Odd("twice")


def raising(error: BaseException) -> Callable[[Any], Any]:
    def raises(_: Any) -> Any:
        raise error

    return raises


@pytest.mark.parametrize(
    "touches",
    [
        lambda _: [1],
        lambda _: 5,
        "write file:{x[0]}",
        raising(SystemExit(3)),
        raising(Odd("odd")),
        raising(SaysNothing()),
    ],
)
def test_a_tool_that_fails_to_say_what_it_touches_ends_only_its_call(touches: Any) -> None:
    def misbehave(x: int = 1) -> str:
        """Never run."""
        raise AssertionError(x)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert "touches" in await manager.run_task("alice", "go")

    play(scenario, one_call, tools=[tool(touches=touches)(misbehave)])


@pytest.mark.parametrize("touches", ["modify counter", "", "write", 5, ["read x", ""], [1], {"write x": 1}, b"write x"])
def test_what_no_call_could_touch_is_refused_when_the_tool_is_made(touches: Any) -> None:
    with pytest.raises(InvalidInputError, match="'read NAME' or 'write NAME'"):
        tool(touches=touches)(exits)


@pytest.mark.parametrize("error", [ValueError("odd"), SystemExit(3), Odd("odd")])
def test_a_tool_that_fails_to_say_whether_it_may_be_repeated_is_not(error: BaseException) -> None:
    assert not tool(idempotent=raising(error))(exits).may_repeat("{}")


def test_what_a_plain_function_returns_is_written_as_text_in_its_thread() -> None:
    threads: list[threading.Thread] = []

    class Noting(dict[str, int]):
        def values(self) -> Any:
            threads.append(threading.current_thread())
            return super().values()

    def misbehave() -> Any:
        """Return something that notes who looks at it."""
        return Noting(a=1)

    async def run() -> None:
        async with AsyncAgentSessionManager(tools=[misbehave], model_factory=lambda _: FunctionModel(one_call)) as m:
            await m.create_agent("alice")
            assert await m.run_task("alice", "go") == '{"a":1}'

    asyncio.run(run())
    assert threads
    assert threading.main_thread() not in threads


@dataclasses.dataclass
class Found:
    at: dt.date
    numbers: list[int]


@pytest.mark.parametrize("many", [3, 60_000])
def test_a_large_result_reads_like_a_small_one(many: int) -> None:
    result = {"found": [Found(dt.date(2026, 1, 2), [7] * many)], "é": {5}}
    written = f'{{"found":[{{"at":"2026-01-02","numbers":[{",".join("7" * many)}]}}],"é":[5]}}'
    assert is_large(result) == (many > 3)
    assert as_text("t", result) == written
    endless: list[Any] = [0] * many
    endless.append(endless)
    for wrong in ([b"bytes"] * many, [float("nan")] * many, endless):
        with pytest.raises(ToolError, match="not JSON"):
            as_text("t", wrong)

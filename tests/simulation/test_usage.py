"""What is counted of what agents use, for each agent, each task tree and the session, over restarts too."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.core.usage import WAITING_TOOLS
from ai_whisperer.domain.conversation import Answer, ToolResult, ToolRun, Usage
from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.server.metrics import Metrics
from ai_whisperer.tools.registry import COORDINATION_TOOLS
from tests.simulation.provider import now
from tests.simulation.stage import call, play, play_over_crash, round_of
from tests.unit.test_metrics import values_of


@tool(idempotent=True)
async def crunch(seconds: float) -> ToolResult:
    """Take some of the machine."""
    await asyncio.sleep(seconds)
    run = ToolRun(sandbox="none", wall_seconds=seconds, cpu_seconds=seconds / 2, memory_bytes=1000)
    return ToolResult(content="crunched", run=run)


def ask_and_crunch(request: ModelRequest) -> Answer | str:
    """`ann` mails `bob` and waits, then crunches for three seconds; `bob` answers at once."""
    if request.agent_id == "bob":
        return Answer(text="yes", usage=Usage(input_tokens=7, output_tokens=1, cost_usd=0.5))
    if round_of(request) == 0:
        return call("send_mail_with_switch", to_agent="bob", subject="well?", body="well?")
    if round_of(request) == 1:
        return call("crunch", seconds=3.0)
    return Answer(text="done", usage=Usage(input_tokens=10, output_tokens=5))


async def ask(manager: AsyncAgentSessionManager) -> str:
    for name in ("ann", "bob"):
        await manager.create_agent(name)
    task = await manager.send_task("ann", "go")
    await manager.wait_task(task)
    await manager.at_rest()
    return task.id


def test_calls_seconds_mails_and_memory_are_counted_for_each_agent() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await ask(manager)
        report = await manager.usage()
        ann, bob = report.agents["ann"], report.agents["bob"]
        assert (ann.tasks, ann.usage.model_calls, ann.usage.tool_calls, ann.usage.mails_sent) == (1, 3, 2, 1)
        assert (bob.tasks, bob.usage.model_calls, bob.usage.tool_calls, bob.mails_received) == (1, 1, 0, 1)
        assert ann.mails_received == 1  # the answer
        assert (ann.usage.cpu_seconds, ann.usage.memory_bytes) == (1.5, 1000)

    play(scenario, ask_and_crunch, tools=[crunch])


def test_the_time_that_an_agent_waits_for_another_is_not_its_own() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await ask(manager)
        report = await manager.usage()
        # three requests of a second each, and the tool; bob's request of a second is his own
        assert round(report.agents["ann"].usage.wall_seconds) == 6
        assert round(report.agents["bob"].usage.wall_seconds) == 1

    play(scenario, ask_and_crunch, tools=[crunch])


def test_the_memory_of_conversations_is_that_of_the_loops_that_run() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        task = await manager.send_task("ann", "x" * 1000)
        await asyncio.sleep(0.5)
        assert 1000 <= (await manager.usage()).agents["ann"].context_bytes < 1100
        assert (await manager.usage(task)).total.context_bytes == (await manager.usage()).total.context_bytes
        await manager.wait_task(task)
        assert (await manager.usage()).total.context_bytes == 0

    play(scenario)


def test_the_total_is_the_sum_of_all_agents() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await ask(manager)
        report = await manager.usage()
        each = report.agents.values()
        assert report.total.usage == sum((one.usage for one in each), Usage())
        assert (report.total.tasks, report.total.mails_received) == (2, 2)
        assert report.total.usage.cost_usd == 0.5

    play(scenario, ask_and_crunch, tools=[crunch])


def test_the_usage_of_a_task_is_that_of_all_it_caused_and_of_nothing_else() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        task_id = await ask(manager)
        alone = await manager.send_task("bob", "something else")
        await manager.wait_task(alone)
        tree = await manager.usage(task_id)
        assert set(tree.agents) == {"ann", "bob"}
        assert (tree.total.tasks, tree.total.usage.model_calls) == (2, 4)
        assert (await manager.usage(alone)).total.usage.model_calls == 1
        assert (await manager.usage()).total.usage.model_calls == 5

    play(scenario, ask_and_crunch, tools=[crunch])


def test_a_failed_request_and_its_repetition_are_two_calls() -> None:
    from ai_whisperer.errors import ModelServerError

    def once_broken(request: ModelRequest) -> Answer | str:
        if request.attempt == 1:
            raise ModelServerError("try again")
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.run_task("ann", "go")
        assert (await manager.usage()).total.usage.model_calls == 2

    play(scenario, once_broken)


def test_a_tool_that_fails_is_counted_and_a_mail_that_was_refused_is_not() -> None:
    def say(request: ModelRequest) -> Answer | str:
        return call("send_mail", to_agent="nobody", subject="x", body="x") if round_of(request) == 0 else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.run_task("ann", "go")
        used = (await manager.usage()).total.usage
        assert (used.tool_calls, used.mails_sent) == (1, 0)

    play(scenario, say)


def test_after_a_crash_the_counts_are_those_of_the_steps_that_ended() -> None:
    """The process dies while ann's tool runs; the tool is repeated, and is counted once."""

    async def begin(manager: AsyncAgentSessionManager) -> None:
        await ask(manager)

    async def end(manager: AsyncAgentSessionManager) -> None:
        await manager.at_rest()
        report = await manager.usage()
        ann = report.agents["ann"]
        assert (ann.tasks, ann.usage.model_calls, ann.usage.tool_calls, ann.usage.mails_sent) == (1, 3, 2, 1)
        assert ann.usage.input_tokens == 30
        assert (ann.mails_received, report.agents["bob"].mails_received) == (1, 1)
        assert ann.usage.memory_bytes == 1000

    play_over_crash(begin, end, ask_and_crunch, tools=[crunch], crash_after_seconds=4.5)


def test_what_ended_before_a_restart_is_still_counted() -> None:
    async def begin(manager: AsyncAgentSessionManager) -> None:
        await ask(manager)

    async def end(manager: AsyncAgentSessionManager) -> None:
        before = await manager.usage()
        assert (before.total.usage.model_calls, before.total.usage.tool_calls) == (4, 2)
        assert before.total.usage.cpu_seconds == 1.5
        await manager.run_task("bob", "again")
        assert (await manager.usage()).total.usage.model_calls == 5

    play_over_crash(begin, end, ask_and_crunch, tools=[crunch], crash_after_seconds=60)


class RefusedOnce:
    """The tool is called, then a request is refused once."""

    def __init__(self) -> None:
        self._refused = False

    def __call__(self, request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return replace(call("crunch", seconds=3.0), usage=Usage(input_tokens=7, cost_usd=0.25))
        if not self._refused:
            self._refused = True
            raise ModelRefusedError("No.")
        return Answer(text="done", usage=Usage(input_tokens=10, output_tokens=5, cost_usd=0.5))


WHEN_REFUSED = (1, 2, 1, 7, 0.25, 1000)
WHEN_DONE = (1, 3, 1, 17, 0.75, 1000)


def counted(manager: AsyncAgentSessionManager) -> tuple[object, ...]:
    status = manager.get_agent_status("ann")
    used = status.usage
    calls = used.model_calls, used.tool_calls
    return (status.tasks, *calls, used.input_tokens, used.cost_usd, used.memory_bytes)


@pytest.mark.parametrize("crash_after_seconds", [30, 60.5, 61.5, 90])
def test_a_task_that_is_retried_is_counted_once_while_it_waits_runs_and_has_ended_over_a_crash(
    crash_after_seconds: float,
) -> None:
    async def begin(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        task = await manager.send_task("ann", "go", task_id="t")
        await manager.wait_task(task)
        assert counted(manager) == WHEN_REFUSED
        await asyncio.sleep(60 - now())
        await manager.pause_agent("ann")
        await manager.retry_task("t")
        assert counted(manager) == WHEN_REFUSED
        await asyncio.sleep(1)
        await manager.resume_agent("ann")
        assert counted(manager) == WHEN_REFUSED
        await manager.wait_task("t")
        assert counted(manager) == WHEN_DONE

    async def end(manager: AsyncAgentSessionManager) -> None:
        if crash_after_seconds < 60:
            assert counted(manager) == WHEN_REFUSED
            await manager.retry_task("t")
        if manager.get_agent_status("ann").state == "paused":
            assert counted(manager) == WHEN_REFUSED
            await manager.resume_agent("ann")
        await manager.wait_task("t")
        assert counted(manager) == WHEN_DONE

    play_over_crash(begin, end, RefusedOnce(), tools=[crunch], crash_after_seconds=crash_after_seconds)


def test_a_task_that_is_cancelled_while_it_waits_to_be_retried_is_counted_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.wait_task(await manager.send_task("ann", "go", task_id="t"))
        await manager.pause_agent("ann")
        await manager.retry_task("t")
        await manager.cancel_task("t")
        assert counted(manager) == WHEN_REFUSED

    play(scenario, RefusedOnce(), tools=[crunch])


def test_metrics_show_what_all_open_sessions_used() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await ask(manager)
        values = values_of(Metrics(lambda: [manager]))
        assert values["whisperer_model_calls_total[]"] == 4
        assert values["whisperer_tool_calls_total[]"] == 2
        assert values["whisperer_mails_sent_total[]"] == 1
        assert values["whisperer_mails_received_total[]"] == 2
        assert values["whisperer_tool_cpu_seconds_total[]"] == 1.5
        assert values["whisperer_tool_memory_bytes[]"] == 1000

    play(scenario, ask_and_crunch, tools=[crunch])


def test_the_tools_whose_waits_are_not_counted_exist() -> None:
    assert set(COORDINATION_TOOLS) >= WAITING_TOOLS

"""What may come between a question and its answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.tasks import Budget
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.runtime.agents import loop as ai_loop
from ai_whisperer.runtime.agents.tool_step import run_tool
from tests.simulation.stage import call, calls, play, play_over_crash, prompt_of, results_of, round_of, until
from tests.simulation.test_switch import asks, create, team


def now() -> float:
    return asyncio.get_running_loop().time()


@tool
async def nap(seconds: float) -> str:
    """Let time pass."""
    await asyncio.sleep(seconds)
    return "rested"


def test_an_answer_that_is_too_long_for_a_mail_is_cut() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_mail_bytes": 100}})
        await manager.create_agent("b")
        final = await manager.run_task("a", "go")
        assert final.endswith("[cut: 1,000 bytes in all]")
        assert len((await manager.mailbox("a"))[0].body) == 100
        await until(lambda: manager.get_agent_status("b").state is AgentState.IDLE)

    play(scenario, team(a=asks("b"), b=lambda _: "x" * 1000))


def test_a_late_answer_gets_into_a_full_mailbox() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_queue_length": 1}})
        await manager.create_agent("b")
        await manager.pause_agent("b")
        await manager.run_task("a", "go")
        await manager.pause_agent("a")
        await manager.send_task("a", "this fills the queue")
        await manager.resume_agent("b")
        await asyncio.sleep(30)
        assert [mail.body for mail in await manager.mailbox("a")] == ["late"]
        assert (await manager.list_tasks("b"))[0].state is TaskState.COMPLETED
        assert manager.get_agent_status("b").state is AgentState.IDLE

    play(scenario, team(a=asks("b", timeout_seconds=10), b=lambda _: "late"))


def test_one_that_asks_with_the_last_of_its_budget_is_told_so_and_does_not_hang() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", "b")
        enough_for_one = Budget(max_tokens=960)  # by the estimate: the other has the longer prompt
        ended = await manager.wait_task(await manager.send_task("a", "go", budget=enough_for_one))
        assert ended.result is not None
        assert "b" in ended.result.final
        assert now() < 5
        (asked,) = await manager.list_tasks("b")
        assert (asked.state, asked.error and asked.error.code) == (TaskState.FAILED, "budget")

    play(scenario, team(a=asks("b"), b=lambda _: "never asked"))


def test_a_stop_between_two_parts_of_an_answer_is_told_at_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", "b")
        task = await manager.send_task("a", "go")
        await asyncio.sleep(1.5)
        await manager.pause_agent("b")
        await asyncio.sleep(5)
        assert manager.get_agent_status("b").queue_size == 1
        await manager.stop_agent("b")
        ended = await manager.wait_task(task)
        assert ended.result is not None
        assert "b was stopped" in ended.result.final
        assert now() < 10

    play(scenario, team(a=asks("b"), b=lambda _: "a part\n[CONTINUE]"))


def test_questions_side_by_side_to_one_agent_are_answered_side_by_side() -> None:
    def a(request: ModelRequest) -> Answer | str:
        question = ("send_mail_with_switch", {"to_agent": "b", "subject": "s", "body": "b"})
        return calls(question, question) if round_of(request) == 0 else "ok"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", "b")
        await manager.run_task("a", "go")
        assert now() < 17

    play(scenario, team(a=a, b=lambda r: call("nap", seconds=10) if round_of(r) == 0 else "yes"), tools=[nap])


def test_mail_sent_while_answering_is_ordinary_mail() -> None:
    def b(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return call("send_mail", to_agent="c", subject="fyi", body="x")
        return "yes"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", "b", "c")
        for _ in range(2):
            await manager.run_task("a", "go", thread_id="same")

        async def is_so() -> bool:
            return len(await manager.list_tasks("c")) == 2

        await until(is_so)
        await asyncio.sleep(60)
        assert len(await manager.mailbox("b")) == 2, "c was not asked, and so nothing came back by itself"
        assert [task.state for task in await manager.list_tasks("c")] == [TaskState.COMPLETED] * 2

    play(scenario, team(a=asks("b"), b=b, c=lambda _: "noted"))


def test_an_impatient_wait_for_a_lock_does_not_shorten_the_question_of_its_holder() -> None:
    def a(request: ModelRequest) -> Answer | str:
        question = call("send_mail_with_switch", to_agent="b", subject="s", body="b")
        wanted = [call("acquire_lock", name="L", ttl_seconds=500), call("nap", seconds=5), question]
        return wanted[round_of(request)] if round_of(request) < len(wanted) else results_of(request)[-1]

    def c(request: ModelRequest) -> Answer | str:
        return call("acquire_lock", name="L", wait_seconds=10) if round_of(request) == 0 else results_of(request)[-1]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", "b", "c")
        task = await manager.send_task("a", "go")
        await asyncio.sleep(3)
        assert "Timeout: after 10 seconds lock 'L' is still held by a" in await manager.run_task("c", "go")
        ended = await manager.wait_task(task)
        assert ended.result is not None
        assert ended.result.final.endswith("at last")

    say = team(a=a, b=lambda r: call("nap", seconds=100) if round_of(r) == 0 else "at last", c=c)
    play(scenario, say, tools=[nap])


def test_a_loop_that_crashes_goes_on_waiting_for_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    crashed: list[str] = []

    async def crashing(agent: Any, step: Any) -> Any:
        if step.call.name == "nap" and not crashed:
            crashed.append(step.id)
            raise RuntimeError("a fault of ours")
        return await run_tool(agent, step)

    monkeypatch.setattr(ai_loop, "run_tool", crashing)

    def a(request: ModelRequest) -> Answer | str:
        question = ("send_mail_with_switch", {"to_agent": "user", "subject": "s", "body": "b"})
        return calls(question, ("nap", {"seconds": 1})) if round_of(request) == 0 else " | ".join(results_of(request))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a")
        task = await manager.send_task("a", "go")
        await asyncio.sleep(100)
        assert crashed
        assert manager.get_agent_status("a").waiting_for == ("user",)
        await manager.reply_mail((await manager.mailbox())[0].id, "the answer")
        ended = await manager.wait_task(task)
        assert ended.result is not None
        answer, cut_off = ended.result.final.split(" | ")
        assert answer.endswith("the answer")
        assert cut_off.startswith("Outcome unknown")

    play(scenario, team(a=a), tools=[nap])


@pytest.mark.parametrize("crash_after", [0.5 + 0.5 * step for step in range(10)])
def test_an_answer_in_parts_survives_a_crash_between_them(crash_after: float) -> None:
    def b(request: ModelRequest) -> str:
        return "the end" if "Continue" in prompt_of(request) else "a part\n[CONTINUE]"

    async def before(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", "b")
        await manager.send_task("a", "go", task_id="task")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        ended = await manager.wait_task("task")
        assert ended.result is not None
        assert ended.result.final.endswith("the end")
        assert now() < 10

    play_over_crash(before, after, team(a=asks("b"), b=b), crash_after_seconds=crash_after)

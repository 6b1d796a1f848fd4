"""Tokens and money: set aside before the request, for a tree, an agent and a session."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager
from ai_whisperer.core import contexts
from ai_whisperer.core.reserving import Ledger, Verdict
from ai_whisperer.domain.conversation import Answer, Usage
from ai_whisperer.domain.tasks import Budget, TaskState
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, play, play_over_crash, prompt_of, round_of, until

PER_CALL = 100
SMALL: dict[str, Any] = {"prompt": "Be brief.", "tools": ["check_mail"]}
"""An agent whose first request is small, too."""


def spending(request: ModelRequest) -> Answer | str:
    """Each request costs the same; a task has five of them."""
    usage = Usage(input_tokens=PER_CALL - 10, output_tokens=10, cost_usd=0.01)
    if round_of(request) < 4:
        return Answer(tool_calls=call("check_mail", limit=round_of(request) + 1).tool_calls, usage=usage)
    return Answer(text="done", usage=usage)


async def breaches(manager: AsyncAgentSessionManager) -> list[dict[str, Any]]:
    await manager.flushed()
    return [note.params for note in await manager.notifications(limit=100_000) if note.name == "limit.reached"]


def tokens_of(manager: AsyncAgentSessionManager) -> int:
    statuses = manager.list_agents()
    return sum(each.usage.input_tokens + each.usage.output_tokens for each in statuses)


@pytest.mark.parametrize("seed", range(3))
def test_twenty_parallel_tasks_do_not_overdraw_a_budget(seed: int) -> None:
    def say(request: ModelRequest) -> Answer | str:
        if prompt_of(request) != "go":
            return spending(request)
        usage = Usage(input_tokens=PER_CALL - 10, output_tokens=10)
        if round_of(request) < 20:
            wanted = call("delegate_task", to_agent=f"a{round_of(request)}", task="part")
            return Answer(tool_calls=wanted.tool_calls, usage=usage)
        return Answer(text="all are given", usage=usage)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("plan")
        for number in range(20):
            await manager.create_agent(f"a{number}", {"settings": {"max_tokens": 20}})
        await manager.send_task("plan", "go", budget=Budget(max_tokens=5_050))
        await manager.at_rest()
        assert 4_000 <= tokens_of(manager) <= 5_050
        tree = [task for task in await manager.list_tasks(limit=1000) if task.error is not None]
        assert {task.error.code for task in tree if task.error} == {"budget"}
        told = await breaches(manager)
        assert {(each["scope"], each["limit"], each["action"]) for each in told} == {
            ("tree", "max_tokens_per_tree", "failed")
        }

    play(scenario, say, seed=seed, latency_seconds=2.0)


@pytest.mark.parametrize(
    ("terms", "limits", "limit"),
    [
        ({"budget": Budget(max_tokens=100)}, {}, "max_tokens_per_tree"),
        ({}, {"max_tokens_per_tree": 100}, "max_tokens_per_tree"),
        ({}, {"max_tokens_per_agent": 100}, "max_tokens_per_agent"),
    ],
)
def test_a_first_request_that_is_larger_than_the_limit_is_not_sent(
    terms: dict[str, Any], limits: dict[str, Any], limit: str
) -> None:
    asked: list[str] = []

    def say(request: ModelRequest) -> str:
        asked.append(request.step_id)
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": limits})
        task = await manager.send_task("a", "word " * 1_700, **terms)
        await manager.at_rest()
        assert (asked, tokens_of(manager)) == ([], 0)
        known, status = await manager.get_task(task.id), manager.get_agent_status("a")
        told = status.reason if known.error is None else known.error.message
        assert "needs about " in told
        assert "tokens, by an estimate, and 100 of 100 are left" in told
        expected = ("paused", "running") if limit == "max_tokens_per_agent" else ("idle", "failed")
        assert (status.state, known.state) == expected
        (breach,) = await breaches(manager)
        assert (breach["limit"], breach["max"]) == (limit, 100)
        assert breach["used"] > 2_000
        await manager.set_limits({limit: 100_000}, agent_id="a")
        await manager.run_task("a", "word " * 1_700)

    play(scenario, say)


def test_the_limits_of_an_agent_are_the_budget_of_trees_that_have_none() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {**SMALL, "limits": {"max_tokens_per_tree": 350}})
        task = await manager.send_task("a", "go")
        assert task.budget == Budget(max_tokens=350)
        ended = await manager.wait_task(task)
        assert (ended.state, ended.error and ended.error.code) == (TaskState.FAILED, "budget")
        assert ended.usage.input_tokens + ended.usage.output_tokens == 200
        own = await manager.send_task("a", "go", budget=Budget(max_tokens=1_000))
        assert (await manager.wait_task(own)).state is TaskState.COMPLETED
        await manager.send_mail("a", "s", "by mail")
        await manager.at_rest()
        by_mail = (await manager.list_tasks("a", limit=1))[0]
        assert (by_mail.budget, by_mail.state) == (Budget(max_tokens=350), TaskState.FAILED)

    play(scenario, spending)


@pytest.mark.parametrize(
    ("limits", "raised", "limit"),
    [
        ({"max_tokens_per_agent": 350}, {"max_tokens_per_agent": 5_000}, "max_tokens_per_agent"),
        ({"max_cost_usd_per_agent": 0.035}, {"max_cost_usd_per_agent": None}, "max_cost_usd_per_agent"),
    ],
)
def test_an_agent_that_has_spent_enough_is_paused_for_a_person_and_goes_on_when_it_gets_more(
    limits: dict[str, Any], raised: dict[str, Any], limit: str
) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {**SMALL, "limits": limits})
        task = await manager.send_task("a", "go")
        await until(lambda: manager.get_agent_status("a").state is AgentState.PAUSED)
        status = manager.get_agent_status("a")
        assert f"({limit})" in status.reason
        assert "are left" in status.reason
        assert (await manager.get_task(task.id)).state is TaskState.RUNNING
        assert tokens_of(manager) == 200
        await manager.resume_agent("a")
        await until(lambda: manager.get_agent_status("a").state is AgentState.PAUSED)
        assert tokens_of(manager) == 200, "resumed without more, it is paused again before it spends anything"
        await manager.set_limits(raised, agent_id="a")
        ended = await manager.wait_task(task)
        assert (ended.state, tokens_of(manager)) == (TaskState.COMPLETED, 500)
        told = await breaches(manager)
        assert [(each["scope"], each["limit"], each["action"]) for each in told] == [("agent", limit, "paused")] * 2
        assert told[0]["used"] >= told[0]["max"] == limits[limit]

    play(scenario, spending)


def test_a_session_that_has_spent_enough_pauses_the_agents_that_want_more() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_tokens": 1_150})
        tasks = []
        for number in range(10):
            await manager.create_agent(f"a{number}", SMALL)
            tasks.append(await manager.send_task(f"a{number}", "go"))
        await manager.at_rest()
        assert 800 <= tokens_of(manager) <= 1_150
        paused = [each for each in manager.list_agents() if each.state is AgentState.PAUSED]
        assert len(paused) >= 7
        await manager.set_limits({"max_tokens": 100_000})
        for task in tasks:
            assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert tokens_of(manager) == 10 * 5 * PER_CALL

    play(scenario, spending)


def test_a_pause_for_a_limit_survives_a_crash_and_nothing_is_lost_or_repeated() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {**SMALL, "limits": {"max_tokens_per_agent": 350}})
        await manager.send_task("a", "go", task_id="t")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        await until(lambda: manager.get_agent_status("a").state is AgentState.PAUSED)
        assert tokens_of(manager) == 200
        await manager.set_limits({"max_tokens_per_agent": 0}, agent_id="a")
        ended = await manager.wait_task("t")
        assert (ended.state, tokens_of(manager)) == (TaskState.COMPLETED, 500)

    play_over_crash(before, after, spending, crash_after_seconds=50)


def test_the_answer_is_told_how_long_it_may_be_when_the_budget_is_short_only() -> None:
    caps: list[int | None] = []

    def say(request: ModelRequest) -> Answer | str:
        caps.append(request.max_output_tokens)
        return spending(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {**SMALL, "settings": {"max_tokens": 500}})
        await manager.run_task("a", "no limit")
        await manager.send_task("a", "go", budget=Budget(max_tokens=100_000))
        await manager.at_rest()
        assert caps == [None] * 10
        caps.clear()
        await manager.send_task("a", "go", budget=Budget(max_tokens=600))
        await manager.at_rest()
        assert caps[-1] is not None
        assert 64 <= caps[-1] < 500

    play(scenario, say)


def test_what_was_set_aside_for_a_cancelled_request_is_there_for_others() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_tokens": 6_000})
        await manager.create_agent("slow", {"limits": {"max_concurrent_tasks": 3}})
        first = await manager.send_task("slow", "go")
        second = await manager.send_task("slow", "go")
        await asyncio.sleep(10)
        assert [step.state for step in await manager.list_steps(second.id)] == ["started"]
        await manager.cancel_task(first)
        assert (await manager.wait_task(second)).state is TaskState.COMPLETED

    play(scenario, spending, latency_seconds=100)


@pytest.mark.parametrize("how", ["pause_agent", "stop_agent"])
def test_a_loop_that_waits_for_others_to_settle_can_be_held_up(how: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_tokens": 6_000})
        await manager.create_agent("first")
        await manager.create_agent("second")
        await manager.send_task("first", "go")
        await asyncio.sleep(1)
        await manager.send_task("second", "go")
        await asyncio.sleep(1)
        await getattr(manager, how)("second")
        assert not manager._session.roster.agents["second"].work.loops or how == "pause_agent"
        await manager.interrupt_agent("first")

    play(scenario, spending, latency_seconds=1000)


def test_those_that_wait_for_room_go_on_in_the_order_in_which_they_came() -> None:
    asked: list[str] = []

    def say(request: ModelRequest) -> Answer | str:
        asked.append(request.agent_id)
        return Answer(text="done", usage=Usage(input_tokens=10, output_tokens=10))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_tokens": 5_000})
        names = ["first", *(f"large{number}" for number in range(5)), "small"]
        for name in names:
            settings = {"max_tokens": 50 if name == "small" else 4_096}
            await manager.create_agent(name, {"tools": [], "settings": settings})
            await manager.send_task(name, "go")
            await asyncio.sleep(1)
        await manager.at_rest()
        assert asked == names, "one for which there is room would have overtaken the others"

    play(scenario, say, latency_seconds=100)


def test_what_waits_for_its_own_budget_keeps_nobody_else_waiting() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_tokens": 1_000_000})
        await manager.create_agent("a", {"limits": {"max_concurrent_tasks": 2, "max_tokens_per_agent": 5_000}})
        await manager.create_agent("b")
        for name, task_id in (("a", "first"), ("a", "waits"), ("b", "other")):
            await manager.send_task(name, "go", task_id=task_id)
            await asyncio.sleep(1)
        await asyncio.sleep(100)
        answered = {task_id for task_id in ("first", "waits", "other") if (await manager.list_steps(task_id))[0].answer}
        assert answered == {"first", "other"}

    play(scenario, spending, latency_seconds=100)


def test_two_hundred_loops_that_wait_are_weighed_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed = Counter[str]()
    of_request, ask = contexts.input_tokens, Ledger.ask

    def counted(*of: Any, **more: Any) -> int:
        weighed["requests"] += 1
        return of_request(*of, **more)

    def asked(*of: Any) -> Verdict:
        weighed["asked"] += 1
        return ask(*of)

    monkeypatch.setattr(contexts, "input_tokens", counted)
    monkeypatch.setattr(Ledger, "ask", asked)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_tokens": 6_000})
        for number in range(200):
            await manager.create_agent(f"a{number}")
            await manager.send_task(f"a{number}", "go")
        await manager.at_rest()
        assert weighed["requests"] == 200
        assert weighed["asked"] <= 3 * 200

    play(scenario, lambda _: Answer(text="done", usage=Usage(input_tokens=10, output_tokens=10)))


def test_waits_that_were_cut_short_leave_nothing_behind() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_tokens": 5_000})
        for name in ("holds", "waits"):
            await manager.create_agent(name)
            await manager.send_task(name, "go")
            await asyncio.sleep(1)
        reservations = manager._session.spending
        for _ in range(10):
            await manager.pause_agent("waits")
            await asyncio.sleep(1)
            assert not reservations._line
            assert not reservations._lacking
            await manager.resume_agent("waits")
            await asyncio.sleep(1)
            assert len(reservations._line) == 1

    play(scenario, spending, latency_seconds=1000)


def test_money_cannot_be_limited_for_a_model_whose_price_is_not_known() -> None:
    def say(request: ModelRequest) -> Answer | str:
        answer = call("check_mail", limit=round_of(request) + 1)
        return Answer(tool_calls=answer.tool_calls, usage=Usage(input_tokens=10, output_tokens=5))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_cost_usd_per_agent": 1.0}})
        ended = await manager.wait_task(await manager.send_task("a", "go"))
        assert (ended.state, ended.error and ended.error.code) == (TaskState.FAILED, "budget")
        assert ended.error is not None
        assert "the price of the model is not known" in ended.error.message
        [told] = await breaches(manager)
        assert (told["limit"], told["action"]) == ("max_cost_usd_per_agent", "failed")

    play(scenario, say)


def test_a_limit_of_money_does_not_hide_what_has_no_price_behind_what_has_one() -> None:
    def say(request: ModelRequest) -> Answer | str:
        usage = Usage(input_tokens=50, output_tokens=50, cost_usd=0.001)
        return Answer(text="done", usage=usage if request.agent_id == "priced" else Usage(input_tokens=10**6))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("priced")
        await manager.create_agent("other")
        await manager.set_limits({"max_cost_usd": 1.0})
        await manager.run_task("priced", "go")
        await manager.run_task("other", "go")
        ended = await manager.wait_task(await manager.send_task("other", "more"))
        assert ended.error is not None
        assert "not known for 1,000,000 of 1,000,100 tokens" in ended.error.message

    play(scenario, say)


def test_a_tree_with_a_budget_of_money_counts_what_has_no_price() -> None:
    def say(request: ModelRequest) -> Answer | str:
        cost = 0.001 if not round_of(request) else None
        wanted = call("check_mail", limit=round_of(request) + 1)
        return Answer(tool_calls=wanted.tool_calls, usage=Usage(input_tokens=10, cost_usd=cost))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        ended = await manager.wait_task(await manager.send_task("a", "go", budget=Budget(max_cost_usd=1.0)))
        assert (ended.error and ended.error.code, len(await manager.list_steps(ended.id))) == ("budget", 4)

    play(scenario, say)

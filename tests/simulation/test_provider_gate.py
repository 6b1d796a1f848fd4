"""Many loops ask one account of a provider: they wait for each other, and none fails because of the others."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState
from ai_whisperer.domain.conversation import Answer, Usage
from ai_whisperer.domain.providers import Account
from ai_whisperer.domain.tasks import Budget, TaskRecord
from ai_whisperer.errors import ModelRateLimitError, ModelUnavailableError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.simulation.loop import simulate
from tests.simulation.provider import ACCOUNT, DOWN, CrowdedProvider, ended, now
from tests.simulation.stage import Scenario, call, opened, play, prompt_of, round_of, until

LOOPS = 512


def at(provider: CrowdedProvider, scenario: Scenario, **settings: Any) -> None:
    """Play the scenario with agents that all ask this provider."""
    play(scenario, models=lambda _: provider, **settings)


async def crowd(manager: AsyncAgentSessionManager, count: int = LOOPS, **config: Any) -> list[TaskRecord]:
    for number in range(count):
        await manager.create_agent(f"a{number}", config)
    return await asyncio.gather(*(manager.send_task(f"a{number}", "go") for number in range(count)))


async def told(manager: AsyncAgentSessionManager, name: str) -> list[dict[str, Any]]:
    await manager.flushed()
    return [note.params for note in await manager.notifications(limit=100_000) if note.name == name]


def looks(request: ModelRequest) -> Answer | str:
    return call("list_agents") if round_of(request) < 3 else "done"


@pytest.mark.parametrize("retry_after_seconds", [None, 1.0, 5.0])
def test_a_crowd_at_a_provider_that_takes_twenty_at_a_time_loses_no_task(retry_after_seconds: float | None) -> None:
    provider = CrowdedProvider(looks, most=20, retry_after_seconds=retry_after_seconds)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        tasks = await ended(manager, *await crowd(manager))
        assert Counter(task.state for task in tasks) == {TaskState.COMPLETED: LOOPS}
        asked = sum(time > 1 for time in provider.asked_at)
        refused = sum(time > 1 for time in provider.refused_at)
        assert refused <= asked * 0.05, f"{refused} of {asked} were refused after the first second"
        steps = [step for task in tasks[::16] for step in await manager.list_steps(task.id)]
        assert {step.failures for step in steps} == {0}, "what others are the reason for is no failure of a request"

    at(provider, scenario)


def test_all_that_a_provider_takes_is_asked_of_it() -> None:
    provider = CrowdedProvider(latency_seconds=1.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await ended(manager, *await crowd(manager))
        assert provider.busiest == LOOPS
        assert now() < 1.5, "the number doubles as soon as requests are taken, not when they are answered"

    at(provider, scenario)


def test_an_outage_is_tried_by_one_at_a_time_and_ends_without_a_rush() -> None:
    provider = CrowdedProvider(down_from=0, up_at=120, latency_seconds=1.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        tasks = await ended(manager, *await crowd(manager))
        assert {task.state for task in tasks} == {TaskState.COMPLETED}
        assert now() < 240
        down = [time for time in provider.asked_at if time < 120]
        assert len(down) < 60, "most wait for those that try"
        later = [time for time in down if time > 1]
        assert max(Counter(later).values()) == 1
        back = min(time for time in provider.asked_at if time >= 120)
        assert sum(back <= time <= back + 0.005 for time in provider.asked_at) == 1
        assert sum(back <= time <= back + 0.015 for time in provider.asked_at) <= 3
        untried = [task for task in tasks if (await manager.list_steps(task.id))[0].attempt == 1]
        assert len(untried) > LOOPS * 0.8, "whoever only waits makes no attempt"
        limits = [(each["account"], each["max"]) for each in await told(manager, "limit.reached")]
        assert limits.count((ACCOUNT.id, 0)) == len(await told(manager, "provider.held")) > 1

    at(provider, scenario)


def test_a_provider_that_fails_now_and_then_is_not_taken_for_one_that_is_down() -> None:
    failures = iter(range(10**9))

    def say(request: ModelRequest) -> str:
        if next(failures) % 5 == 0:
            raise ModelUnavailableError(DOWN)
        return f"done: {prompt_of(request)}"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        tasks = await ended(manager, *await crowd(manager, 100))
        assert {task.state for task in tasks} == {TaskState.COMPLETED}
        assert await told(manager, "provider.held") == []

    at(CrowdedProvider(say), scenario)


def test_urgent_work_goes_first_and_then_who_came_first() -> None:
    provider = CrowdedProvider(most=1, latency_seconds=1.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_requests_per_account": 1})
        names = ["first", "a", "b", "c", "low", "urgent", "high"]
        for name in names:
            await manager.create_agent(name)
        tasks = []
        for name in names:
            priority = name if name in ("low", "urgent", "high") else "normal"
            tasks.append(await manager.send_task(name, "go", priority=priority))
            await asyncio.sleep(0.01)
        await ended(manager, *tasks)
        assert provider.asked == ["first", "urgent", "high", "a", "b", "c", "low"]
        assert provider.refused_at == []

    at(provider, scenario)


def test_one_that_was_refused_keeps_its_place_before_those_that_came_later() -> None:
    provider = CrowdedProvider(most=1, latency_seconds=30.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("a", "b", "c"):
            await manager.create_agent(name)
        tasks = [await manager.send_task("a", "go")]
        await asyncio.sleep(1)
        tasks.append(await manager.send_task("b", "go"))
        await until(lambda: bool(provider.refused_at))
        await manager.set_limits({"max_requests_per_account": 1})
        tasks.append(await manager.send_task("c", "go"))
        await ended(manager, *tasks)
        assert [name for name in provider.asked if name != "a"] == ["b", "b", "c"]

    at(provider, scenario)


async def _stop(manager: AsyncAgentSessionManager, _: TaskRecord) -> None:
    await manager.stop_agent("b")


async def _cancel(manager: AsyncAgentSessionManager, task: TaskRecord) -> None:
    assert (await manager.cancel_task(task)).state is TaskState.CANCELLED


async def _pause(manager: AsyncAgentSessionManager, _: TaskRecord) -> None:
    await manager.pause_agent("b")


async def _interrupt(manager: AsyncAgentSessionManager, _: TaskRecord) -> None:
    await manager.interrupt_agent("b")


@pytest.mark.parametrize("act", [_stop, _cancel, _pause, _interrupt])
def test_one_that_waits_for_its_turn_can_be_held_up_at_once_and_takes_no_turn_with_it(act: Callable[..., Any]) -> None:
    provider = CrowdedProvider(latency_seconds=10.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_requests_per_account": 1})
        for name in ("a", "b", "c"):
            await manager.create_agent(name)
        tasks = []
        for name in ("a", "b", "c"):
            tasks.append(await manager.send_task(name, "go"))
            await asyncio.sleep(0.1)
        begun = now()
        await act(manager, tasks[1])
        assert now() == begun
        (third,) = await ended(manager, tasks[2])
        assert third.state is TaskState.COMPLETED
        assert provider.asked == ["a", "c"]
        if act in (_pause, _interrupt):
            await manager.resume_agent("b")
            assert (await manager.wait_task(tasks[1])).state is TaskState.COMPLETED
        (account,) = manager.list_provider_accounts()
        assert (account.under_way, account.waiting) == (0, 0)

    at(provider, scenario)


@pytest.mark.parametrize("seed", range(8))
def test_a_turn_that_comes_in_the_moment_of_a_cancel_is_not_lost(seed: int) -> None:
    provider = CrowdedProvider(latency_seconds=1.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_requests_per_account": 1})
        for name in ("a", "b", "c"):
            await manager.create_agent(name)
        first, second, third = [await manager.send_task(name, "go") for name in ("a", "b", "c")]
        await manager.wait_task(first)
        await manager.cancel_task(second)
        assert (await manager.wait_task(third)).state is TaskState.COMPLETED

    at(provider, scenario, seed=seed)


def test_waiting_for_a_turn_holds_no_place_among_the_loops_at_work() -> None:
    crowded = CrowdedProvider(latency_seconds=100.0)
    other = FunctionModel(lambda _: "done", latency_seconds=1.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_requests_per_account": 1, "max_concurrent_loops": 2})
        for name in ("a", "b"):
            await manager.create_agent(name, {"model": "crowded"})
            await manager.send_task(name, "go")
        await manager.create_agent("free", {"model": "other"})
        assert await manager.run_task("free", "go") == "done"
        assert now() < 10, "it works in the place of the one that waits"

    play(scenario, models=lambda name: crowded if name == "crowded" else other)


def test_waiting_for_a_turn_holds_no_tokens() -> None:
    provider = CrowdedProvider(latency_seconds=100.0)
    other = FunctionModel(lambda _: Answer(text="done", usage=Usage(input_tokens=1, output_tokens=1)))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        settings = {"max_tokens": 1_000}
        await manager.create_agent("a", {"model": "crowded", "settings": settings})
        await manager.create_agent("b", {"model": "crowded", "settings": settings})
        await manager.create_agent("free", {"model": "other", "settings": settings})
        await manager.set_limits({"max_requests_per_account": 1, "max_tokens": 6_000})
        await manager.send_task("a", "go")
        await asyncio.sleep(1)
        await manager.send_task("b", "go")
        await asyncio.sleep(1)
        assert len(manager._session.spending._held) == 1
        assert await manager.run_task("free", "go") == "done"
        assert now() < 10

    play(scenario, models=lambda name: provider if name == "crowded" else other)


def test_waiting_for_tokens_holds_no_turn() -> None:
    provider = CrowdedProvider(
        lambda _: Answer(text="done", usage=Usage(input_tokens=1, output_tokens=1)), latency_seconds=10.0
    )

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_requests_per_account": 2})
        await manager.create_agent("poor", {"limits": {"max_concurrent_tasks": 2, "max_tokens_per_agent": 5_000}})
        for name in ("b", "c"):
            await manager.create_agent(name)
        await asyncio.gather(*(manager.send_task("poor", "go") for _ in range(2)))
        await asyncio.sleep(1)
        assert provider.asked == ["poor"], "the second one waits for what the first one may use"
        await manager.send_task("b", "go")
        await asyncio.sleep(1)
        assert provider.asked == ["poor", "b"]

    at(provider, scenario)


def test_no_more_are_asked_at_a_time_than_the_limit_says_and_that_is_told_once() -> None:
    provider = CrowdedProvider()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_requests_per_account": 3})
        await ended(manager, *await crowd(manager, 30))
        assert provider.busiest == 3
        (reached,) = await told(manager, "limit.reached")
        assert (reached["limit"], reached["scope"], reached["action"]) == (
            "max_requests_per_account",
            "server",
            "waiting",
        )
        assert (reached["used"], reached["max"]) == (3, 3)

    at(provider, scenario)


def test_a_limit_that_is_reached_at_one_account_does_not_keep_another_from_being_told() -> None:
    accounts = [Account(provider="test", address=name) for name in ("one", "two")]
    providers = {account.address: CrowdedProvider(account=account) for account in accounts}

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_requests_per_account": 1})
        for name in ("one", "two"):
            await manager.create_agent(name, {"model": name, "limits": {"max_concurrent_tasks": 3}})
        await ended(manager, *[await manager.send_task(name, "go") for name in ("one", "two") for _ in range(3)])
        assert [each["account"] for each in await told(manager, "limit.reached")] == [each.id for each in accounts]

    play(scenario, models=providers.__getitem__)


def test_a_limit_that_is_raised_lets_those_in_that_wait() -> None:
    provider = CrowdedProvider(latency_seconds=100.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_requests_per_account": 1})
        await crowd(manager, 5)
        await asyncio.sleep(1)
        assert provider.answering == 1
        await manager.set_limits({"max_requests_per_account": None})
        await asyncio.sleep(1)
        assert provider.answering == 5

    at(provider, scenario)


def test_what_the_provider_asks_for_holds_for_all_of_the_account() -> None:
    refusals = [ModelRateLimitError("Slow down.", retry_after_seconds=30)]
    asked: list[tuple[float, str]] = []

    def say(request: ModelRequest) -> str:
        asked.append((now(), request.agent_id))
        if refusals:
            raise refusals.pop()
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("a", "b"):
            await manager.create_agent(name)
        first = await manager.send_task("a", "go")
        await until(lambda: bool(asked))
        second = await manager.send_task("b", "go")
        await asyncio.sleep(5)
        (account,) = manager.list_provider_accounts()
        assert (account.state, account.waiting, account.reason) == ("held", 1, "Slow down.")
        assert account.retry_at is not None
        await ended(manager, first, second)
        assert min(time for time, _ in asked[1:]) >= 30
        (held,) = await told(manager, "provider.held")
        assert (held["account"], held["state"], held["reason"]) == (ACCOUNT.id, "held", "Slow down.")
        (reached,) = await told(manager, "limit.reached")
        assert (reached["limit"], reached["account"], reached["action"], reached["max"], reached["scope"]) == (
            "max_requests_per_account",
            ACCOUNT.id,
            "waiting",
            0,
            "server",
        )
        assert reached["retryAfterSeconds"] >= 30
        assert len(await told(manager, "provider.opened")) == 1
        assert manager.list_provider_accounts()[0].state == "open"

    play(scenario, models=lambda _: FunctionModel(say, account=ACCOUNT))


def test_an_agent_that_waits_less_than_others_is_not_held_longer_by_what_they_were_asked() -> None:
    asked: list[tuple[float, str]] = []

    def say(request: ModelRequest) -> str:
        asked.append((now(), request.agent_id))
        if request.agent_id == "patient" and len(asked) == 1:
            raise ModelRateLimitError("Slow down.", retry_after_seconds=3_000)
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("patient")
        await manager.create_agent("hasty", {"limits": {"max_retry_after_seconds": 20}})
        await manager.send_task("patient", "go")
        await until(lambda: bool(asked))
        assert await manager.run_task("hasty", "go") == "done"
        assert 20 <= now() < 25

    play(scenario, models=lambda _: FunctionModel(say, account=ACCOUNT))


@pytest.mark.parametrize("asked_for", [-5.0, math.nan, 0.0, None])
def test_a_wait_that_makes_no_sense_holds_nobody(asked_for: float | None) -> None:
    provider = CrowdedProvider(most=1, retry_after_seconds=asked_for, latency_seconds=1.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        tasks = await ended(manager, *await crowd(manager, 10))
        assert {task.state for task in tasks} == {TaskState.COMPLETED}
        assert now() < 60

    at(provider, scenario)


@pytest.mark.parametrize("asked_for", [365 * 86_400.0, math.inf])
def test_a_wait_of_a_year_is_cut_for_all(asked_for: float) -> None:
    provider = CrowdedProvider(most=0, retry_after_seconds=asked_for)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        tasks = await crowd(manager, 40)
        await asyncio.sleep(3_599)
        provider.most = 100
        assert {task.state for task in await ended(manager, *tasks)} == {TaskState.COMPLETED}
        assert 3_600 <= now() < 3_700

    at(provider, scenario)


@pytest.mark.parametrize("retry_after_seconds", [None, 60.0])
def test_a_provider_that_refuses_everything_for_ever_ends_the_tasks_as_an_outage_does(
    retry_after_seconds: float | None,
) -> None:
    provider = CrowdedProvider(most=0, retry_after_seconds=retry_after_seconds)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        tasks = await ended(manager, *await crowd(manager, 200))
        assert {task.state for task in tasks} == {TaskState.FAILED}
        assert now() < 2 * 1_800
        codes = Counter(task.error.code for task in tasks if task.error is not None)
        assert set(codes) <= {"model_unavailable", "model_rate_limit"}
        waited = [task for task in tasks if task.error is not None and task.error.code == "model_unavailable"]
        assert waited
        assert all(
            "Too many at once. The provider was waited for, for" in task.error.message for task in waited if task.error
        )
        assert len(provider.asked_at) < 1_500
        (account,) = manager.list_provider_accounts()
        assert (account.under_way, account.waiting) == (0, 0)

    at(provider, scenario)


def test_an_outage_that_lasts_ends_the_tasks_that_only_waited_too() -> None:
    provider = CrowdedProvider(up_at=1e9)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        tasks = await ended(manager, *await crowd(manager, 100, limits={"max_outage_seconds": 300}))
        assert {task.error.code for task in tasks if task.error} == {"model_unavailable"}
        assert 300 <= now() < 500
        for task in tasks:
            assert task.error is not None
            assert task.error.message.startswith(f"{DOWN} The provider was waited for, for")
        assert manager.get_agent_status("a0").state is AgentState.STOPPED

    at(provider, scenario)


def test_a_request_that_alone_is_refused_while_others_pass_fails_after_a_while_and_holds_up_nobody() -> None:
    def say(request: ModelRequest) -> str:
        if request.agent_id == "large":
            raise ModelRateLimitError("The request is larger than the limit of tokens.")
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("large", {"limits": {"max_outage_seconds": 300}})
        large = await manager.send_task("large", "go")
        done = 0
        for number in range(60):
            await manager.create_agent(f"a{number}")
            done += await manager.run_task(f"a{number}", "go") == "done"
        assert done == 60
        failed = await manager.wait_task(large)
        assert failed.state is TaskState.FAILED

    play(scenario, models=lambda _: FunctionModel(say, account=ACCOUNT, latency_seconds=5.0))


def test_sessions_share_the_gate_of_an_account_and_other_keys_have_their_own() -> None:
    shared = CrowdedProvider(most=2, latency_seconds=10.0)
    other = CrowdedProvider(latency_seconds=1.0, account=Account(provider="test", address="provider.test", key="other"))

    async def main() -> None:
        models = {"shared": shared, "other": other}
        async with (
            opened(None, lambda _: "", models=models.__getitem__, session_id="one") as one,
            opened(None, lambda _: "", models=models.__getitem__, session_id="two") as two,
        ):
            for session in (one, two):
                await session.set_limits({"max_requests_per_account": 2})
            tasks = []
            for number, session in enumerate((one, one, two, two)):
                await session.create_agent(f"a{number}", {"model": "shared"})
                tasks.append((session, await session.send_task(f"a{number}", "go")))
            await two.create_agent("b", {"model": "other"})
            assert await two.run_task("b", "go") == "done: go"
            assert now() < 2
            assert [each.waiting for each in one.list_provider_accounts()] == [2]
            for session, task in tasks:
                assert (await session.wait_task(task)).state is TaskState.COMPLETED
            assert shared.refused_at == []
            assert {each.account for each in one.list_provider_accounts()} == {ACCOUNT.id}

    simulate(main())


def test_a_session_that_is_closed_leaves_the_line() -> None:
    provider = CrowdedProvider(latency_seconds=10.0)

    async def main() -> None:
        def session(name: str) -> AsyncAgentSessionManager:
            return opened(None, lambda _: "", models=lambda _: provider, session_id=name)

        async with session("stays") as stays:
            await stays.set_limits({"max_requests_per_account": 1})
            await stays.create_agent("a")
            first = await stays.send_task("a", "go")
            await asyncio.sleep(1)
            async with session("goes") as goes:
                await goes.set_limits({"max_requests_per_account": 1})
                await goes.create_agent("b")
                await goes.send_task("b", "go")
                await asyncio.sleep(1)
                begun = now()
            assert now() == begun
            await stays.wait_task(first)
            assert await stays.run_task("a", "go") == "done: go"
            assert provider.asked == ["a", "a"]

    simulate(main())


def test_a_task_whose_time_is_over_leaves_the_line() -> None:
    provider = CrowdedProvider(latency_seconds=100.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_requests_per_account": 1})
        for name in ("a", "b"):
            await manager.create_agent(name)
        first = await manager.send_task("a", "go")
        await asyncio.sleep(1)
        late = await manager.wait_task(await manager.send_task("b", "go", timeout_seconds=10, budget=Budget()))
        assert (late.state, late.error and late.error.code) == (TaskState.FAILED, "deadline")
        await manager.wait_task(first)
        assert manager.list_provider_accounts()[0].waiting == 0

    at(provider, scenario)

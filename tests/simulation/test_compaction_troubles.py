"""A conversation is made shorter while models fail, write rubbish or find it too long, and while the process dies."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer, AnswerTurn
from ai_whisperer.domain.tasks import StepKind, TaskState
from ai_whisperer.errors import (
    ModelRefusedError,
    ModelServerError,
    ModelTooLongError,
    ModelUnavailableError,
)
from ai_whisperer.models.base import ModelRequest
from tests.simulation import stage
from tests.simulation.context_stage import Listener, big, chat, create, is_summary, play, steps_of, texts_of, tokens_of
from tests.simulation.stage import Say, names_of


def test_a_request_that_the_provider_finds_too_long_is_made_at_half_its_size() -> None:
    def picky(request: ModelRequest) -> str:
        if tokens_of(request) > 2_000:
            raise ModelTooLongError
        return "fine " * 100

    model = Listener(picky)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"tools": []})
        await chat(manager, 20)
        made = [step.compaction for step in await steps_of(manager)]
        assert {each.reason for each in made if each is not None} == {"refused"}
        assert (await manager.list_tasks("ann"))[0].state is TaskState.COMPLETED

    play(scenario, model)
    assert "Question 0:" in texts_of(model.requests[-1])


def test_a_summary_is_asked_for_under_a_key_of_its_own() -> None:
    """A provider that takes idempotency keys at their word refuses one that was used for another request."""
    keys: dict[str, str] = {}

    def picky(request: ModelRequest) -> str:
        if keys.setdefault(request.step_id, request.system) != request.system:
            raise ModelRefusedError("This key was used for something else.")
        if tokens_of(request) > 2_000 and not is_summary(request):
            raise ModelTooLongError
        return "They talked." if is_summary(request) else "fine " * 100

    model = Listener(picky)
    model.summary = picky

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"tools": [], "prompt": "You are Ann."})
        await chat(manager, 20)
        made = [step.compaction for step in await steps_of(manager)]
        assert made
        assert all(each is not None and not each.problem for each in made)

    play(scenario, model)


def test_what_can_be_made_a_little_shorter_is_not_refused() -> None:
    """A summary may be much shorter than it may be at most."""
    model = Listener(lambda _: "fine " * 20)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"tools": [], "context": {"window": 1_600}})
        for number in range(8):
            await manager.run_task("ann", f"Question {number}: {'why ' * 400}", thread_id="talk")

    play(scenario, model)
    assert len(model.requests) == 8


def test_a_request_that_is_too_long_at_any_size_fails_with_the_sizes() -> None:
    def never(request: ModelRequest) -> str:
        if len(request.turns) > 9:
            raise ModelTooLongError("The conversation is too long for the model.")
        return "fine " * 100

    def refuse(request: ModelRequest) -> str:
        raise ModelTooLongError("The conversation is too long for the model.")

    talk: list[Say] = [never, refuse]

    def say(request: ModelRequest) -> Answer | str:
        return talk[0](request)

    model = Listener(say)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"tools": []})
        await chat(manager, 4)
        del talk[0]
        task = await manager.send_task("ann", "last", thread_id="talk")
        failed = await manager.wait_task(task)
        assert failed.state is TaskState.FAILED
        assert failed.error is not None
        assert failed.error.code == "model_too_long"
        assert "made shorter" in failed.error.message

    play(scenario, model)


@pytest.mark.parametrize(
    ("summary", "problem"),
    [
        (" \n", "no model wrote one: The model returned neither text nor a tool call"),
        ("x" * 60_000, "longer than what it is of"),
        ("Then I called drop_all_tables() twice.", "a tool that there is not: drop_all_tables"),
    ],
)
def test_a_summary_that_cannot_be_used_is_replaced_by_a_list(summary: str, problem: str) -> None:
    model = Listener(summary=summary)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 25)
        made = (await steps_of(manager))[0].compaction
        assert made is not None
        assert problem in made.problem
        assert made.kind == "trim"
        assert "- Agent: fine" in made.summary
        assert "lines are left out here" in made.summary
        assert "drop_all_tables" not in made.summary

    play(scenario, model)


def test_a_summary_that_nobody_writes_does_not_stop_the_talk() -> None:
    def refuse(_: ModelRequest) -> str:
        raise ModelRefusedError("The model does not want to.")

    model = Listener()
    model.summary = refuse

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 25)
        made = (await steps_of(manager))[0].compaction
        assert made is not None
        assert "does not want to" in made.problem

    play(scenario, model)


def test_a_process_that_dies_while_a_summary_is_written_asks_for_it_again() -> None:
    model = Listener()

    async def before(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 40)

    async def after(manager: AsyncAgentSessionManager) -> None:
        begun = [task for task in await manager.list_tasks("ann") if not task.state.ended]
        for task in begun:
            await manager.wait_task(task)
        (step, *_) = await steps_of(manager)
        assert step.attempt == 2
        assert step.compaction is not None
        assert step.compaction.summary == "They talked."
        await chat(manager, 1, first=100)
        assert "They talked." in texts_of(model.requests[-1])

    stage.play_over_crash(
        before, after, model, tools=[big], crash_after_seconds=_before_the_first_summary(), down_for_seconds=5
    )
    assert [request.attempt for request in model.summaries] == [2]


def _before_the_first_summary() -> float:
    """Half a second after the first summary was asked for, in a run of the same talk."""
    model = Listener()
    times: list[float] = []

    def note(_: ModelRequest) -> str:
        times.append(asyncio.get_running_loop().time())
        return "They talked."

    model.summary = note

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 25)

    play(scenario, model)
    return times[0] + 0.5


def test_a_view_after_a_restart_is_the_one_before() -> None:
    model = Listener()

    async def before(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 25)

    async def after(manager: AsyncAgentSessionManager) -> None:
        shown = model.requests[-1].turns
        await chat(manager, 1, first=100)
        again = model.requests[-1].turns
        assert again[: len(shown)] == shown
        assert isinstance(again[len(shown)], AnswerTurn)

    stage.play_over_crash(before, after, model, tools=[big], crash_after_seconds=1_000)


def test_a_summary_waits_for_a_provider_that_is_down_and_is_asked_for_again() -> None:
    model = Listener()
    downs = [ModelUnavailableError(), ModelServerError()]

    def summarize(_: ModelRequest) -> str:
        if downs:
            raise downs.pop()
        return "They talked."

    model.summary = summarize

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 8)
        done = await manager.wait_task(await manager.compact_context("ann", task_id="shorter"))
        (step,) = await manager.list_steps(done)
        assert (step.kind, step.attempt, step.requests) == (StepKind.COMPACTION, 3, 3)
        assert (await names_of(manager)).count("step.retried") == 2

    play(scenario, model)


def test_an_agent_that_is_paused_while_a_summary_is_written_resumes_with_it() -> None:
    model = Listener()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 8)
        task = await manager.compact_context("ann")
        await asyncio.sleep(0.5)
        await manager.interrupt_agent("ann")
        await asyncio.sleep(5)
        assert (await manager.get_task(task)).state is TaskState.RUNNING
        await manager.resume_agent("ann")
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        report = await manager.get_context("ann")
        assert report.compaction is not None
        assert report.compaction.summary == "They talked."

    play(scenario, model)


def test_a_compaction_that_is_cancelled_leaves_the_talk_as_it_was() -> None:
    model = Listener()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 8)
        task = await manager.compact_context("ann")
        await asyncio.sleep(0.5)
        await manager.cancel_task(task)
        assert (await manager.get_context("ann")).compaction is None
        await chat(manager, 1, first=50)
        assert "Question 3:" in texts_of(model.requests[-1])
        assert (await manager.wait_task(await manager.retry_task(task))).state is TaskState.COMPLETED
        assert (await manager.get_context("ann")).compaction is not None

    play(scenario, model)


def test_a_prompt_that_no_window_can_hold_is_refused_with_the_sizes() -> None:
    model = Listener()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        failed = await manager.wait_task(await manager.send_task("ann", "why " * 10_000))
        assert failed.error is not None
        assert failed.error.code == "context_limit"
        assert "cannot be made shorter; the model takes 6,000" in failed.error.message

    play(scenario, model)
    assert model.requests == []

"""Questions to a person: a call waits for the answer, durably, and every end of it is a result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, QuestionState, TaskState
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import AnswerError, InvalidInputError, StateError, UnknownQuestionError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, calls, names_of, play, play_over_crash, prompt_of, results_of, round_of, until

FORM = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
}
MAY_ASK = {"tools": ["ask_user", "send_mail_with_switch"]}


def asks(**arguments: Any) -> Callable[[ModelRequest], Answer | str]:
    def say(request: ModelRequest) -> Answer | str:
        if prompt_of(request) == "something else":
            return "did something else"
        if round_of(request) == 0:
            return call("ask_user", **{"question": "Where to?", **arguments})
        return results_of(request)[-1]

    return say


async def ann_asks(manager: AsyncAgentSessionManager, **terms: Any) -> str:
    """Let ann come to her question; returns its id."""
    await manager.create_agent("ann", MAY_ASK)
    await manager.start_agent("ann")
    await manager.send_task("ann", "go", task_id="t1", **terms)
    await until(lambda: is_asked(manager))
    return "t1.2"


async def is_asked(manager: AsyncAgentSessionManager) -> bool:
    return bool(await manager.list_questions())


async def answer_of(manager: AsyncAgentSessionManager, task_id: str = "t1") -> str:
    ended = await manager.wait_task(task_id)
    assert ended.state is TaskState.COMPLETED
    assert ended.result is not None
    return ended.result.final


def test_the_answer_of_a_person_is_the_result_of_the_call() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        asked = await ann_asks(manager)
        (question,) = await manager.list_questions()
        assert (question.id, question.agent_id, question.question) == (asked, "ann", "Where to?")
        assert manager.get_agent_status("ann").waiting_for == (f"question:{asked}",)
        answered = await manager.answer_question(asked, "to Rome", by="eve")
        assert (answered.state, answered.answer, answered.decided_by) == ("answered", {"answer": "to Rome"}, "eve")
        assert await answer_of(manager) == "to Rome"
        assert await manager.list_questions() == []
        assert (await manager.list_questions(state=None))[0] == await manager.get_question(asked)

    play(scenario, asks())


def test_an_answer_in_a_form_comes_as_json() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        asked = await ann_asks(manager)
        await manager.answer_question(asked, {"city": "Rome", "days": 3})
        assert await answer_of(manager) == '{"city":"Rome","days":3}'

    play(scenario, asks(schema=FORM))


def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays_open() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        asked = await ann_asks(manager)
        with pytest.raises(AnswerError, match="'days' must be a whole number, at least 1, not 0"):
            await manager.answer_question(asked, {"city": "Rome", "days": 0})
        assert (await manager.get_question(asked)).state is QuestionState.PENDING
        await manager.answer_question(asked, {"city": "Rome", "days": 1})
        assert await answer_of(manager) == '{"city":"Rome","days":1}'

    play(scenario, asks(schema=FORM))


def test_a_refusal_is_a_result_and_no_failure() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        asked = await ann_asks(manager)
        await manager.refuse_question(asked, reason="ask me tomorrow")
        assert "does not want to answer this. They say: ask me tomorrow" in " ".join((await answer_of(manager)).split())
        (step,) = [step for step in await manager.list_steps("t1") if step.call is not None]
        assert step.result is not None
        assert not step.result.is_error

    play(scenario, asks())


def test_a_question_that_nobody_answers_in_time_has_that_as_its_result() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        asked = await ann_asks(manager)
        assert "nobody answered within 60 seconds" in await answer_of(manager)
        assert (await manager.get_question(asked)).state is QuestionState.EXPIRED
        with pytest.raises(StateError, match="is expired already"):
            await manager.answer_question(asked, "too late")

    play(scenario, asks(timeout_seconds=60))


def test_a_question_without_a_time_waits_for_days() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        asked = await ann_asks(manager)
        await asyncio.sleep(5 * 86_400)
        await manager.answer_question(asked, "Rome")
        assert await answer_of(manager) == "Rome"

    play(scenario, asks(), limits={"max_task_seconds": 10 * 86_400})


def test_the_deadline_of_its_task_holds_for_a_question() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        asked = await ann_asks(manager, timeout_seconds=100)
        question = await manager.get_question(asked)
        assert question.deadline_at == (await manager.get_task("t1")).deadline_at
        ended = await manager.wait_task("t1")
        assert ended.state is TaskState.FAILED
        assert (await manager.get_question(asked)).state is QuestionState.EXPIRED

    play(scenario, asks(timeout_seconds=1_000_000))


def test_nobody_waits_longer_for_a_person_than_the_one_who_waits_for_the_agent() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "ann":
            return asks()(request)
        if prompt_of(request) != "go":
            return "never mind"  # the answer that came too late
        if round_of(request) == 0:
            return call("send_mail_with_switch", to_agent="ann", subject="q", body="?", timeout_seconds=30)
        return results_of(request)[-1]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("ann", "ben"):
            await manager.create_agent(name, MAY_ASK)
            await manager.start_agent(name)
        asking = asyncio.ensure_future(manager.run_task("ben", "go"))
        await until(lambda: is_asked(manager))
        (question,) = await manager.list_questions()
        assert question.deadline_at is not None
        assert question.deadline_at - question.asked_at < 30
        assert "Timeout" in await asking
        await manager.at_rest()

    play(scenario, say)


def test_a_question_that_waits_takes_no_place() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ben")
        await manager.start_agent("ben")
        asked = await ann_asks(manager)
        assert manager._session.slots.used == 0
        assert await manager.run_task("ben", "something else") == "did something else"
        await manager.answer_question(asked, "Rome")
        await manager.at_rest()

    play(scenario, asks(), limits={"max_concurrent_loops": 1})


def test_a_task_that_ends_withdraws_its_question() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        asked = await ann_asks(manager)
        await manager.cancel_task("t1", reason="never mind")
        question = await manager.get_question(asked)
        assert (question.state, question.reason) == (QuestionState.WITHDRAWN, "never mind")
        with pytest.raises(StateError, match="is withdrawn already"):
            await manager.answer_question(asked, "Rome")

    play(scenario, asks())


def test_the_same_answer_again_changes_nothing_and_another_is_refused() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        asked = await ann_asks(manager)
        first = await manager.answer_question(asked, "Rome")
        assert await manager.answer_question(asked, {"answer": "Rome"}) == first
        with pytest.raises(StateError, match="is answered already"):
            await manager.answer_question(asked, "Paris")
        with pytest.raises(StateError, match="is answered already"):
            await manager.refuse_question(asked)
        await manager.at_rest()
        assert (await names_of(manager)).count("question.answered") == 1

    play(scenario, asks())


def test_several_questions_of_one_answer_wait_side_by_side() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return calls(("ask_user", {"question": "one?"}), ("ask_user", {"question": "two?"}))
        return " ".join(results_of(request))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await ann_asks(manager)
        assert [each.question for each in await manager.list_questions()] == ["one?", "two?"]
        await manager.answer_question("t1.3", "second")
        await asyncio.sleep(10)
        await manager.answer_question("t1.2", "first")
        assert await answer_of(manager) == "first second"

    play(scenario, say)


def test_a_question_that_makes_no_sense_is_an_error_that_the_model_reads() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", MAY_ASK)
        await manager.start_agent("ann")
        told = await manager.run_task("ann", "go")
        assert "'city' has the type 'object', and may be string" in told
        assert await manager.list_questions(state=None) == []

    play(scenario, asks(schema={"properties": {"city": {"type": "object"}}}))


def test_the_tool_is_granted_by_its_name_only() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.start_agent("ann")
        assert "You have no tool 'ask_user'" in await manager.run_task("ann", "go")

    play(scenario, asks())


def test_bad_input_changes_nothing() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        asked = await ann_asks(manager)
        for unknown in ("t9.9", "", "x" * 500):
            with pytest.raises(UnknownQuestionError):
                await manager.get_question(unknown)
            with pytest.raises(UnknownQuestionError):
                await manager.answer_question(unknown, "Rome")
        with pytest.raises(InvalidInputError, match="state must be one of"):
            await manager.list_questions(state="open")
        with pytest.raises(InvalidInputError, match="at most"):
            await manager.answer_question(asked, "x" * 10_000_000)
        with pytest.raises(InvalidInputError, match="lone surrogate"):
            await manager.answer_question(asked, "\ud800")
        assert [each.id for each in await manager.list_questions()] == [asked]

    play(scenario, asks())


def test_a_pause_keeps_the_answer_for_later() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        asked = await ann_asks(manager)
        await manager.pause_agent("ann")
        await manager.answer_question(asked, "Rome")
        await asyncio.sleep(60)
        assert (await manager.get_task("t1")).state is TaskState.RUNNING
        await manager.resume_agent("ann")
        assert await answer_of(manager) == "Rome"

    play(scenario, asks())


def test_a_question_waits_on_after_a_crash() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await ann_asks(manager)
        await asyncio.sleep(3600)

    async def after(manager: AsyncAgentSessionManager) -> None:
        (question,) = await manager.list_questions()
        assert manager.work_counts.pending_questions == 1
        await manager.answer_question(question.id, "Rome")
        assert await answer_of(manager) == "Rome"

    play_over_crash(before, after, asks(), crash_after_seconds=60, down_for_seconds=3600)


def test_the_time_of_a_question_runs_out_while_the_process_is_down() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await ann_asks(manager)
        await asyncio.sleep(3600)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert "nobody answered within" in await answer_of(manager)

    play_over_crash(before, after, asks(timeout_seconds=600), crash_after_seconds=60, down_for_seconds=3600)


@pytest.mark.parametrize("crash_after_seconds", [2.0, 2.001, 2.005, 2.01, 2.02, 2.05, 2.5, 3.0, 3.5])
def test_an_answer_that_was_accepted_survives_a_crash_and_counts_once(crash_after_seconds: float) -> None:
    accepted: list[str] = []

    async def before(manager: AsyncAgentSessionManager) -> None:
        asked = await ann_asks(manager)
        await asyncio.sleep(max(0.0, 2.0 - asyncio.get_running_loop().time()))
        await manager.answer_question(asked, "Rome")
        accepted.append(asked)
        await asyncio.sleep(10)

    async def after(manager: AsyncAgentSessionManager) -> None:
        if await is_asked(manager):
            assert not accepted
            await manager.answer_question("t1.2", "Rome")
        assert await answer_of(manager) == "Rome"
        assert (await names_of(manager)).count("question.answered") == 1

    play_over_crash(before, after, asks(), crash_after_seconds=crash_after_seconds)

"""Messages to a task at work: heard before its next step, recorded with it, never lost and never twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.domain.conversation import Answer, UserTurn
from ai_whisperer.domain.tasks import StepKind
from ai_whisperer.errors import DeadlineError, InvalidInputError, ModelRefusedError, StateError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, names_of, play, play_over_crash, until

Say = Callable[[ModelRequest], Answer | str]


@tool(idempotent=True)
async def dig(seconds: float) -> str:
    """Dig for a while."""
    await asyncio.sleep(seconds)
    return "dug"


def heard_by(request: ModelRequest) -> list[str]:
    return [turn.text for turn in request.turns if isinstance(turn, UserTurn)]


def digger(request: ModelRequest) -> Answer | str:
    """Digs once for ten seconds, then tells all that it was told."""
    asked = sum(1 for turn in request.turns if not isinstance(turn, UserTurn))
    if "again" in heard_by(request)[-1] or asked == 0:
        return call("dig", seconds=10.0)
    return " | ".join(heard_by(request))


async def at_work(manager: AsyncAgentSessionManager, **terms: object) -> None:
    """Let ann be at the digging of her first task."""
    await manager.create_agent("ann", terms)
    await manager.start_agent("ann")
    await manager.send_task("ann", "dig here", task_id="t1", thread_id="garden")
    await asyncio.sleep(5)


async def finals(manager: AsyncAgentSessionManager) -> list[str]:
    tasks = [task for task in await manager.list_tasks("ann") if task.result is not None]
    return [task.result.final for task in reversed(tasks) if task.result is not None]


def test_a_message_goes_in_before_the_next_step_and_has_the_answer_of_the_task_at_work() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        told = await manager.send_task("ann", "not so deep", task_id="m1", thread_id="garden", deliver="next_step")
        assert told.state is TaskState.QUEUED
        ended = await manager.wait_task("m1")
        assert (ended.id, await finals(manager)) == ("t1", ["dig here | not so deep"])
        joined = await manager.get_task("m1")
        assert (joined.state, joined.joined_step) == (TaskState.JOINED, "t1.3")
        (step,) = [step for step in await manager.list_steps("t1") if step.said]
        assert step.said is not None
        assert (step.id, [(each.task_id, each.text) for each in step.said]) == ("t1.3", [("m1", "not so deep")])
        assert await manager.list_steps("m1") == []

    play(scenario, digger, tools=[dig])


def test_without_a_thread_the_message_goes_to_the_one_task_at_work() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        told = await manager.send_task("ann", "not so deep", deliver="next-step")
        assert told.thread_id == "garden"
        await manager.at_rest()
        assert await finals(manager) == ["dig here | not so deep"]

    play(scenario, digger, tools=[dig])


def test_of_several_tasks_at_work_the_thread_has_to_be_named() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager, limits={"max_concurrent_tasks": 2})
        await manager.send_task("ann", "dig there", thread_id="yard")
        await asyncio.sleep(3)
        with pytest.raises(InvalidInputError, match=r"works in 2 conversations; nothing was sent.*: garden, yard"):
            await manager.send_task("ann", "not so deep", deliver="next_step")
        await manager.at_rest()
        assert len(await manager.list_tasks("ann")) == 2

    play(scenario, digger, tools=[dig])


def test_a_message_to_nobody_at_work_is_an_ordinary_task() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.start_agent("ann")
        ended = await manager.wait_task(await manager.send_task("ann", "dig here", task_id="m1", deliver="next_step"))
        assert (ended.id, ended.state) == ("m1", TaskState.COMPLETED)

    play(scenario, digger, tools=[dig])


def test_a_message_that_comes_after_the_last_step_has_begun_is_done_in_its_turn() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.start_agent("ann")
        await manager.send_task("ann", "hello", task_id="t1", thread_id="garden")
        await asyncio.sleep(0.5)
        await manager.send_task("ann", "one more thing", task_id="m1", thread_id="garden", deliver="next_step")
        ended = await manager.wait_task("m1")
        assert (ended.id, ended.state) == ("m1", TaskState.COMPLETED)
        assert await finals(manager) == ["hello", "hello | one more thing"]

    play(scenario, lambda request: " | ".join(heard_by(request)))


def test_several_messages_are_heard_in_the_order_in_which_they_came() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        for number in range(3):
            await manager.send_task("ann", f"word {number}", thread_id="garden", deliver="next_step")
        await manager.at_rest()
        assert await finals(manager) == ["dig here | word 0 | word 1 | word 2"]

    play(scenario, digger, tools=[dig])


def test_a_message_can_lead_to_more_steps_before_which_others_are_heard() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        await manager.send_task("ann", "dig again", task_id="m1", thread_id="garden", deliver="next_step")
        await asyncio.sleep(10)
        await manager.send_task("ann", "enough", task_id="m2", thread_id="garden", deliver="next_step")
        await manager.at_rest()
        assert await finals(manager) == ["dig here | dig again | enough"]
        assert [(await manager.get_task(each)).joined_step for each in ("m1", "m2")] == ["t1.3", "t1.5"]

    play(scenario, digger, tools=[dig])


def test_the_next_task_of_the_thread_sees_the_message_where_it_stood() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        await manager.send_task("ann", "not so deep", thread_id="garden", deliver="next_step")
        await manager.at_rest()
        assert await manager.run_task("ann", "and now?", thread_id="garden") == "dig here | not so deep | and now?"

    play(scenario, digger, tools=[dig])


def test_a_task_that_waits_in_its_turn_does_not_join() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        await manager.send_task("ann", "later", thread_id="garden")
        await manager.at_rest()
        assert await finals(manager) == ["dig here", "dig here | later"]

    play(scenario, digger, tools=[dig])


def refuses_after_the_message(request: ModelRequest) -> Answer | str:
    """The task at work fails with the very request that shows the message."""
    if heard_by(request)[-1] == "not so deep" and request.step_id.startswith("t1"):
        raise ModelRefusedError
    return digger(request)


def test_a_message_that_no_model_has_answered_is_done_in_its_turn_when_the_task_fails() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        await manager.send_task("ann", "not so deep", task_id="m1", thread_id="garden", deliver="next_step")
        ended = await manager.wait_task("m1")
        assert (ended.id, ended.state) == ("m1", TaskState.COMPLETED)
        assert (await manager.get_task("t1")).state is TaskState.FAILED
        assert all(step.said is None for step in await manager.list_steps("t1"))

    play(scenario, refuses_after_the_message, tools=[dig])


def test_a_retry_of_the_task_that_failed_does_not_show_the_message_again() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        await manager.send_task("ann", "not so deep", task_id="m1", thread_id="garden", deliver="next_step")
        await manager.wait_task("m1")
        await manager.wait_task(await manager.retry_task("t1"))
        asked = [step for step in await manager.list_steps("t1") if step.kind is StepKind.MODEL]
        assert asked[-1].answer is not None
        assert asked[-1].said is None

    play(scenario, refuses_after_the_message, tools=[dig])


def test_a_message_survives_the_cancellation_of_the_task_at_work() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        await manager.send_task("ann", "not so deep", task_id="m1", thread_id="garden", deliver="next_step")
        await manager.cancel_task("t1")
        assert (await manager.wait_task("m1")).state is TaskState.COMPLETED

    play(scenario, digger, tools=[dig])


def test_a_message_that_waits_can_be_cancelled_and_one_that_was_heard_cannot() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        await manager.send_task("ann", "wrong", task_id="m1", thread_id="garden", deliver="next_step")
        await manager.send_task("ann", "right", task_id="m2", thread_id="garden", deliver="next_step")
        await manager.cancel_task("m1")
        await manager.at_rest()
        assert await finals(manager) == ["dig here | right"]
        with pytest.raises(StateError, match="is joined already"):
            await manager.cancel_task("m2")

    play(scenario, digger, tools=[dig])


def test_a_message_that_is_being_told_cannot_be_cancelled() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        await manager.send_task(
            "ann", "not so deep", task_id="m1", thread_id="garden", timeout_seconds=6.5, deliver="next_step"
        )
        await asyncio.sleep(6.2)
        with pytest.raises(StateError, match="is being told to the task at work in its thread"):
            await manager.cancel_task("m1")
        await manager.at_rest()
        assert await finals(manager) == ["dig here | not so deep"]
        assert (await manager.get_task("m1")).state is TaskState.JOINED

    play(scenario, digger, tools=[dig])


def test_a_message_whose_time_is_over_while_it_is_told_to_nobody_who_answers_waits_no_longer() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager, limits={"max_concurrent_tasks": 1})
        await manager.send_task("ann", "dig there", task_id="t2", thread_id="yard", priority="high")
        await manager.send_task(
            "ann", "not so deep", task_id="m1", thread_id="garden", timeout_seconds=6.5, deliver="next_step"
        )
        ended = await manager.wait_task("m1")
        assert (ended.id, ended.state) == ("m1", TaskState.FAILED)
        assert ended.error is not None
        assert ended.error.code == DeadlineError.code
        assert (await manager.get_task("t2")).state is TaskState.RUNNING

    play(scenario, refuses_after_the_message, tools=[dig])


def test_a_message_whose_time_was_over_while_the_process_was_down_is_told_to_nobody() -> None:
    def say(request: ModelRequest) -> Answer | str:
        return call("ask_user", question="where?", timeout_seconds=20) if len(request.turns) == 1 else "dug here"

    async def before(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager, tools=["ask_user"])
        await manager.send_task(
            "ann", "not so deep", task_id="m1", thread_id="garden", timeout_seconds=10, deliver="next_step"
        )
        await asyncio.sleep(60)

    async def after(manager: AsyncAgentSessionManager) -> None:
        ended = await manager.wait_task("m1")
        assert ended.error is not None
        assert (ended.id, ended.error.code) == ("m1", DeadlineError.code)
        await manager.wait_task("t1")
        assert [step.said for step in await manager.list_steps("t1")] == [None] * 3

    play_over_crash(before, after, say, crash_after_seconds=6, down_for_seconds=100)


def test_a_message_can_go_to_a_task_that_another_agent_has_delegated() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "ann":
            return digger(request)
        return call("delegate_task", to_agent="ann", task="dig here") if len(request.turns) == 1 else "delegated"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("ann", "ben"):
            await manager.create_agent(name)
            await manager.start_agent(name)
        await manager.send_task("ben", "go", task_id="t1")
        await asyncio.sleep(5)
        await manager.send_task("ann", "not so deep", thread_id="t1.2~task", deliver="next_step")
        await manager.at_rest()
        assert (await finals(manager))[0].endswith(" | not so deep")
        with pytest.raises(StateError, match=r"not at work in the conversation 't1\.2~task'; nothing was sent"):
            await manager.send_task("ann", "too late", thread_id="t1.2~task", deliver="next_step")

    play(scenario, say, tools=[dig])


def test_a_message_is_heard_when_a_paused_agent_goes_on() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        await manager.pause_agent("ann")
        await asyncio.sleep(60)
        await manager.send_task("ann", "not so deep", thread_id="garden", deliver="next_step")
        await manager.resume_agent("ann")
        await manager.at_rest()
        assert await finals(manager) == ["dig here | not so deep"]

    play(scenario, digger, tools=[dig])


def test_the_same_message_again_is_heard_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        for _ in range(3):
            await manager.send_task("ann", "not so deep", task_id="m1", thread_id="garden", deliver="next_step")
        await manager.at_rest()
        await manager.send_task("ann", "not so deep", task_id="m1", thread_id="garden", deliver="next_step")
        await manager.at_rest()
        assert await finals(manager) == ["dig here | not so deep"]

    play(scenario, digger, tools=[dig])


def test_a_message_in_a_chat_is_taken_into_the_answer_that_is_under_way() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.start_agent("ann")
        room = await manager.open_chat("ann")
        await manager.post_message(room, "dig here")
        await asyncio.sleep(5)
        message = await manager.post_message(room, "not so deep", deliver="next_step")
        await manager.at_rest()
        said = [(each.sender, each.text) for each in await manager.room_messages(room)]
        assert said == [("user", "dig here"), ("user", "not so deep"), ("ann", "dig here | not so deep")]
        assert (await manager.get_task(message.asked["ann"])).state is TaskState.JOINED
        names = await names_of(manager)
        assert (names.count("room.joined"), names.count("room.unanswered")) == (1, 0)

    play(scenario, digger, tools=[dig])


def test_a_message_that_wants_an_output_of_its_own_is_refused() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        with pytest.raises(InvalidInputError, match="has no output of its own"):
            await manager.send_task("ann", "how deep?", deliver="next_step", output={"type": "integer"})
        await manager.at_rest()
        assert await finals(manager) == ["dig here"]

    play(scenario, digger, tools=[dig])


def test_a_word_that_says_nothing_about_delivery_is_refused() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        with pytest.raises(InvalidInputError, match="deliver must be one of in_turn, next_step, not 'now'"):
            await manager.send_task("ann", "dig", deliver="now")
        assert await manager.list_tasks("ann") == []

    play(scenario, digger, tools=[dig])


@pytest.mark.parametrize("crash_after_seconds", [5.0, 5.01, 6.0, 10.9, 11.0, 11.01, 11.05, 11.5, 11.99, 12.0, 12.05])
def test_a_message_is_heard_once_whenever_the_process_dies(crash_after_seconds: float) -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await at_work(manager)
        await manager.send_task("ann", "not so deep", task_id="m1", thread_id="garden", deliver="next_step")
        await asyncio.sleep(60)

    async def after(manager: AsyncAgentSessionManager) -> None:
        await manager.send_task("ann", "not so deep", task_id="m1", thread_id="garden", deliver="next_step")
        await until(lambda: all_ended(manager))
        assert (await finals(manager))[-1] == "dig here | not so deep"
        steps = [step for step in await manager.list_steps("t1") if step.said]
        joined = await manager.get_task("m1")
        assert [step.id for step in steps] == ([joined.joined_step] if joined.state is TaskState.JOINED else [])

    play_over_crash(before, after, digger, tools=[dig], crash_after_seconds=crash_after_seconds)


async def all_ended(manager: AsyncAgentSessionManager) -> bool:
    return all(task.state.ended for task in await manager.list_tasks("ann"))

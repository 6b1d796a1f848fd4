"""How those who are asked in a room answer, later or not at all."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.core.marks import without_marks
from ai_whisperer.core.rooms import MAX_MESSAGE_BYTES
from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.room_stage import MEMBERS, group, said, silence, told
from tests.simulation.stage import play, prompt_of


def test_the_parts_of_a_continued_answer_are_one_message_that_comes_at_the_end() -> None:
    def say(request: ModelRequest) -> str:
        return "and more @bob" if prompt_of(request).startswith("Continue") else "first part\n[CONTINUE]"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice", "bob", hop_limit=0)
        message = await manager.post_message(room, "@alice")
        await silence(manager)
        answer = (await manager.room_messages(room))[1]
        assert len(await manager.room_messages(room)) == 2
        assert (answer.text, answer.task_id) == ("first part\nand more @bob", message.asked["alice"])
        assert (answer.mentions, answer.hops) == (("bob",), 1)

    play(scenario, say)


def test_a_task_that_fails_leaves_the_message_unanswered_until_it_is_retried() -> None:
    works = False

    def say(request: ModelRequest) -> str:
        if not works:
            raise ModelRefusedError
        return "at last"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        nonlocal works
        room = await group(manager, "alice")
        message = await manager.post_message(room, "hello?")
        await silence(manager)
        (unanswered,) = await told(manager, "room.unanswered")
        assert unanswered["taskId"] == message.asked["alice"]
        assert unanswered["error"]["code"] == "model_refused"
        works = True
        await manager.retry_task(message.asked["alice"])
        await silence(manager)
        assert await said(manager, room) == ["user: hello?", "alice: at last"]

    play(scenario, say)


def test_a_continued_answer_that_fails_can_be_retried_by_the_task_that_was_announced() -> None:
    works = False

    def say(request: ModelRequest) -> str:
        if not prompt_of(request).startswith("Continue"):
            return "one\n[CONTINUE]"
        if not works:
            raise ModelRefusedError
        return "two"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        nonlocal works
        room = await group(manager, "alice")
        message = await manager.post_message(room, "count")
        await silence(manager)
        (unanswered,) = await told(manager, "room.unanswered")
        assert unanswered["taskId"] == message.asked["alice"]
        works = True
        await manager.retry_task(unanswered["taskId"])
        await silence(manager)
        assert await said(manager, room) == ["user: count", "alice: one\ntwo"]

    play(scenario, say)


def test_an_answer_that_is_cancelled_is_told_and_not_posted() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice")
        message = await manager.post_message(room, "hello?")
        await asyncio.sleep(1)
        await manager.cancel_task(message.asked["alice"], reason="never mind")
        assert [each["error"]["message"] for each in await told(manager, "room.unanswered")] == ["never mind"]
        assert await said(manager, room) == ["user: hello?"]

    play(scenario, latency_seconds=60)


def test_what_a_task_would_have_shown_that_was_cancelled_before_it_began_is_shown_by_the_next() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice")
        await manager.pause_agent("alice")
        message = await manager.post_message(room, "one")
        await manager.cancel_task(message.asked["alice"])
        message = await manager.post_message(room, "two")
        assert "[1] user: one\n[2] user: two\n" in without_marks(
            (await manager.get_task(message.asked["alice"])).prompt
        )

    play(scenario)


def test_the_answer_of_a_member_that_was_removed_meanwhile_is_not_posted() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice", "bob")
        message = await manager.post_message(room, "@bob hello?")
        room = await manager.remove_member(room, "bob")
        assert room.members == ("alice",)
        await silence(manager)
        assert (await manager.get_task(message.asked["bob"])).state is TaskState.COMPLETED
        assert [each["error"]["code"] for each in await told(manager, "room.unanswered")] == ["not_a_member"]
        assert await said(manager, room) == ["user: @bob hello?"]

    play(scenario)


@pytest.mark.parametrize("held_up", ["paused", "sleeping", "not started"])
def test_who_cannot_answer_now_answers_later(held_up: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", auto_start=held_up != "not started")
        room = await manager.create_room(["alice"])
        if held_up == "paused":
            await manager.pause_agent("alice")
        if held_up == "sleeping":
            await manager.sleep_agent("alice", duration_seconds=3600)
        await manager.post_message(room, "@alice hello?")
        await asyncio.sleep(1800)
        assert await said(manager, room) == ["user: @alice hello?"]
        if held_up == "paused":
            await manager.resume_agent("alice")
        if held_up == "not started":
            await manager.start_agent("alice")
        await asyncio.sleep(3600)
        assert (await said(manager, room))[1:] == ["alice: done"]

    play(scenario)


def test_without_a_mention_those_who_are_stopped_are_left_out_and_named() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, *MEMBERS)
        await manager.stop_agent("bob")
        for number, text in enumerate(("hello", "@all hello"), 1):
            message = await manager.post_message(room, text)
            assert tuple(message.asked) == ("alice", "carol")
            assert len(await told(manager, "room.absent")) == number
            await silence(manager)
        assert (await told(manager, "room.absent"))[0] == {
            "roomId": room.id,
            "number": 1,
            "agentId": "bob",
            "reason": "stopped",
        }
        await manager.start_agent("bob")
        await silence(manager)
        assert all(message.sender != "bob" for message in await manager.room_messages(room))

    play(scenario)


def test_a_mention_that_only_the_cut_makes_is_answered_as_any_other() -> None:
    beginning = "x" * (MAX_MESSAGE_BYTES - len(" @bob")) + " @bob"

    def say(request: ModelRequest) -> str:
        return f"{beginning}by is not here" if request.agent_id == "alice" else "here I am"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice", "bob")
        await manager.post_message(room, "@alice hello")
        await silence(manager)
        _, long, answer = await said(manager, room)
        assert long.startswith(f"alice: {beginning}\n[cut: ")
        assert answer == "bob: here I am"

    play(scenario, say)

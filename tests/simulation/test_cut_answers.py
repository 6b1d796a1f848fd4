"""Answers that their length has cut: joined wherever they are read, and continued while that brings something."""

from __future__ import annotations

import itertools

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.core.rambling import REPEATED
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.task_events import AnswerDelta, TaskEnded
from ai_whisperer.errors import DefinitionError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, play, play_over_crash, prompt_of, round_of

PARTS = ("Once upon a time there was a king who ha", "d three daughters,\n", "\n  and no sons, and so ", "he was.")
WHOLE = "Once upon a time there was a king who had three daughters,\n\n  and no sons, and so he was."
RAMBLING = "and the sea was blue, and the sky was blue, and the ship was white, " * 30


def in_parts(request: ModelRequest) -> Answer:
    told = sum(turn.text.startswith("Continue") for turn in request.turns if hasattr(turn, "text"))
    return Answer(text=PARTS[told], finish="length" if told < len(PARTS) - 1 else "stop")


def test_who_waits_for_a_cut_answer_has_all_of_it_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        task = await manager.send_task("ann", "Tell a story.")
        ended = await manager.wait_task(task)
        assert ended.result is not None
        assert ended.result.final == WHOLE
        assert ended.id == f"{task.id}~3"
        assert (await manager.wait_task(ended)).result == ended.result
        last = (await manager.get_task(ended.id)).result
        assert last is not None
        assert last.final == PARTS[-1]
        parts = [(await manager.get_task(f"{task.id}{mark}")).result for mark in ("", "~1", "~2")]
        assert [part.final for part in parts if part is not None] == list(PARTS[:-1])
        assert await manager.run_task("ann", "Tell a story.", thread_id="new") == WHOLE

    play(scenario, in_parts)


@pytest.mark.parametrize("when", ["live", "later"])
def test_the_pieces_of_a_cut_answer_joined_are_the_answer(when: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        task = await manager.send_task("ann", "Tell a story.")
        if when == "later":
            await manager.wait_task(task)
        pieces, answer = [], None
        async for event in manager.stream(task):
            if isinstance(event, AnswerDelta):
                pieces.append(event.text)
            elif isinstance(event, TaskEnded):
                answer = event.answer
        assert ("".join(pieces), answer) == (WHOLE, WHOLE)

    play(scenario, in_parts)


def test_a_cut_answer_in_a_room_and_as_a_result_of_a_delegation_is_whole() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "ann":
            return in_parts(request)
        asked = prompt_of(request) == "Have a story told." and not round_of(request)
        return call("delegate_task", to_agent="ann", task="Tell a story.") if asked else "read"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.create_agent("bob")
        room = await manager.open_chat("ann")
        posted = await manager.post_message(room, "Tell a story.")
        await manager.wait_task(posted.asked["ann"])
        assert [message.text for message in await manager.room_messages(room)][-1] == WHOLE
        await manager.run_task("bob", "Have a story told.")
        await manager.at_rest()
        assert [mail.body.split(":\n", 1)[1] for mail in await manager.mailbox("bob")] == [WHOLE]

    play(scenario, say)


def test_an_answer_that_is_cut_over_a_crash_is_whole() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.send_task("ann", "Tell a story.", task_id="t")
        await manager.wait_task("t")

    async def after(manager: AsyncAgentSessionManager) -> None:
        ended = await manager.wait_task("t")
        assert ended.result is not None
        assert ended.result.final == WHOLE

    play_over_crash(before, after, in_parts, crash_after_seconds=1.5)


@pytest.mark.parametrize(
    "said",
    [
        lambda _: "I am a helpful assistant.",
        lambda number: RAMBLING[7 * number : 1_500 + 7 * number],
        lambda number: f"<think>{RAMBLING[number:900]}",
    ],
)
def test_a_model_that_says_the_same_again_is_not_continued_to_the_limit(said: object) -> None:
    numbers = itertools.count()

    def say(_: ModelRequest) -> Answer:
        return Answer(text=said(next(numbers)), finish="length")  # type: ignore[operator]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        task = await manager.send_task("ann", "Tell a story.")
        ended = await manager.wait_task(task)
        assert (ended.state, next(numbers)) == (TaskState.COMPLETED, 2)
        first = (await manager.get_task(task.id)).result
        assert first is not None
        assert ended.result is not None
        assert ended.result.final == f"{first.final}\n{REPEATED}".strip()

    play(scenario, say)


def test_one_who_asks_for_more_and_does_something_each_time_may_say_the_same() -> None:
    def say(request: ModelRequest) -> Answer | str:
        called = sum(hasattr(turn, "call") for turn in request.turns)
        asked = sum(hasattr(turn, "text") for turn in request.turns)
        if called < asked:
            return call("report_progress", percent=called)
        return "Another one is done.\n[CONTINUE]" if asked < 6 else "All are done."

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        ended = await manager.wait_task(await manager.send_task("ann", "Do six."))
        assert ended.result is not None
        assert ended.result.final.endswith("All are done.")

    play(scenario, say)


def test_parts_that_bring_something_are_continued_to_the_limit() -> None:
    numbers = itertools.count()

    def say(_: ModelRequest) -> Answer:
        number = next(numbers)
        return Answer(text=f"Chapter {number} tells of the {number}th voyage of ship {number}.", finish="length")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"limits": {"max_continuations": 3}})
        ended = await manager.wait_task(await manager.send_task("ann", "Tell a story."))
        assert ended.error is not None
        assert (ended.error.code, next(numbers)) == ("continuation_limit", 4)

    play(scenario, say)


def test_a_cut_answer_is_final_where_the_definition_says_so() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if prompt_of(request) == "ask":
            return "So far.\n[CONTINUE]"
        return Answer(text="Once upon a", finish="length")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"cut_answers": "final"})
        task = await manager.send_task("ann", "Tell a story.")
        ended = await manager.wait_task(task)
        assert (ended.id, ended.state) == (task.id, TaskState.COMPLETED)
        assert ended.result is not None
        assert ended.result.final == "Once upon a"
        asked = await manager.send_task("ann", "ask")
        assert (await manager.wait_task(asked)).id == f"{asked.id}~1", "who asks for more has more"

    play(scenario, say)


def test_what_becomes_of_cut_answers_is_one_of_two() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(DefinitionError, match=r"cut_answers.*'continue'.*'final'|cut_answers.*continue.*final"):
            await manager.create_agent("ann", {"cut_answers": "never"})

    play(scenario)

"""What was said in a room survives the death of the process, and is said once."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState
from ai_whisperer.core.blame import MOST_STARTS
from ai_whisperer.domain.conversation import UserTurn
from ai_whisperer.domain.rooms import MessageRecord
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import simulate
from tests.effort import spread
from tests.simulation.room_stage import MEMBERS, lines_of, said, silence, told
from tests.simulation.stage import opened, play_over_crash, prompt_of

POSTS = (("m0", "good morning"), ("m1", "@bob begin"), ("m2", "@all report"))


def answer(request: ModelRequest) -> str:
    """Alice and bob mention each other without end, carol passes, and alice takes two parts for the morning."""
    if request.agent_id == "carol":
        return "[PASS]"
    if prompt_of(request).startswith("Continue"):
        return "the rest"
    if request.agent_id == "alice" and lines_of(request)[-1] == "[1] user: good morning":
        return "a part\n[CONTINUE]"
    return "over to @bob" if request.agent_id == "alice" else "over to @alice"


async def converse(manager: AsyncAgentSessionManager) -> None:
    """Hold the conversation, or what is left of it: every call can be made again."""
    known = {status.agent_id for status in manager.list_agents()}
    for member in MEMBERS:
        if member not in known:
            await manager.create_agent(member)
    room = await manager.create_room(MEMBERS, title="Plans", hop_limit=2, room_id="r")
    for message_id, text in POSTS:
        await manager.post_message(room, text, message_id=message_id)
        await asyncio.sleep(0.5)
    await silence(manager)


async def check(manager: AsyncAgentSessionManager) -> None:
    """Nothing lost, nothing doubled: what was posted, one outcome for everyone who was asked, no hop too many."""
    await manager.flushed()
    messages = await manager.room_messages("r", limit=1000)
    assert [message.number for message in messages] == list(range(1, len(messages) + 1))
    assert [(each.id, each.text) for each in messages if each.sender == "user"] == list(POSTS)
    asked = [task_id for message in messages for task_id in message.asked.values()]
    outcomes = [message.task_id for message in messages if message.task_id is not None]
    outcomes += [passed["taskId"] for passed in await told(manager, "room.passed")]
    assert sorted(map(str, outcomes)) == sorted(asked)
    assert await told(manager, "room.unanswered") == []
    assert sorted(each["taskId"] for each in await told(manager, "room.answering")) == sorted(asked)
    assert [posted["number"] for posted in await told(manager, "room.message")] == [each.number for each in messages]
    assert _chatter(messages) == [
        ("alice", 1, "a part\nthe rest"),
        *[("alice", 1, "over to @bob")],
        *[("alice", 2, "over to @bob")] * 3,
        *[("alice", 3, "over to @bob")],
        *[("bob", 1, "over to @alice")] * 3,
        *[("bob", 2, "over to @alice")],
        *[("bob", 3, "over to @alice")] * 3,
    ]
    shown = [line for member in MEMBERS for line in await _shown_to(manager, member)]
    assert len(shown) == len(set(shown))


def _chatter(messages: list[MessageRecord]) -> list[tuple[str, int, str]]:
    return sorted((each.sender, each.hops, each.text) for each in messages if each.sender != "user")


async def _shown_to(manager: AsyncAgentSessionManager, member: str) -> list[str]:
    """Each message that the member was shown, as often as it was."""
    prompts = [task.prompt for task in await manager.list_tasks(member)]
    return [f"{member} {line}" for prompt in prompts for line in prompt.split("\n") if line.startswith("[")]


def test_the_conversation_that_the_crashes_meet_goes_as_it_should() -> None:
    async def scenario() -> None:
        async with opened(None, answer) as manager:
            await converse(manager)
            await check(manager)

    simulate(scenario())


@pytest.mark.parametrize("thousandths", [*range(20, 116, 8), 545, 555])
@pytest.mark.parametrize("seconds", spread(7, usual=3, first=0))
def test_no_message_is_lost_or_doubled_whenever_the_process_dies(seconds: int, thousandths: int) -> None:
    async def after(manager: AsyncAgentSessionManager) -> None:
        await converse(manager)
        await check(manager)

    # An answer takes a second. A little after each, things happen, one commit after the other.
    moment, seed = seconds + thousandths / 1000, 1000 * seconds + thousandths
    slowest = 0.03 if seconds % 2 else 0.0
    play_over_crash(converse, after, answer, crash_after_seconds=moment, slowest_read_seconds=slowest, seed=seed)


def test_a_chat_goes_on_where_it_was_with_its_memory() -> None:
    def say(request: ModelRequest) -> str:
        return " then ".join(turn.text for turn in request.turns if isinstance(turn, UserTurn))

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        room = await manager.open_chat("alice")
        await manager.post_message(room, "one")
        await asyncio.sleep(5)
        await manager.post_message(room, "two")

    async def after(manager: AsyncAgentSessionManager) -> None:
        room = await manager.open_chat("alice")
        await silence(manager)
        await manager.post_message(room, "three")
        await silence(manager)
        assert (await said(manager, room))[1::2] == [
            "alice: one",
            "alice: one then two",
            "alice: one then two then three",
        ]

    play_over_crash(before, after, say, crash_after_seconds=5.5)


def test_an_answer_that_kills_the_process_is_set_aside_and_the_message_unanswered() -> None:
    disk = SimulatedDisk()

    def say(request: ModelRequest) -> str:
        disk.crash()
        asyncio.get_running_loop().stop()
        return "never"

    async def life(*, first: bool) -> None:
        store = disk.open()
        manager = opened(store, say)
        await manager.open()
        if first:
            await manager.create_agent("alice")
            room = await manager.open_chat("alice")
            await manager.post_message(room, "die", message_id="m")
        await manager.flushed()
        await asyncio.sleep(10)
        (unanswered,) = await told(manager, "room.unanswered")
        assert unanswered["error"]["code"] == "crash_limit"
        assert (await manager.get_task(unanswered["taskId"])).state is TaskState.DEAD
        assert manager.get_agent_status("alice").state is AgentState.IDLE
        await manager.close()
        await store.close()

    for number in range(MOST_STARTS):
        with pytest.raises(RuntimeError, match="Event loop stopped before Future completed"):
            simulate(life(first=number == 0), seed=number)
    simulate(life(first=False), seed=MOST_STARTS)
    disk.close()

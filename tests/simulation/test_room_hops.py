"""Agents that address each other in a room, and where that ends."""

from __future__ import annotations

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.models.base import ModelRequest
from tests.simulation.room_stage import MEMBERS, group, lines_of, said, silence, told
from tests.simulation.stage import play


def test_an_agent_that_mentions_another_asks_it() -> None:
    def say(request: ModelRequest) -> str:
        return "Ask @Bob." if request.agent_id == "alice" else f"I saw {lines_of(request)[-1]}"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, *MEMBERS)
        message = await manager.post_message(room, "@alice who knows?")
        await silence(manager)
        assert await said(manager, room) == [
            "user: @alice who knows?",
            "alice: Ask @Bob.",
            "bob: I saw [2] alice: Ask @Bob.",
        ]
        _, asking, answer = await manager.room_messages(room)
        assert (asking.hops, asking.mentions, answer.hops) == (1, ("bob",), 2)
        caused = await manager.get_task(asking.asked["bob"])
        assert (caused.root_id, caused.cause) == (message.asked["alice"], f"message:{asking.id}")

    play(scenario, say)


@pytest.mark.parametrize("hop_limit", [0, 1, 4])
def test_agents_that_always_mention_each_other_stop_at_the_limit(hop_limit: int) -> None:
    def say(request: ModelRequest) -> str:
        return "And you, @bob?" if request.agent_id == "alice" else "And you, @alice?"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice", "bob", hop_limit=hop_limit)
        await manager.post_message(room, "@alice start")
        await silence(manager)
        messages = await manager.room_messages(room)
        assert [message.hops for message in messages] == list(range(hop_limit + 2))
        assert [len(message.asked) for message in messages] == [1] * (hop_limit + 1) + [0]
        (reached,) = await told(manager, "room.hop_limit")
        last = messages[-1]
        assert reached == {
            "roomId": room.id,
            "number": last.number,
            "agentId": last.sender,
            "mentions": list(last.mentions),
            "hopLimit": hop_limit,
        }

    play(scenario, say)


def test_a_message_of_the_user_lets_them_begin_anew() -> None:
    def say(request: ModelRequest) -> str:
        return "And you, @bob?" if request.agent_id == "alice" else "And you, @alice?"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice", "bob", hop_limit=1)
        for _ in range(2):
            await manager.post_message(room, "@alice start")
            await silence(manager)
        assert [message.hops for message in await manager.room_messages(room)] == [0, 1, 2, 0, 1, 2]

    play(scenario, say)


@pytest.mark.parametrize(
    "answer",
    ["I am done.", "@stranger should know.", "I, @alice, am done.", "`@bob`", "bob@example.com", "Ready, @user."],
)
def test_an_answer_that_addresses_no_other_member_asks_nobody(answer: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("stranger")
        room = await group(manager, "alice", "bob")
        await manager.post_message(room, "@alice?")
        await silence(manager)
        assert (await said(manager, room))[1:] == [f"alice: {answer}"]
        assert (await manager.room_messages(room))[1].mentions == ()
        assert await told(manager, "room.hop_limit") == []

    play(scenario, lambda _: answer)


def test_an_agent_can_address_all_others_at_once() -> None:
    def say(request: ModelRequest) -> str:
        return "@all your turn" if request.agent_id == "bob" else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, *MEMBERS)
        await manager.post_message(room, "@bob start")
        await silence(manager)
        assert tuple((await manager.room_messages(room))[1].asked) == ("alice", "carol")
        assert sorted((await said(manager, room))[2:]) == ["alice: done", "carol: done"]

    play(scenario, say)


def test_an_agent_that_mentions_who_cannot_be_asked_is_posted_and_the_absence_told() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("full", {"limits": {"max_queue_length": 1}}, auto_start=False)
        await manager.send_task("full", "waits")
        room = await group(manager, "alice", "bob")
        await manager.add_member(room, "full")
        await manager.stop_agent("bob")
        await manager.post_message(room, "@alice start")
        await silence_of_alice(manager)
        assert (await said(manager, room))[1:] == ["alice: @bob and @full, please"]
        absent = {each["agentId"]: each["reason"] for each in await told(manager, "room.absent")}
        assert absent == {"bob": "stopped", "full": "queue_full"}
        assert (await manager.room_messages(room))[1].asked == {}

    async def silence_of_alice(manager: AsyncAgentSessionManager) -> None:
        await manager.wait_task((await manager.list_tasks("alice"))[0].id)

    play(scenario, lambda _: "@bob and @full, please")


def test_an_answer_longer_than_a_message_may_be_is_cut_with_a_word_about_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice")
        await manager.post_message(room, "write")
        await silence(manager)
        answer = (await manager.room_messages(room))[1].text
        assert answer.endswith("[cut: 300,000 bytes in all, 262,144 shown]")

    play(scenario, lambda _: "x" * 300_000)


def test_a_large_group_in_which_all_mention_all_comes_to_rest() -> None:
    members = tuple(f"agent{number}" for number in range(8))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, *members, hop_limit=3)
        await manager.post_message(room, "Go on, @all!")
        await silence(manager)
        messages = await manager.room_messages(room, limit=10_000)
        assert {message.sender for message in messages} == {"user", *members}
        assert len(messages) < 8 * 8 * 4, "without a bound there would be 8 * 7 * 7 * 7"
        assert {note["reason"] for note in await told(manager, "room.absent")} == {"busy"}

    play(scenario, lambda _: "What do you think, @all?")

"""A person talks with agents, alone or in a group."""

from __future__ import annotations

import asyncio
from typing import Any

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.core.marks import without_marks
from ai_whisperer.domain.conversation import UserTurn
from ai_whisperer.domain.rooms import RoomKind
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import ScriptedModel
from ai_whisperer.models.scripted_rules import Rule
from ai_whisperer.simulation.loop import EPOCH
from tests.simulation.room_stage import MEMBERS, group, lines_of, said, silence, told
from tests.simulation.stage import play, prompt_of


def test_a_chat_of_two_remembers_what_was_said() -> None:
    def say(request: ModelRequest) -> str:
        return " then ".join(turn.text for turn in request.turns if isinstance(turn, UserTurn))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        room = await manager.open_chat("Alice")
        assert (room.kind, room.members, room.id) == (RoomKind.DIRECT, ("alice",), "chat~alice")
        for text in ("one", "two", "three"):
            message = await manager.post_message(room, text)
            assert message.text == text
            await silence(manager)
        assert await said(manager, room) == [
            "user: one",
            "alice: one",
            "user: two",
            "alice: one then two",
            "user: three",
            "alice: one then two then three",
        ]
        assert (await manager.open_chat("alice")).last_number == 6

    play(scenario, say)


def test_messages_that_come_before_the_answer_are_answered_one_after_the_other() -> None:
    def say(request: ModelRequest) -> str:
        return f"heard {prompt_of(request)}"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        room = await manager.open_chat("alice")
        await asyncio.gather(*(manager.post_message(room, text) for text in "abc"))
        await silence(manager)
        assert sorted((await said(manager, room))[:3]) == ["user: a", "user: b", "user: c"]
        asked = [line.removeprefix("user: ") for line in (await said(manager, room))[:3]]
        assert (await said(manager, room))[3:] == [f"alice: heard {text}" for text in asked]

    play(scenario, say)


def test_an_at_sign_in_a_chat_of_two_is_just_text() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_agent("bob")
        room = await manager.open_chat("alice")
        message = await manager.post_message(room, "@bob @nobody @all @alice hello")
        assert (tuple(message.asked), message.mentions) == (("alice",), ())
        await silence(manager)
        assert (await said(manager, room))[1:] == ["alice: ask @bob [PASS]"]

    play(scenario, lambda _: "ask @bob [PASS]")


def test_without_a_mention_all_answer_in_parallel_and_one_may_pass() -> None:
    def say(request: ModelRequest) -> str:
        return "[PASS]" if request.agent_id == "bob" else f"{request.agent_id} here"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, *MEMBERS)
        message = await manager.post_message(room, "Who is there?")
        assert tuple(message.asked) == MEMBERS
        await silence(manager)
        assert (await said(manager, room))[0] == "user: Who is there?"
        assert sorted((await said(manager, room))[1:]) == ["alice: alice here", "carol: carol here"]
        (passed,) = await told(manager, "room.passed")
        assert passed == {"roomId": room.id, "number": 1, "agentId": "bob", "taskId": message.asked["bob"]}
        assert {answer.created_at - EPOCH for answer in await manager.room_messages(room, after=1)} == {60.0}

    play(scenario, say, latency_seconds=60)


def test_a_mention_asks_only_those_who_are_named() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("dave", {"name": "Dave the Debugger", "aliases": ["dd"]})
        room = await group(manager, *MEMBERS)
        await manager.add_member(room, "dave")
        message = await manager.post_message(room, "@Carol and @dave_the_debugger, please. `@bob`")
        assert (message.mentions, tuple(message.asked)) == (("carol", "dave"), ("carol", "dave"))
        await silence(manager)
        assert sorted((await said(manager, room))[1:]) == ["carol: done", "dave: done"]
        assert "addresses you by name" in (await manager.get_task(message.asked["carol"])).prompt

    play(scenario)


def test_all_can_be_addressed_at_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, *MEMBERS)
        message = await manager.post_message(room, "@all report")
        assert message.mentions == tuple(message.asked) == MEMBERS
        await silence(manager)
        assert all(["addresses you by name" in (await manager.list_tasks(member))[0].prompt for member in MEMBERS])

    play(scenario)


def test_who_is_addressed_by_name_may_still_pass() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, *MEMBERS)
        await manager.post_message(room, "@alice?")
        await silence(manager)
        assert await said(manager, room) == ["user: @alice?"]
        assert [each["agentId"] for each in await told(manager, "room.passed")] == ["alice"]

    play(scenario, lambda _: " [pass]. ")


def test_a_member_is_shown_once_what_it_has_not_seen_and_never_its_own_words() -> None:
    shown: list[tuple[str, list[str]]] = []

    def say(request: ModelRequest) -> str:
        shown.append((request.agent_id, lines_of(request)))
        return f"answer {len(shown)}"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice", "bob")
        for text in ("@alice a", "@alice b", "@bob c", "@alice d"):
            await manager.post_message(room, text)
            await silence(manager)
        assert shown == [
            ("alice", ["[1] user: @alice a"]),
            ("alice", ["[3] user: @alice b"]),
            (
                "bob",
                [
                    "[1] user: @alice a",
                    "[2] alice: answer 1",
                    "[3] user: @alice b",
                    "[4] alice: answer 2",
                    "[5] user: @bob c",
                ],
            ),
            ("alice", ["[5] user: @bob c", "[6] bob: answer 3", "[7] user: @alice d"]),
        ]

    play(scenario, say)


def test_a_member_is_shown_messages_that_are_not_on_disk_yet() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice", "bob")
        first = asyncio.ensure_future(manager.post_message(room, "@alice a"))
        await asyncio.sleep(0)
        decided = manager.get_room(room).last_number, len(await manager.room_messages(room))
        second = await manager.post_message(room, "@bob b")
        await first
        assert decided == (1, 0)
        assert "[1] user: @alice a\n[2] user: @bob b\n" in without_marks(
            (await manager.get_task(second.asked["bob"])).prompt
        )

    play(scenario)


def test_who_joins_later_is_shown_what_was_said_before() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice")
        await manager.post_message(room, "secret plan")
        await silence(manager)
        await manager.create_agent("bob")
        room = await manager.add_member(room, "bob")
        assert room.members == ("alice", "bob")
        message = await manager.post_message(room, "@bob what do you think?")
        shown = without_marks((await manager.get_task(message.asked["bob"])).prompt)
        assert "[1] user: secret plan\n[2] alice: done\n[3] user: @bob what do you think?\n" in shown

    play(scenario)


def test_who_was_away_for_long_is_shown_the_latest_messages() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice", "bob")
        await manager.pause_agent("alice")
        for n in range(1, 251):
            await manager.post_message(room, f"@alice n{n}")
        message = await manager.post_message(room, "@bob well?")
        lines = without_marks((await manager.get_task(message.asked["bob"])).prompt).split("\n")
        assert lines[1:3] == [
            "New messages since you last saw the room (older ones are left out):",
            "[51] user: @alice n51",
        ]
        assert lines[201:203] == ["[250] user: @alice n250", "[251] user: @bob well?"]

    play(scenario)


def test_the_pieces_of_an_answer_reach_a_subscriber_that_knows_whose_they_are() -> None:
    rule = Rule(text="[ANALYSIS]hm\n[FINAL]hello there", chunk_characters=3, chunk_seconds=0.1)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice", "bob")
        subscription = manager.subscribe(deltas=True)
        await manager.post_message(room, "hi")
        await silence(manager)
        await manager.create_agent("end")
        answering: dict[str, str] = {}
        streamed: dict[str, str] = {}
        posted: dict[str, str] = {}
        async for note in subscription:
            params: dict[str, Any] = note.params
            match note.name:
                case "room.answering":
                    answering[params["taskId"]] = params["agentId"]
                case "async.task.delta" if params["channel"] == "final":
                    speaker = answering[params["taskId"]]
                    assert speaker not in posted
                    streamed[speaker] = streamed.get(speaker, "") + params["text"]
                case "room.message" if params["taskId"]:
                    assert answering[params["taskId"]] == params["sender"]
                    posted[params["sender"]] = params["text"]
                case "agent.created":
                    break
        assert {speaker: text.strip() for speaker, text in streamed.items()} == posted
        assert posted == {"alice": "hello there", "bob": "hello there"}

    play(scenario, models=lambda _: ScriptedModel([rule]))


def test_the_log_tells_what_a_message_said_and_whom_it_asked() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice", "bob", room_id="plans", hop_limit=2)
        (created,) = await told(manager, "room.created")
        assert created == {
            "roomId": "plans",
            "kind": "group",
            "title": "Plans",
            "members": ["alice", "bob"],
            "hopLimit": 2,
        }
        message = await manager.post_message(room, "@bob hi", message_id="m1")
        await silence(manager)
        task_id = message.asked["bob"]
        about = {"roomId": "plans", "mentions": ["bob"], "hops": 0, "taskId": None}
        first, answer = await told(manager, "room.message")
        assert first == {**about, "number": 1, "messageId": "m1", "sender": "user", "text": "@bob hi"}
        assert (answer["sender"], answer["taskId"], answer["hops"]) == ("bob", task_id, 1)
        (answering,) = await told(manager, "room.answering")
        assert answering == {"roomId": "plans", "number": 1, "agentId": "bob", "taskId": task_id}
        assert (await manager.get_task(task_id)).cause == "message:m1"

    play(scenario)


def test_the_same_message_posted_twice_under_one_id_is_there_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice")
        together = await asyncio.gather(*(manager.post_message(room, "hi", message_id="m") for _ in range(3)))
        assert together[0] == together[1] == together[2]
        await silence(manager)
        assert await manager.post_message(room, "hi", message_id="m") == together[0]
        assert await said(manager, room) == ["user: hi", "alice: done"]

    play(scenario)


def test_the_same_room_made_twice_under_one_id_is_there_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        first = await group(manager, "alice", room_id="r")
        await manager.post_message(first, "hi")
        assert (await manager.create_room(["Alice"], title="Plans", room_id="r")).last_number == 1
        chats = await asyncio.gather(manager.open_chat("alice"), manager.open_chat("alice"))
        assert chats[0] == chats[1]
        assert [room.id for room in manager.list_rooms()] == ["r", "chat~alice"]
        assert manager.get_room("r") == manager.get_room(first)

    play(scenario)


def test_the_transcript_can_be_read_page_by_page() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await group(manager, "alice")
        await manager.pause_agent("alice")
        for n in range(10):
            await manager.post_message(room, f"n{n}")
        page = await manager.room_messages(room, after=3, limit=4)
        assert [message.number for message in page] == [4, 5, 6, 7]
        assert await manager.room_messages(room, after=10) == []

    play(scenario)

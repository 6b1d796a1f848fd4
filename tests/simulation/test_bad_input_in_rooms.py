"""Bad input to rooms: a typed error that says what is wrong and what to do; nothing half-written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from ai_whisperer import AsyncAgentSessionManager, WhispererError
from ai_whisperer.errors import (
    ClosedError,
    DuplicateIdError,
    InvalidInputError,
    QueueFullError,
    StateError,
    TooLargeError,
    UnknownAgentError,
    UnknownMemberError,
    UnknownRoomError,
)
from tests.simulation.stage import Deed, deferred, play


@pytest.mark.parametrize(
    ("deed", "error", "message"),
    [
        (lambda m: m.create_room(["alice", "nobody"]), UnknownAgentError, "no agent 'nobody'. Valid names: alice"),
        (lambda m: m.create_room(["alice", "Alice"]), InvalidInputError, "more than once: alice"),
        (lambda m: m.create_room([]), InvalidInputError, "1 to 100 agents as members, not 0"),
        (lambda m: m.create_room("alice"), InvalidInputError, "a list of agents"),
        (lambda m: m.create_room(cast(Any, 5)), InvalidInputError, "a list of agents"),
        (lambda m: m.create_room([cast(Any, None)]), InvalidInputError, "by its id or its handle"),
        (lambda m: m.create_room(["alice"], title="a\nb"), InvalidInputError, "one line"),
        (lambda m: m.create_room(["alice"], title="x" * 201), TooLargeError, "at most 200"),
        (lambda m: m.create_room(["alice"], title="\ud800"), InvalidInputError, "lone surrogate"),
        (lambda m: m.create_room(["alice"], hop_limit=101), InvalidInputError, "from 0 to 100, not 101"),
        (lambda m: m.create_room(["alice"], room_id="a~b"), InvalidInputError, "without '~'"),
        (lambda m: m.create_room(["alice"], room_id="group"), DuplicateIdError, "another room 'group'"),
        (lambda m: m.open_chat("nobody"), UnknownAgentError, "no agent 'nobody'"),
        (lambda m: deferred(lambda: m.get_room("nowhere")), UnknownRoomError, "Rooms: chat~alice, frozen, group"),
        (lambda m: deferred(lambda: m.get_room(cast(Any, 5))), InvalidInputError, "by its id or its record"),
        (lambda m: m.room_messages("nowhere"), UnknownRoomError, "no room 'nowhere'"),
        (lambda m: m.room_messages("group", limit=0), InvalidInputError, "1 to 1,000,000"),
        (lambda m: m.room_messages("group", after=-1), InvalidInputError, "from 0 on"),
        (lambda m: m.post_message("nowhere", "hi"), UnknownRoomError, "no room 'nowhere'"),
        (lambda m: m.post_message("group", " \n"), InvalidInputError, "message is empty"),
        (lambda m: m.post_message("group", cast(Any, None)), InvalidInputError, "must be text"),
        (lambda m: m.post_message("group", "\ud800"), InvalidInputError, "lone surrogate"),
        (lambda m: m.post_message("group", "x" * 262_145), TooLargeError, "at most 262,144"),
        (lambda m: m.post_message("group", "x" * 101), TooLargeError, "101 bytes, at most 100"),
        (lambda m: m.post_message("group", "@alice @zed"), UnknownMemberError, "'@zed'.*Members: alice.*Correct"),
        (lambda m: m.post_message("group", "@eve hi"), UnknownMemberError, "Let eve into the room.*write .@ for"),
        (lambda m: m.post_message("group", "@alice @stopped"), StateError, "cannot answer: stopped; nothing"),
        (lambda m: m.post_message("frozen", "hi"), StateError, "room 'The cold room'.*all are stopped: stopped"),
        (lambda m: m.post_message("frozen", "@all hi"), StateError, "all are stopped: stopped"),
        (lambda m: m.post_message("group", "@full hi"), QueueFullError, "Try again later"),
        (lambda m: m.post_message("group", "hi"), QueueFullError, "queue of 'full' is full"),
        (lambda m: m.post_message("chat~alice", "other", message_id="taken"), DuplicateIdError, "something else"),
        (lambda m: m.post_message("group", "first", message_id="taken"), DuplicateIdError, "something else"),
        (lambda m: m.post_message("group", "hi", message_id="a~b"), InvalidInputError, "without '~'"),
        (lambda m: m.add_member("group", "nobody"), UnknownAgentError, "no agent 'nobody'"),
        (lambda m: m.add_member("group", "ALICE"), StateError, "'alice' is a member of room 'group' already"),
        (lambda m: m.add_member("chat~alice", "eve"), StateError, "1-1 chat.*Open a group"),
        (lambda m: m.add_member("nowhere", "eve"), UnknownRoomError, "no room 'nowhere'"),
        (lambda m: m.remove_member("group", "eve"), UnknownMemberError, "'eve' is not a member.*Members: alice"),
        (lambda m: m.remove_member("frozen", "stopped"), StateError, "last member.*Add another"),
        (lambda m: m.remove_member("chat~alice", "alice"), StateError, "1-1 chat"),
    ],
)
def test_bad_input_is_refused_with_what_to_do_and_nothing_is_changed(
    deed: Deed, error: type[WhispererError], message: str
) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_prompt_bytes": 100}})
        await manager.create_agent("full", {"limits": {"max_queue_length": 1}}, auto_start=False)
        await manager.create_agent("stopped")
        await manager.create_agent("eve")
        await manager.send_task("full", "waits")
        await manager.stop_agent("stopped")
        await manager.create_room(["alice", "full", "stopped"], room_id="group")
        await manager.create_room(["stopped"], room_id="frozen", title="The cold room")
        await manager.post_message(await manager.open_chat("alice"), "first", message_id="taken")
        notes, rooms = await manager.notifications(), manager.list_rooms()
        with pytest.raises(error, match=message) as caught:
            await deed(manager)
        assert caught.value.code
        await manager.flushed()
        told = [note for note in await manager.notifications() if note.name != "limit.reached"]
        assert told == notes
        assert manager.list_rooms() == rooms
        assert await manager.room_messages("group") == []
        assert manager.get_agent_status("eve").queue_size == 0

    play(scenario, latency_seconds=1000)


@pytest.mark.parametrize(
    "deed",
    [
        lambda manager: manager.create_room(["alice"]),
        lambda manager: manager.open_chat("alice"),
        lambda manager: manager.post_message("room", "hi"),
        lambda manager: deferred(manager.list_rooms),
    ],
)
def test_a_manager_that_is_not_open_says_so(deed: Callable[[Any], Awaitable[object]]) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.close()
        with pytest.raises(ClosedError, match="async with"):
            await deed(manager)

    play(scenario)

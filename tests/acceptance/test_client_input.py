"""What cannot be is refused by the client in the words of the manager, and harms nothing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, cast

import pytest

from ai_whisperer import AgentDefinition, AsyncAgentSessionManager, Client
from ai_whisperer.domain.tasks import Budget
from ai_whisperer.errors import (
    InvalidInputError,
    TooLargeError,
    WhispererError,
)
from tests.acceptance.client_stage import StagedServer

Deed = Callable[[Any], object]


async def done(deed: Deed, target: object) -> None:
    """Do it: some methods of the manager are not to be awaited, those of the client all are."""
    outcome = deed(target)
    if inspect.isawaitable(outcome):
        await outcome


BAD: list[Deed] = [
    lambda m: m.send_task("nobody", "go"),
    lambda m: m.send_task(None, "go"),
    lambda m: m.send_task("alice", None),
    lambda m: m.send_task("alice", "  "),
    lambda m: m.send_task("alice", "x" * 101),
    lambda m: m.send_task("alice", "\udcff"),
    lambda m: m.send_task("alice", "go", priority="now"),
    lambda m: m.send_task("alice", "go", priority=None),
    lambda m: m.send_task("alice", "go", task_id="a\nb"),
    lambda m: m.send_task("alice", "go", task_id=4),
    lambda m: m.send_task("alice", "go", thread_id="\ud800"),
    lambda m: m.send_task("alice", "other", task_id="taken"),
    lambda m: m.send_task("alice", "go", timeout_seconds=float("nan")),
    lambda m: m.send_task("alice", "go", timeout_seconds="1"),
    lambda m: m.send_task("alice", "go", budget=Budget(max_cost_usd=float("inf"))),
    lambda m: m.send_task("alice", "go", budget={"max_tokens": 5}),
    lambda m: m.run_task("idle", "one too many"),
    lambda m: m.create_agent("alice"),
    lambda m: m.create_agent("two words"),
    lambda m: m.create_agent(None),
    lambda m: m.create_agent("x", {"modle": "y"}),
    lambda m: m.create_agent("x", {"limits": {"max_steps": 3}}),
    lambda m: m.create_agent("x", {"retry": {"stall_seconds": float("nan")}}),
    lambda m: m.create_agent("x", {"settings": {"f": object()}}),
    lambda m: m.create_agent("x", {"description": "\ud800"}),
    lambda m: m.create_agent("x", AgentDefinition(prompt=cast(Any, 5))),
    lambda m: m.create_agent("x", "text"),
    lambda m: m.create_agent("x", {"tools": ["nope"]}),
    lambda m: m.create_agent("x", template="no such template"),
    lambda m: m.pause_agent("nobody"),
    lambda m: m.pause_agent("idle"),
    lambda m: m.pause_agent("alice", reason="\ud800"),
    lambda m: m.stop_agent("alice", reason="x" * 10_001),
    lambda m: m.stop_agent("alice", reason=5),
    lambda m: m.resume_agent("alice"),
    lambda m: m.wake_agent("alice"),
    lambda m: m.sleep_agent("alice"),
    lambda m: m.sleep_agent("alice", duration_seconds="5"),
    lambda m: m.sleep_agent("alice", duration_seconds=float("nan")),
    lambda m: m.sleep_agent("alice", until="tomorrow"),
    lambda m: m.sleep_agent("alice", until="2030-01-01T00:00:00"),
    lambda m: m.sleep_agent("alice", wake_events="alert"),
    lambda m: m.sleep_agent("alice", wake_events=["\ud800"]),
    lambda m: m.send_task("alice", "go", output=[]),
    lambda m: m.send_task("alice", "go", output={"type": "objekt"}),
    lambda m: m.send_task("alice", "go", parts="gone.png"),
    lambda m: m.send_task("alice", "go", parts=["gone.png"]),
    lambda m: m.send_task("alice", "go", parts=[b""]),
    lambda m: m.get_attachment("nothing"),
    lambda m: m.get_attachment("0" * 64),
    lambda m: m.read_memory("alice", "nothing"),
    lambda m: m.read_memory("alice", "../x"),
    lambda m: m.read_memory("alice", 5),
    lambda m: m.list_memory("nobody"),
    lambda m: m.get_task("nothing"),
    lambda m: m.get_task(5),
    lambda m: m.wait_task("\ud800"),
    lambda m: m.cancel_task("nothing"),
    lambda m: m.retry_task("taken"),
    lambda m: m.retry_failed_tasks("nobody"),
    lambda m: m.list_tasks("nobody"),
    lambda m: m.list_tasks(limit=0),
    lambda m: m.send_mail("nobody", "s", "b"),
    lambda m: m.send_mail("alice", None, "b"),
    lambda m: m.send_mail("alice", "", " "),
    lambda m: m.send_mail("alice", "x" * 501, "b"),
    lambda m: m.reply_mail("nothing", "b"),
    lambda m: m.mark_mail("nothing", "read"),
    lambda m: m.mailbox("nobody"),
    lambda m: m.sent_mail("nobody"),
    lambda m: m.broadcast_event("", None),
    lambda m: m.broadcast_event("e", {"x": object()}),
    lambda m: m.broadcast_event("e", float("nan")),
    lambda m: m.broadcast_event(5),
    lambda m: m.create_room("alice"),
    lambda m: m.create_room(["alice", "alice"]),
    lambda m: m.create_room(["alice"], title="two\nlines"),
    lambda m: m.create_room(["alice"], hop_limit=-1),
    lambda m: m.get_room("nothing"),
    lambda m: m.get_room(5),
    lambda m: m.post_message("room", " "),
    lambda m: m.post_message("room", 5),
    lambda m: m.add_member("room", "alice"),
    lambda m: m.room_messages("room", after=-1),
    lambda m: m.create_schedule("alice", prompt="x"),
    lambda m: m.create_schedule("alice", cron="nonsense", prompt="x"),
    lambda m: m.create_schedule("alice", interval_seconds=float("nan"), prompt="x"),
    lambda m: m.create_schedule("alice", interval_seconds=60, prompt="x", missed="never"),
    lambda m: m.create_schedule(interval_seconds=60, prompt="x"),
    lambda m: m.get_schedule("nothing"),
    lambda m: m.get_schedule(5),
    lambda m: m.notifications(after=-1),
]


async def refusals(target: Client | AsyncAgentSessionManager) -> list[tuple[type[WhispererError], str]]:
    await target.create_agent("alice", {"limits": {"max_prompt_bytes": 100}})
    await target.create_agent("idle", {"limits": {"max_queue_length": 1}}, auto_start=False)
    await target.send_task("idle", "waits", task_id="taken")
    await target.create_room(["alice"], room_id="room")
    refused = []
    for deed in BAD:
        with pytest.raises(WhispererError) as caught:
            await done(deed, target)
        refused.append((type(caught.value), caught.value.message))
    return refused


def test_bad_input_is_refused_in_the_words_of_the_manager(server: StagedServer, session_id: str) -> None:
    async def in_process() -> list[tuple[type[WhispererError], str]]:
        async with AsyncAgentSessionManager(session_id=session_id) as manager:
            return await refusals(manager)

    expected = asyncio.run(in_process())

    async def scenario(client: Client) -> None:
        assert await refusals(client) == expected

    server.play(scenario, session_id=session_id)


ODD: list[Any] = [None, 5, True, 2**70, float("nan"), "", "\ud800", [5], {5: 5}, object(), b"x"]
GOOD: dict[str, Any] = {
    "digest": "0" * 64,
    "path": "MEMORY.md",
    "agent": "alice",
    "agent_id": "someone",
    "to": "alice",
    "task": "there",
    "prompt": "do it",
    "subject": "s",
    "body": "b",
    "mail_id": "mail",
    "approval_id": "there.2",
    "question_id": "there.2",
    "thread_id": "talk",
    "file": "gone.zip",
    "mails": [],
    "answer": "yes",
    "state": "read",
    "event": "e",
    "room": "room",
    "members": ["alice"],
    "text": "hello",
    "schedule": "tick",
    "kind": "task",
    "beginning": "th",
    "name": "writer",
    "token": 1,
    "owner": "alice",
    "session_id": "no-such-session",
    "other_session_id": "no-such-session",
    "at": 10**6,
    "near": 1,
    "needs": [],
    "node": "no-such-node",
    "limits": {"max_queue_length": 50},
}
WAITS = {"wait_task", "run_task", "answer_of", "at_rest", "acquire_lock"}


def test_odd_values_bring_errors_of_ours_and_harm_nothing(server: StagedServer, session_id: str) -> None:
    methods = {
        name: method
        for name, method in inspect.getmembers(Client, inspect.iscoroutinefunction)
        if name[0] != "_" and name not in {"open", "close", *WAITS}
    }

    refusals: list[str] = []

    async def attempt(client: Client, name: str, arguments: dict[str, Any]) -> None:
        try:
            await getattr(client, name)(**arguments)
        except WhispererError as error:
            refusals.append(error.message)

    async def scenario(client: Client) -> None:
        await client.create_agent("alice")
        await client.create_room(["alice"], room_id="room")
        await client.create_schedule(interval_seconds=1e6, event="tick", schedule_id="tick")
        for name, method in methods.items():
            parameters = {each: known for each, known in inspect.signature(method).parameters.items() if each != "self"}
            needed = {each: GOOD[each] for each, known in parameters.items() if known.default is known.empty}
            await asyncio.gather(*(attempt(client, name, {**needed, each: odd}) for each in parameters for odd in ODD))
        await client.create_agent("bob")
        assert await client.run_task("bob", "are you there?") == "done"
        assert [each for each in refusals if "The server failed" in each] == []

    server.play(scenario, session_id=session_id)


def test_a_request_that_the_server_would_not_read_is_not_sent(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create_agent("alice")
        with pytest.raises(TooLargeError, match="the server takes at most 1,000,000"):
            await client.send_mail("alice", "long", "x" * 1_000_001)
        assert len(await client.list_agents()) == 1

    server.play(scenario, session_id=session_id)


def test_data_that_is_nested_deeper_than_a_frame_may_be_is_refused(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        deep: list[Any] = []
        for _ in range(80):
            deep = [deep]
        with pytest.raises(InvalidInputError, match="nested deeper than 64"):
            await client.broadcast_event("e", deep)

    server.play(scenario, session_id=session_id)

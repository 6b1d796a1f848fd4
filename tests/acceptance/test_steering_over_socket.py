"""Messages to a task at work: over the socket, on the command line and in a chat."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.cli.conversation import Conversation
from ai_whisperer.cli.output import Output
from ai_whisperer.cli.racing import first_of
from ai_whisperer.cli.talking import ChatCommands, Talk
from ai_whisperer.client import Client
from ai_whisperer.domain.locks import LockRecord
from ai_whisperer.server.address import find_address
from tests.acceptance.command_stage import Process, Whisperer, serving

RULES = r"""
rules:
  - {prompt_match: 'dig until (?P<gate>\w+)', turn: 0, tools: [
      {name: acquire_lock, arguments: {name: "{gate}", wait_seconds: 600}}]}
  - {text: "Heard: {last}"}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("steering")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Process]:
    with serving(folder, answers=RULES) as process:
        yield process


@pytest.fixture
def digger(folder: Path, server: Process, capsys: pytest.CaptureFixture[str]) -> Whisperer:
    assert server.process.poll() is None
    whisperer = Whisperer(folder, capsys)
    if "ann" not in [each["agentId"] for each in whisperer.json("agents")]:
        whisperer.ok("agents", "create", "ann", "--config", json.dumps({"tools": ["acquire_lock"]}))
    return whisperer


def played(folder: Path, scenario: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        address = find_address(folder)
        assert address is not None
        async with asyncio.timeout(90), Client(address.url, address.token) as client:
            await scenario(client)

    asyncio.run(main())


async def at_work(client: Client, gate: str) -> LockRecord:
    """Let ann dig in a thread that is called like the gate, and be at it until the lock is released."""
    lock = await client.acquire_lock(gate, ttl_seconds=600)
    async with client.events() as notes:
        await client.send_task("ann", f"dig until {gate}", task_id=gate, thread_id=f"{gate}-thread")
        async for note in notes:
            if note.name == "lock.waiting" and note.params["name"] == gate:
                return lock
    raise AssertionError


@pytest.mark.usefixtures("digger")
def test_a_message_over_the_socket_is_heard_before_the_next_step(folder: Path) -> None:
    async def scenario(client: Client) -> None:
        lock = await at_work(client, "north")
        told = await client.send_task("ann", "not so deep", task_id="m1", thread_id="north-thread", deliver="next_step")
        assert told.state == "queued"
        await client.release_lock("north", lock.token)
        ended = await client.wait_task("m1")
        assert ended.id == "north"
        assert ended.result is not None
        assert ended.result.final == "Heard: not so deep"
        joined = await client.get_task("m1")
        assert (joined.state, joined.joined_step) == ("joined", "north.3")
        steps = await client.list_steps("north")
        assert [[each.text for each in step.said] for step in steps if step.said] == [["not so deep"]]
        assert [event.state async for event in client.stream("m1") if hasattr(event, "state")] == ["queued", "joined"]

    played(folder, scenario)


def test_the_command_line_sends_a_message_to_the_task_at_work(folder: Path, digger: Whisperer) -> None:
    locks: list[LockRecord] = []

    async def begin(client: Client) -> None:
        locks.append(await at_work(client, "south"))

    played(folder, begin)
    assert "Sent task m2" in digger.ok("tasks", "send", "ann", "not so deep", "--deliver", "next-step", "--id", "m2")
    assert digger.json("tasks", "show", "m2")["task"]["threadId"] == "south-thread"
    digger.ok("lock", "release", "south", str(locks[0].token))
    assert digger.ok("tasks", "wait", "m2") == "Heard: not so deep\n"
    assert digger.json("tasks", "show", "m2")["task"]["joinedStep"] == "south.3"
    wrong = digger("tasks", "send", "ann", "x", "--deliver", "now", "--json")
    assert "'now' is not one of in-turn, next-step" in wrong.error["message"]


@pytest.mark.usefixtures("digger")
def test_what_a_person_types_in_a_chat_while_an_agent_works_is_heard_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(client: Client) -> None:
        lock = await client.acquire_lock("west", ttl_seconds=600)
        room = await client.open_chat("ann")
        output = Output(as_json=False)
        async with client.events(deltas=True) as notes, client.events() as watched:
            conversation = Conversation(client, room, output)

            async def typed() -> Any:
                yield "dig until west"
                async for note in watched:
                    if note.name == "lock.waiting" and note.params["name"] == "west":
                        break
                while not conversation.awaited:  # noqa: ASYNC110 - heard over a subscription of its own
                    await asyncio.sleep(0)
                yield "not so deep"
                await client.release_lock("west", lock.token)

            talk = Talk(conversation, ChatCommands(client, conversation, output), output, with_person=True)
            await first_of(conversation.follow(notes), talk.take(typed()))
        said = [(each.sender, each.text) for each in await client.room_messages(room.id)]
        assert said == [("user", "dig until west"), ("user", "not so deep"), ("ann", "Heard: not so deep")]

    played(folder, scenario)
    told = capsys.readouterr()
    assert "ann has heard it." in told.err
    assert "ann: Heard: not so deep" in told.out

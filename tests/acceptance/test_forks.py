"""Forks and comparisons: over a real socket, with a server that is killed, and on the command line."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import tool
from ai_whisperer.client import Client
from ai_whisperer.domain.forks import CompareJob, Effects
from ai_whisperer.errors import (
    DefinitionError,
    DuplicateIdError,
    InvalidInputError,
    RecordingError,
    TooManyRequestsError,
    UnknownAgentError,
    UnknownSessionError,
    WhispererError,
)
from ai_whisperer.server import apart
from ai_whisperer.server.address import find_address
from ai_whisperer.server.apart import Apart
from ai_whisperer.server.forking import FORKS
from ai_whisperer.settings import Settings
from tests.acceptance.command_stage import Whisperer, serving
from tests.acceptance.server_in_thread import ALICE, BOB, ServerInThread

RULES = """
rules:
  - {agent: clerk, turn: 0, tools: [{name: look_up, arguments: {what: rate}}]}
  - {agent: clerk, turn: 1, tools: [{name: pay, arguments: {amount: 1}}]}
  - {agent: clerk, turn: 2, tools: [{name: pay, arguments: {amount: 2}}]}
  - {text: "{last}"}
"""
paid: list[int] = []
"""What was paid, by anybody."""


@tool
def pay(amount: int) -> str:
    """Pay so much."""
    paid.append(amount)
    return f"paid {amount}"


@tool(idempotent=True)
def look_up(what: str) -> str:
    """Look something up."""
    return f"{what} is fine"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerInThread]:
    folder = tmp_path_factory.mktemp("data")
    rules = folder / "rules.yaml"
    rules.write_text(RULES, encoding="utf-8")
    settings = Settings(data=folder, port=0, model=f"scripted:{rules}", tokens={"alice": ALICE, "bob": BOB})
    with ServerInThread(settings, tools=[pay, look_up]) as server:
        yield server


@pytest.fixture(scope="module")
def paying(server: ServerInThread) -> tuple[str, int]:
    """A session in which a clerk has paid twice, and the entry before the first time."""

    async def work() -> int:
        async with Client(server.url, server.token) as client:
            await client.create_session("paying")
            session = client.session("paying")
            await session.create_agent("clerk", {"prompt": "You pay.", "tools": ["pay", "look_up"]})
            await session.run_task("clerk", "Pay.")
            await session.at_rest()
            log = await session.notifications()
            first = next(note.seq for note in log if note.params.get("tool") == "pay")
            return (await session.fork_points(first))[0]

    at = asyncio.run(work())
    assert paid == [1, 2]
    return "paying", at


@asynccontextmanager
async def session_of(server: ServerInThread, session_id: str) -> AsyncIterator[Client]:
    async with asyncio.timeout(120), Client(server.url, server.token, session_id=session_id) as client:
        yield client


def played(server: ServerInThread, session_id: str, scenario: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with session_of(server, session_id) as client:
            await scenario(client)

    paid.clear()
    asyncio.run(main())


async def asked(client: Client) -> list[str]:
    """The calls that wait for a person, when there is one."""
    async with client.events(after=0) as notes:
        async for note in notes:
            if note.name == "approval.requested":
                break
    return [each.arguments for each in await client.list_approvals()]


def test_a_fork_goes_on_with_other_agents_and_is_compared(server: ServerInThread, paying: tuple[str, int]) -> None:
    async def scenario(client: Client) -> None:
        at = paying[1]
        made = await client.fork_session(at, changes={"clerk.prompt": "You pay less."}, effects="live")
        assert (made.session_ids, made.at, made.effects) == ([f"paying-fork-{at}"], at, Effects.LIVE)
        fork = client.session(made.session_ids[0])
        await fork.at_rest()
        assert paid == [1, 2]
        assert (await fork.get_agent("clerk")).definition.prompt == "You pay less."
        assert (await client.get_session(fork.session_id)).title == f"paying from {at}"
        found = await client.compare_sessions(fork.session_id)
        assert (found.is_same, found.first, found.partings) == (True, None, [])
        assert found.spent.a.requests == found.spent.b.requests == 4

    played(server, *paying[:1], scenario)


def test_several_forks_are_made_at_once_and_ids_are_chosen(server: ServerInThread, paying: tuple[str, int]) -> None:
    async def scenario(client: Client) -> None:
        at = paying[1]
        assert (await client.fork_session(at, new_session_id="runs", runs=2)).session_ids == ["runs-1", "runs-2"]
        assert [await asked(client.session(each)) for each in ("runs-1", "runs-2")] == [['{"amount": 1}']] * 2
        first = await client.fork_session(at)
        second = await client.fork_session(at)
        assert first.session_ids != second.session_ids
        with pytest.raises(DuplicateIdError, match=r"already\. Choose another id"):
            await client.fork_session(at, new_session_id="runs", runs=1 + 1)
        found = await client.compare_sessions("runs-1")
        assert found.first is not None
        assert (found.first.agent_id, found.first.kind, found.first.seq_b) == ("clerk", "only_in_a", None)
        assert found.first.text_a == "paid 1"
        log = await client.notifications()
        (told,) = [note for note in log if note.seq == found.first.seq_a]
        assert (told.name, told.params["stepId"].rpartition(".")[2]) == (
            "step.finished",
            found.first.key.rpartition("/")[2],
        )

    played(server, *paying[:1], scenario)
    assert paid == []


def test_a_fork_does_nothing_again_that_was_recorded(server: ServerInThread, paying: tuple[str, int]) -> None:
    async def scenario(client: Client) -> None:
        made = await client.fork_session(paying[1], effects="recorded", new_session_id="recorded")
        assert made.recorded_calls == 2
        fork = client.session("recorded")
        await fork.at_rest()
        assert (await client.compare_sessions("recorded")).is_same
        await fork.send_task("clerk", "Pay.")
        assert await asked(fork) == ['{"amount": 1}']

    played(server, *paying[:1], scenario)
    assert paid == []


def test_what_cannot_be_forked_is_told_with_what_can(server: ServerInThread, paying: tuple[str, int]) -> None:
    async def scenario(client: Client) -> None:
        at = paying[1]
        log = await client.notifications()
        middle = next(note.seq for note in log if note.name == "step.started" and note.params.get("tool") == "pay")
        points = await client.fork_points(middle)
        assert points[0] < middle < points[1]
        with pytest.raises(RecordingError, match=f"in the middle of a step.* work: {points[0]} and") as refused:
            await client.fork_session(middle)
        assert refused.value.data["points"] == points
        with pytest.raises(RecordingError, match=f"its log ends at {log[-1].seq}"):
            await client.fork_session(99_999)
        for changes, kind, words in (
            ({"clrk.prompt": "x"}, UnknownAgentError, "no agent 'clrk' .* Did you mean 'clerk'"),
            ({"clerk.promt": "x"}, DefinitionError, "Did you mean `?prompt"),
            ({"clerk.limits.max_step": 3}, DefinitionError, "max_steps"),
            ({"clerk.prompt.x": "x"}, InvalidInputError, "'prompt' has no fields of its own"),
            ({"clerk": "x"}, InvalidInputError, "names no field of an agent"),
            ({"clerk.tools": ["pya"]}, DefinitionError, "nobody has provided: pya. Did you mean pay"),
            ({"clerk.model": "opena:gpt-5"}, DefinitionError, "openai"),
        ):
            with pytest.raises(kind, match=words):
                await client.fork_session(at, changes=changes)
        with pytest.raises(InvalidInputError, match=r"ask, recorded, live, not 'recorder'\. Did you mean 'recorded'"):
            await client.fork_session(at, effects="recorder")
        with pytest.raises(InvalidInputError, match="runs 1 to 100"):
            await client.fork_session(at, runs=0)
        with pytest.raises(DuplicateIdError):
            await client.fork_session(at, new_session_id="default")
        with pytest.raises(InvalidInputError, match="cannot be an id"):
            await client.fork_session(at, new_session_id="~")
        with pytest.raises(UnknownSessionError):
            await client.compare_sessions("nothing")

    played(server, *paying[:1], scenario)


def test_a_session_that_was_pruned_or_lost_something_says_where_it_can_be_forked(server: ServerInThread) -> None:
    async def scenario(client: Client) -> None:
        await client.create_session("lost")
        lost = client.session("lost")
        await lost.create_agent("ann")
        await lost.create_agent("ben")
        await lost.delete_agent("ann")
        gone = next(note.seq for note in await lost.notifications() if note.name == "agent.deleted")
        last = (await lost.notifications())[-1].seq
        assert all(point < gone for point in await lost.fork_points(last))
        with pytest.raises(RecordingError, match="tells that something was deleted"):
            await lost.fork_session(last)
        await client.create_session("pruned")
        pruned = client.session("pruned")
        await pruned.create_agent("ann")
        await pruned.run_task("ann", "hello")
        await pruned.at_rest()
        await pruned.prune(older_than="0s")
        assert await pruned.fork_points(5) == []
        with pytest.raises(RecordingError, match=r"was pruned, .* The nearest numbers that work: none"):
            await pruned.fork_session((await pruned.snapshot()).last_seq)

    played(server, "default", scenario)


def test_sessions_of_others_are_neither_forked_nor_compared(server: ServerInThread, paying: tuple[str, int]) -> None:
    with server.connect(ALICE) as alice:
        alice.call("session.create", sessionId="hers")
        for method, params in (
            ("session.fork", {"sessionId": "paying", "at": paying[1]}),
            ("session.forkPoints", {"sessionId": "paying", "near": 3}),
            ("session.compare", {"sessionId": "paying", "otherSessionId": "hers"}),
            ("session.compare", {"sessionId": "hers", "otherSessionId": "paying"}),
        ):
            assert alice.error(method, **params)["data"]["code"] == "unknown_session"
        told = alice.error("session.fork", sessionId="hers", at=2, effects="lve")
        assert "Valid values: ask, recorded, live" in told["message"]


def test_no_more_is_done_at_once_than_the_machine_can_bear(server: ServerInThread, monkeypatch: Any) -> None:
    """And whoever gives up waiting ends the process that works for it."""

    async def main() -> None:
        jobs = Apart()
        job = CompareJob(folder=str(server.settings.data), first="default", second="default")
        waiting = [asyncio.ensure_future(jobs.do(job)) for _ in range(10)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequestsError, match="10 sessions are being forked or compared"):
            await jobs.do(job)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert not jobs._processes
        with pytest.raises(RecordingError, match="nothing has happened in it"):
            await jobs.do(CompareJob(folder=str(server.settings.data), first="default", second="default"))
        monkeypatch.setattr(apart, "_MODULE", "no.such.module")
        with pytest.raises(WhispererError, match="has failed, and nothing was changed"):
            await jobs.do(job)

    asyncio.run(main())


KILLED = """
from ai_whisperer import tool

@tool
def pay(amount: int) -> str:
    \"\"\"Pay so much.\"\"\"
    return f"paid {amount}"
"""


def test_a_server_that_is_killed_while_it_forks_leaves_no_half_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".whisperer" / "tools").mkdir(parents=True)
    (tmp_path / ".whisperer" / "tools" / "paying.py").write_text(KILLED, encoding="utf-8")

    def client() -> Client:
        address = find_address(tmp_path)
        assert address is not None
        return Client(address.url, address.token, reconnect_seconds=0)

    async def begin() -> int:
        async with client() as session:
            await session.create_agent("clerk", {"tools": ["pay"]})
            await session.run_task("clerk", "Pay.")
            await session.at_rest()
            at = (await session.fork_points(10_000))[-1]
            forking = asyncio.ensure_future(session.fork_session(at, new_session_id="killed"))
            while not list((tmp_path / FORKS).glob("*")):  # noqa: ASYNC110 - it begins in another process
                await asyncio.sleep(0.01)
            process.signal(signal.SIGKILL)
            with pytest.raises(WhispererError):
                await forking
            return at

    async def again(at: int) -> None:
        async with client() as session:
            assert [each.id for each in await session.list_sessions()] == ["default"]
            assert (await session.fork_session(at, new_session_id="killed")).session_ids == ["killed"]

    with serving(tmp_path, answers=RULES) as process:
        at = asyncio.run(begin())
        process.process.wait(timeout=60)
    with serving(tmp_path, answers=RULES):
        assert not os.path.exists(tmp_path / FORKS) or not os.listdir(tmp_path / FORKS)
        asyncio.run(again(at))
        whisperer = Whisperer(tmp_path, capsys)
        told = whisperer.json("fork", "default", "--at", str(at), "--as", "other", "--effects", "recorded")
        assert told == {"session": "default", "at": at, "forks": ["other"], "effects": "recorded"}
        assert "It has begun to continue. 0 recorded calls" in whisperer.ok(
            "fork", "default", "--at", str(at), "--effects", "recorded"
        )
        assert whisperer.json("compare", "default", "other")["is_same"] is True
        assert whisperer("compare", "default", "othr").err.startswith("whisperer: There is no session 'othr'")
        (tmp_path / "one.wrec").touch()
        mixed = whisperer("compare", "default", str(tmp_path / "one.wrec"), "--url", "http://127.0.0.1:1/?token=x")
        assert "is a file here, and the sessions of --url are elsewhere" in mixed.err
        refused = whisperer("fork", "default", "--at", str(at), "--set", "clerk.tools=[pya]")
        assert (refused.code, "Did you mean pay?" in refused.err) == (1, True), refused
        misspelt = whisperer("fork", "default", "--at", "2", "--effects", "recorde")
        assert "is not one of 'ask', 'recorded', 'live'" in misspelt.err
    (tmp_path / ".whisperer" / "tools" / "paying.py").unlink()
    with serving(tmp_path, answers=RULES):
        whisperer = Whisperer(tmp_path, capsys)
        without = whisperer("fork", "default", "--at", str(at))
        assert "'clerk' has tools that are not here: pay." in without.err
        assert whisperer.json("fork", "default", "--at", str(at), "--set", "clerk.tools=[]")["at"] == at

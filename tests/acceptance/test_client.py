"""The client offers what the manager does, over a real server: same results, same errors."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, cast

import pytest
from websockets.asyncio.client import ClientConnection

from ai_whisperer import AgentDefinition, AsyncAgentSessionManager, Client
from ai_whisperer.client import client as client_module
from ai_whisperer.errors import (
    ClosedError,
    ConnectionLostError,
    InvalidInputError,
    StateError,
    TaskEndedError,
    TooLargeError,
    UnauthorizedError,
    UnknownAgentError,
    UnknownSessionError,
    WhispererError,
)
from ai_whisperer.records import AgentState, Budget, MailState, TaskState
from tests.acceptance.client_stage import StagedServer

Deed = Callable[[Any], object]

_numbers = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StagedServer]:
    staged = StagedServer(tmp_path_factory.mktemp("server"), max_frame_bytes=1_000_000)
    yield staged
    staged.close()


@pytest.fixture
def session_id() -> str:
    """A session that no other test uses."""
    return f"session-{next(_numbers)}"


class Remembering:
    """Passes everything on to a client and remembers which of its methods were called."""

    def __init__(self, client: Client, called: set[str]) -> None:
        self._client = client
        self._called = called

    def __getattr__(self, name: str) -> Any:
        self._called.add(name)
        return getattr(self._client, name)


async def use_agents(client: Client) -> None:
    created = await client.create_agent("alice", AgentDefinition(description="first"), auto_start=False)
    assert (created.agent_id, created.description, created.started) == ("alice", "first", False)
    assert (await client.start_agent(created)).started
    assert (await client.pause_agent("alice", reason="lunch")).reason == "lunch"
    assert (await client.interrupt_agent("alice")).state is AgentState.PAUSED
    assert (await client.resume_agent("alice")).state is AgentState.IDLE
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    asleep = await client.sleep_agent("alice", until=tomorrow, wake_events=["alert"])
    assert (asleep.sleeping_until, asleep.wake_events) == (tomorrow.timestamp(), ("alert",))
    assert (await client.wake_agent("alice", reason="look")).state is not AgentState.SLEEPING
    assert (await client.create_agent("bob", {"name": "Bobby"}, template="writer")).name == "Bobby"
    assert (await client.stop_agent("bob")).state is AgentState.STOPPED
    assert (await client.get_agent("bobby")).definition.description == (
        await client.get_template("writer")
    ).definition.description
    assert (await client.get_agent_status("alice")).agent_id == "alice"
    assert [status.agent_id for status in await client.list_agents()] == ["alice", "bob"]
    states = await client.get_agent_states()
    assert states.agents["bob"].state is AgentState.STOPPED
    assert states.last_seq > 0


async def use_tasks(client: Client) -> None:
    budget = Budget(max_tokens=100_000)
    task = await client.send_task("alice", "work", priority="high", thread_id="t", timeout_seconds=60, budget=budget)
    ended = await client.wait_task(task, timeout_seconds=30)
    assert (ended.state, ended.thread_id, ended.budget) == (TaskState.COMPLETED, "t", budget)
    assert await client.answer_of(ended) == "done"
    assert await client.run_task("alice", "in two parts") == "one\ntwo"
    assert (await client.get_task(task)).id == task.id
    assert task.id in [each.id for each in await client.list_tasks("alice", limit=50)]
    assert [each.id for each in await client.get_task_tree(task)] == [task.id]
    assert len(await client.list_steps(task)) == 1
    assert "t" in [thread.id for thread in await client.list_threads("alice")]
    failed = await client.wait_task(await client.send_task("alice", "fail"))
    assert failed.state is TaskState.FAILED
    assert (await client.retry_task(failed)).state is TaskState.QUEUED
    waiting = [await client.send_task("bob", "wait") for _ in range(2)]
    assert (await client.wait_task(waiting[0], timeout_seconds=0.01)).state is TaskState.QUEUED
    assert (await client.cancel_task(waiting[0])).state is TaskState.CANCELLED
    assert [each.id for each in await client.cancel_tree(waiting[1])] == [waiting[1].id]
    assert (await client.dead_letters()).mails == []


async def use_mail(client: Client) -> None:
    sent = await client.send_mail("alice", "subject", "body", priority="low")
    assert sent.id in [mail.id for mail in await client.mailbox("alice")]
    await client.run_task("alice", "write to me")
    (received,) = await client.mailbox(limit=1)
    assert (await client.mark_mail(received.id, "read")).state is MailState.READ
    assert (await client.reply_mail(received.id, "thanks")).recipient == "alice"
    event = await client.broadcast_event("data_ready", {"rows": 3})
    assert [each.id for each in await client.list_events()] == [event.id]
    assert await client.list_locks() == []


async def use_rooms(client: Client) -> None:
    room = await client.create_room(["alice"], title="talk", hop_limit=1)
    assert (await client.add_member(room, "bob")).members == ("alice", "bob")
    assert (await client.remove_member(room.id, "bob")).members == ("alice",)
    message = await client.post_message(room, "hello @alice")
    await client.wait_task(message.asked["alice"])
    assert [each.text for each in await client.room_messages(room, limit=2)] == ["hello @alice", "done"]
    chat = await client.open_chat("alice")
    assert [each.id for each in await client.list_rooms()] == [room.id, chat.id]
    assert (await client.get_room(chat)).members == ("alice",)


async def use_schedules(client: Client) -> None:
    schedule = await client.create_schedule("alice", cron="0 9 * * MON", zone="Europe/Berlin", prompt="weekly")
    assert (await client.pause_schedule(schedule)).paused
    assert not (await client.resume_schedule(schedule.id)).paused
    assert (await client.get_schedule(schedule)).definition.zone == "Europe/Berlin"
    assert [each.id for each in await client.list_schedules("alice")] == [schedule.id]
    await client.delete_schedule(schedule)
    assert await client.list_schedules() == []
    assert "writer" in [template.name for template in await client.list_templates()]


async def use_sessions(client: Client) -> None:
    await client.at_rest()
    assert (await client.usage()).total.tasks > 0
    assert (await client.read_log("alice", limit=5)).next >= 0
    assert (await client.server_info()).principal == "local"
    assert "methods" in await client.discover()
    made = await client.create_session(title="another")
    assert made.title == "another"
    assert made.id in [each.id for each in await client.list_sessions()]
    assert (await client.get_session()).id == client.session_id
    other = client.session(made.id)
    await other.create_agent("carol")
    assert [status.agent_id for status in await other.list_agents()] == ["carol"]
    assert (await client.delete_session(made.id)).agents == 1
    with pytest.raises(UnknownSessionError, match=made.id):
        await other.list_agents()
    log = await client.notifications(after=0, limit=10_000)
    async with client.events(after=0) as events:
        assert [await anext(events) for _ in log] == log


def test_every_method_works_over_the_wire(server: StagedServer, session_id: str) -> None:
    called: set[str] = set()

    async def scenario(client: Client) -> None:
        remembering = cast(Client, Remembering(client, called))
        for use in (use_agents, use_tasks, use_mail, use_rooms, use_schedules, use_sessions):
            await use(remembering)

    server.play(scenario, session_id=session_id)
    public = {name for name, member in inspect.getmembers(Client, callable) if not name.startswith("_")}
    assert called - {"session_id"} == public - {"open", "close"}


def test_the_client_has_the_methods_of_the_manager() -> None:
    """All but those that need the process of the agents: tools are code, and a stream of events is called so."""
    methods = {name for name, member in inspect.getmembers(AsyncAgentSessionManager, callable) if name[0] != "_"}
    assert methods - set(dir(Client)) == {"give_tools", "flushed", "subscribe"}


def test_an_agent_is_started_by_name_only_if_it_is_there(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(UnknownAgentError, match="writr"):
            await client.start_agent("writr")
        assert (await client.start_agent("writr", {"description": "meant so"})).started

    server.play(scenario, session_id=session_id)


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
    lambda m: m.get_task("nothing"),
    lambda m: m.get_task(5),
    lambda m: m.wait_task("\ud800"),
    lambda m: m.cancel_task("nothing"),
    lambda m: m.retry_task("taken"),
    lambda m: m.list_tasks("nobody"),
    lambda m: m.list_tasks(limit=0),
    lambda m: m.send_mail("nobody", "s", "b"),
    lambda m: m.send_mail("alice", None, "b"),
    lambda m: m.send_mail("alice", "", " "),
    lambda m: m.send_mail("alice", "x" * 501, "b"),
    lambda m: m.reply_mail("nothing", "b"),
    lambda m: m.mark_mail("nothing", "read"),
    lambda m: m.mailbox("nobody"),
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
    "agent": "alice",
    "agent_id": "someone",
    "to": "alice",
    "task": "there",
    "prompt": "do it",
    "subject": "s",
    "body": "b",
    "mail_id": "mail",
    "state": "read",
    "event": "e",
    "room": "room",
    "members": ["alice"],
    "text": "hello",
    "schedule": "tick",
    "name": "writer",
    "owner": "alice",
    "session_id": "no-such-session",
}
WAITS = {"wait_task", "run_task", "answer_of", "at_rest"}


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


@pytest.mark.parametrize(
    "written",
    [
        "{url}/?token={token}",
        "{url}?token={token}",
        "{url}/ws?token={token}",
        "{ws}/ws?token={token}",
        "{ws}/?x=1&token={token}",
    ],
)
def test_any_form_of_the_address_leads_to_the_server(server: StagedServer, written: str) -> None:
    url, token = server.address.url, server.address.token

    async def main() -> None:
        async with Client(written.format(url=url, ws=url.replace("http", "ws"), token=token)) as client:
            assert (await client.server_info()).principal == "local"

    asyncio.run(main())


@pytest.mark.parametrize("token", [None, "wrong", "b\u00e4d", "", "two words"])
def test_a_wrong_token_is_refused_at_once(server: StagedServer, token: str | None) -> None:
    async def main() -> None:
        with pytest.raises(UnauthorizedError, match="token"):
            async with Client(server.address.url, token):
                raise AssertionError("it was let in")

    asyncio.run(main())


@pytest.mark.parametrize("url", ["", "127.0.0.1:8642", "ftp://127.0.0.1/", "http://", "http://host:port/", None])
def test_what_is_no_address_is_refused_without_its_secrets(url: Any) -> None:
    with pytest.raises(InvalidInputError, match="address of a server") as caught:
        Client(url and f"{url}?token=secret")
    assert "secret" not in caught.value.message


def test_a_host_that_the_server_does_not_answer_to_is_named(server: StagedServer) -> None:
    async def main() -> None:
        with pytest.raises(ConnectionLostError, match="does not answer to the host 'localhost"):
            await Client(server.address.page.replace("127.0.0.1", "localhost")).open()

    asyncio.run(main())


def test_a_client_that_is_not_open_says_so(server: StagedServer) -> None:
    async def main() -> None:
        client = Client(server.address.page)
        for use in (client.list_agents, client.at_rest):
            with pytest.raises(ClosedError, match="async with"):
                await use()
        with pytest.raises(ClosedError, match="async with"):
            client.events()

    asyncio.run(main())


def test_a_client_that_is_open_is_not_opened_again(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        before = asyncio.all_tasks()
        with pytest.raises(StateError, match="open already"):
            await client.open()
        assert asyncio.all_tasks() == before
        await client.close()
        await client.open()
        assert await client.list_agents() == []

    server.play(scenario, session_id=session_id)


def test_an_error_has_what_leads_to_the_log_of_the_server(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(UnknownAgentError) as unknown:
            await client.get_agent("nobody")
        assert re.fullmatch(r"\S+-\d+", unknown.value.data["requestId"])

    server.play(scenario, session_id=session_id)


def test_a_task_without_an_answer_raises_with_the_reason(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create_agent("alice")
        with pytest.raises(TaskEndedError, match="ended as failed: as you wish"):
            await client.run_task("alice", "fail")

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


@pytest.fixture
def without_a_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks again whether all are at rest unless a notification says so."""
    monkeypatch.setattr(client_module, "_LOOK_AGAIN_SECONDS", 1e6)


@pytest.mark.usefixtures("without_a_net")
def test_at_rest_waits_for_all_work_but_not_for_agents_that_are_held_up(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        for name in ("alice", "bob", "carol"):
            await client.create_agent(name)
        await client.at_rest()
        await client.pause_agent("carol")
        held_up = await client.send_task("carol", "later")
        tasks = [await client.send_task(name, f"task {number}") for number in range(30) for name in ("alice", "bob")]
        await client.at_rest()
        assert {(await client.get_task(task)).state for task in tasks} == {TaskState.COMPLETED}
        assert (await client.get_task(held_up)).state is TaskState.QUEUED

    server.play(scenario, session_id=session_id)


@pytest.mark.usefixtures("without_a_net")
def test_at_rest_waits_while_a_task_runs(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create_agent("alice")
        task = await client.send_task("alice", "hang")
        resting = asyncio.ensure_future(client.at_rest())
        assert await asyncio.wait([resting], timeout=0.1) == (set(), {resting})
        await client.cancel_task(task)
        await resting

    server.play(scenario, session_id=session_id)


def test_streams_of_several_sessions_run_side_by_side(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        other = client.session((await client.create_session()).id)
        async with client.events() as mine, other.events() as others, other.events(after=0) as again:
            for target in (client, other):
                await target.create_agent(f"agent-of-{target.session_id}")
            for stream, target in ((mine, client), (others, other), (again, other)):
                note = await anext(stream)
                assert (note.name, note.session_id) == ("agent.created", target.session_id)
                assert note.params["agentId"] == f"agent-of-{target.session_id}"

    server.play(scenario, session_id=session_id)


def test_deltas_come_along_only_when_wanted(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create_agent("alice")
        async with client.events(deltas=True) as streamed, client.events() as kept:
            task = await client.send_task("alice", "go")
            names: list[str] = []
            while "async.task.completed" not in names:
                note = await anext(streamed)
                assert (note.seq == 0) == (note.name == "async.task.delta")
                names.append(note.name)
            assert "async.task.delta" in names
            names = [name for name in names if name != "async.task.delta"]
            assert [(await anext(kept)).name for _ in names] == names
            assert (await client.get_task(task)).state is TaskState.COMPLETED

    server.play(scenario, session_id=session_id)


def test_a_stream_has_one_reader_and_ends_with_its_client(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        stream = client.events()
        first = asyncio.ensure_future(anext(stream, None))
        await asyncio.sleep(0)
        with pytest.raises(StateError, match="reads this subscription already"):
            await anext(stream)
        await client.create_session()
        await client.close()
        assert await first is None
        with pytest.raises(ClosedError, match="subscription was closed"):
            await stream.__aenter__()

    server.play(scenario, session_id=session_id)


def test_a_stream_that_nobody_holds_any_more_lets_go_of_its_connection(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create_agent("alice")
        before = asyncio.all_tasks()
        async for _ in client.events(after=0):
            break
        (of_the_stream,) = asyncio.all_tasks() - before
        await asyncio.wait([of_the_stream], timeout=5)
        assert of_the_stream.done()

    server.play(scenario, session_id=session_id)


def test_a_stream_lets_go_in_its_own_thread_whoever_drops_it(
    server: StagedServer, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def remember(abort: Callable[[], None]) -> None:
        threads.append(threading.get_ident())
        abort()

    async def scenario(client: Client) -> None:
        stream = client.events()
        await stream.__aenter__()
        socket = cast(ClientConnection, stream._socket)
        monkeypatch.setattr(socket.transport, "abort", partial(remember, socket.transport.abort))
        holders = [stream]
        del stream
        await asyncio.to_thread(holders.clear)
        await socket.wait_closed()

    server.play(scenario, session_id=session_id)
    assert threads == [threading.get_ident()]


def test_a_stream_of_a_session_that_is_deleted_says_so(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        doomed = client.session((await client.create_session()).id)
        async with doomed.events() as events:
            await client.delete_session(doomed.session_id)
            with pytest.raises(UnknownSessionError, match=doomed.session_id):
                await anext(events)

    server.play(scenario, session_id=session_id)


@pytest.mark.parametrize("agents", [1, 5], ids=["a shorter log", "a longer log"])
def test_a_stream_does_not_go_on_in_another_session_of_the_same_id(
    server: StagedServer, session_id: str, agents: int
) -> None:
    async def scenario(client: Client) -> None:
        doomed = client.session((await client.create_session()).id)
        for name in ("one", "two"):
            await doomed.create_agent(name)
        async with doomed.events(after=0) as events:
            seen = [await anext(events) for _ in await doomed.notifications()]
            await client.delete_session(doomed.session_id)
            await client.create_session(doomed.session_id)
            for number in range(agents):
                await doomed.create_agent(f"new-{number}")
            for _ in range(2):
                with pytest.raises(UnknownSessionError, match="another has its id now"):
                    await anext(events)
            assert events.cursor == seen[-1].seq

    server.play(scenario, session_id=session_id)

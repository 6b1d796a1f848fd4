"""The client offers what the manager does, over a real server: same methods, same results."""

from __future__ import annotations

import asyncio
import inspect
import re
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, cast

import pytest

from ai_whisperer import AgentDefinition, AsyncAgentSessionManager, Client, MailDraft
from ai_whisperer.client import client as client_module
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.mail import MailState
from ai_whisperer.domain.task_events import TaskEnded
from ai_whisperer.domain.tasks import Budget, TaskState
from ai_whisperer.errors import (
    ArchiveError,
    InvalidInputError,
    NoClusterError,
    TaskEndedError,
    UnknownAgentError,
    UnknownApprovalError,
    UnknownFileError,
    UnknownMcpServerError,
    UnknownQuestionError,
    UnknownRecipientError,
    UnknownSessionError,
)
from tests.acceptance.client_stage import StagedServer


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
    assert await client.agent_threads() == {"alice": (await client.get_agent_status("alice")).running_tasks}
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
    assert await client.list_steps(task, after=1) == []
    last = [event async for event in client.stream(task)][-1]
    assert isinstance(last, TaskEnded)
    assert (last.task, last.answer) == (await client.get_task(task), "done")
    assert "t" in [thread.id for thread in await client.list_threads("alice")]
    failed = await client.wait_task(await client.send_task("alice", "fail"))
    assert failed.state is TaskState.FAILED
    assert (await client.dismiss_task(failed)).dismissed_at is not None
    assert failed.id not in [each.id for each in (await client.dead_letters()).tasks]
    assert (await client.retry_task(failed)).state is TaskState.QUEUED
    assert (await client.wait_task(failed)).state is TaskState.FAILED
    again = await client.retry_failed_tasks("alice")
    assert (again.retried, again.not_retried, again.task_ids, again.reasons) == (1, 0, (failed.id,), {})
    assert (await client.retry_failed_tasks("bob")).retried == 0
    waiting = [await client.send_task("bob", "wait") for _ in range(2)]
    assert (await client.wait_task(waiting[0], timeout_seconds=0.01)).state is TaskState.QUEUED
    assert (await client.cancel_task(waiting[0])).state is TaskState.CANCELLED
    assert [each.id for each in await client.cancel_tree(waiting[1])] == [waiting[1].id]
    assert (await client.dead_letters()).mails == []


async def use_mail(client: Client) -> None:
    sent = await client.send_mail("alice", "subject", "body", priority="low")
    assert sent.id in [mail.id for mail in await client.mailbox("alice")]
    many = await client.send_mails([MailDraft(to="Alice", subject=text, body=text) for text in ("one", "two")])
    assert [mail.body for mail in many] == ["one", "two"]
    assert [mail.id for mail in await client.sent_mail()] == [many[1].id, many[0].id, sent.id]
    with pytest.raises(UnknownRecipientError, match=r"None of the 1 mails was sent, for the 1\. cannot be"):
        await client.send_mails([MailDraft(to="nobody", subject="s", body="b")])
    await client.run_task("alice", "write to me")
    (received,) = await client.mailbox(limit=1)
    assert (await client.mark_mail(received.id, "read")).state is MailState.READ
    assert (await client.reply_mail(received.id, "thanks")).recipient == "alice"
    event = await client.broadcast_event("data_ready", {"rows": 3})
    assert [each.id for each in await client.list_events()] == [event.id]
    assert await client.list_locks() == []
    assert await client.list_resources() == []


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


async def use_locks(client: Client) -> None:
    lock = await client.acquire_lock("door")
    assert (await client.renew_lock("door", lock.token)).token == lock.token
    assert (await client.check_lock("door", lock.token)).is_current
    await client.release_lock("door", lock.token)
    await client.acquire_lock("door")
    await client.break_lock("door")
    assert await client.list_locks() == []


async def use_files(client: Client) -> None:
    assert await client.list_memory("alice") == []
    with pytest.raises(UnknownFileError, match="There is: none"):
        await client.read_memory("alice", "MEMORY.md")
    assert await client.list_attachments() == []
    with pytest.raises(UnknownFileError, match="Nothing with the digest"):
        await client.get_attachment("0" * 64)


async def use_mcp(client: Client) -> None:
    assert await client.list_mcp_servers() == []
    assert await client.list_provider_accounts() == []
    with pytest.raises(UnknownMcpServerError, match=r"'nobody'\. There are: none\."):
        await client.start_mcp_server("nobody")


async def use_approvals(client: Client) -> None:
    assert await client.list_approvals() == []
    for attempt in (client.get_approval, client.approve, client.refuse):
        with pytest.raises(UnknownApprovalError, match=r"no approval 'nobody\.2'"):
            await attempt("nobody.2")
    assert "send_mail" in {each.name for each in await client.list_tools()}


async def use_questions(client: Client) -> None:
    assert await client.list_questions() == []
    with pytest.raises(UnknownQuestionError, match=r"no question 'nobody\.2'"):
        await client.get_question("nobody.2")
    with pytest.raises(UnknownQuestionError, match=r"no question 'nobody\.2'"):
        await client.answer_question("nobody.2", "yes")
    with pytest.raises(UnknownQuestionError, match=r"no question 'nobody\.2'"):
        await client.refuse_question("nobody.2", reason="no")


async def use_context(client: Client) -> None:
    assert (await client.get_context("alice", thread_id="t")).thread_id == "t"
    made = await client.wait_task(await client.compact_context("alice", thread_id="t"))
    assert made.state is TaskState.COMPLETED


async def use_retention(client: Client) -> None:
    assert "tasks" in [part.name for part in (await client.storage()).parts]
    assert (await client.prune(older_than="1d", dry_run=True)).erased.tasks == 0
    assert (await client.delete_thread("alice", "t")).id == "t"
    room = await client.create_room(["alice"], title="gone")
    assert (await client.delete_room(room)).id == room.id
    with pytest.raises(ArchiveError, match=r"gone\.zip"):
        await client.import_session("gone.zip")
    await client.create_agent("carl")
    assert (await client.delete_agent("carl")).agent_id == "carl"


async def use_cluster(client: Client) -> None:
    """There is none here: `tests/cluster` has one."""
    asked_of_clusters = (
        client.cluster_status(),
        client.drain_node("a"),
        client.move_session(client.session_id, "a"),
        client.set_needs(["gpu"]),
    )
    for asked in asked_of_clusters:
        with pytest.raises(NoClusterError):
            await asked


async def use_limits(client: Client) -> None:
    report = await client.set_limits({"max_queue_length": 77}, agent_id="alice")
    assert report.agent_id == "alice"
    assert {each.name: each.value for each in (await client.get_limits("alice")).limits}["max_queue_length"] == 77
    served = await client.set_server_limits({"max_mail_bytes": 200_000})
    assert {each.name: str(each.source) for each in served.limits}["max_mail_bytes"] == "server"
    await client.set_server_limits({"max_mail_bytes": None})


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
    newest = (await client.list_tasks(limit=1))[0].id
    assert newest in await client.find_ids("task", newest)
    with pytest.raises(InvalidInputError, match="Kinds: task, mail, approval, question, room, schedule"):
        await client.find_ids("lock", "x")
    snapshot = await client.snapshot()
    assert {agent.agent_id: agent for agent in snapshot.agents} == (await client.get_agent_states()).agents
    at = (await client.fork_points(3, limit=1))[0]
    (fork,) = (await client.fork_session(at, new_session_id=f"fork-of-{client.session_id}")).session_ids
    assert not (await client.compare_sessions(fork)).calls_only_in_b
    await client.delete_session(fork)
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
        for use in (
            use_agents,
            use_tasks,
            use_mail,
            use_rooms,
            use_schedules,
            use_locks,
            use_files,
            use_mcp,
            use_approvals,
            use_questions,
            use_limits,
            use_context,
            use_sessions,
            use_retention,
            use_cluster,
        ):
            await use(remembering)

    server.play(scenario, session_id=session_id)
    public = {name for name, member in inspect.getmembers(Client, callable) if not name.startswith("_")}
    assert called - {"session_id"} == public - {"open", "close"}


def test_the_client_has_the_methods_of_the_manager() -> None:
    """All but those that need the process of the agents: tools are code, and a stream of events is called so.

    What a server tells its sessions, and asks them before it forks them, is for the server alone, and handlers of logs
    are code.
    """
    methods = {name for name, member in inspect.getmembers(AsyncAgentSessionManager, callable) if name[0] != "_"}
    of_servers = {"take_server_limits", "check_fork"}
    assert methods - set(dir(Client)) == {"give_tools", "flushed", "log_agents", "subscribe", *of_servers}


def test_an_agent_that_is_started_and_not_there_is_created_as_in_process(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        assert (await client.start_agent("bob")).started
        assert (await client.start_agent("carol", {"description": "meant so"})).started
        assert [status.agent_id for status in await client.list_agents()] == ["bob", "carol"]

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


class CountedIds:
    """Ids that can be told in advance."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> str:
        return f"id-{next(self._numbers)}"


def test_what_a_client_makes_has_the_ids_that_are_provided(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create_agent("alice")
        made = [
            (await client.send_task("alice", "go")).id,
            (await client.session(session_id).send_mail("alice", "subject", "body")).id,
            (await client.create_room(["alice"])).id,
        ]
        assert made == ["id-1", "id-2", "id-3"]

    server.play(scenario, session_id=session_id, ids=CountedIds())


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

"""Notifications to clients that come and go; requests of one client keep their order."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import struct
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from ai_whisperer.domain.notification import Notification
from ai_whisperer.models.base import Model
from ai_whisperer.models.scripted import FunctionModel, ScriptedModel
from ai_whisperer.models.scripted_rules import Rule
from ai_whisperer.server.frames import NotificationFrames
from ai_whisperer.settings import Settings
from tests.acceptance.raw_socket import (
    CLOSE,
    ONLY_WHAT_IS_SUBSCRIBED,
    ClosedError,
    Json,
    RawSocket,
    frame,
    request_of,
)
from tests.acceptance.server_in_thread import LogWitness, ServerInThread, witnessed
from tests.acceptance.session_talk import last_seq, numbers, read_up_to, say, sockets, work

SEED = int(os.environ.get("WHISPERER_TEST_SEED", "20250605"))
STREAMED = "A rather long answer that comes in many small pieces."


def model_of(name: str) -> Model:
    if name == "streaming":
        return ScriptedModel([Rule(text=STREAMED, chunk_characters=4, chunk_seconds=0.002)])
    return FunctionModel(say)


@pytest.fixture(scope="module")
def witness() -> Iterator[LogWitness]:
    with witnessed(logging.INFO) as witness:
        yield witness


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, witness: LogWitness) -> Iterator[ServerInThread]:
    settings = Settings(data=tmp_path_factory.mktemp("data"), port=0)
    with ServerInThread(settings, model_factory=model_of) as server:
        yield server


@pytest.fixture(autouse=True)
def no_complaints(witness: LogWitness) -> Iterator[None]:
    yield
    assert witness.complaints == []


@pytest.fixture
def session(server: ServerInThread) -> str:
    """A new session with one agent."""
    with server.connect() as client:
        session_id = str(client.call("session.create")["sessionId"])
        client.call("async.createAgent", sessionId=session_id, agentId="worker")
    return session_id


def test_a_subscription_begins_after_its_cursor_and_goes_on(server: ServerInThread, session: str) -> None:
    with server.connect(path=ONLY_WHAT_IS_SUBSCRIBED) as client:
        work(client, session)
        last = last_seq(client, session)
        subscribed = client.call("events.subscribe", sessionId=session, after=3)
        created_at = client.call("session.get", sessionId=session)["createdAt"]
        expected = {"sessionId": session, "after": 3, "firstSeq": 1, "lastSeq": last, "createdAt": created_at}
        assert subscribed == expected
        assert numbers(read_up_to(client, last)) == list(range(4, last + 1))
        work(client, session)
        later = last_seq(client, session)
        assert numbers(read_up_to(client, later)) == list(range(last + 1, later + 1))


def test_without_a_cursor_a_subscription_begins_now(server: ServerInThread, session: str) -> None:
    with server.connect() as client:
        last = last_seq(client, session)
        assert client.call("events.subscribe", sessionId=session)["after"] == last
        client.call("async.broadcastEvent", sessionId=session, event="now")
        assert client.next_note()["params"]["seq"] == last + 1


def test_what_is_replayed_is_what_was_sent_and_what_is_listed(server: ServerInThread, session: str) -> None:
    with server.connect() as live, server.connect() as late:
        live.call("events.subscribe", sessionId=session, after=0)
        work(live, session)
        last = last_seq(live, session)
        late.call("events.subscribe", sessionId=session, after=0)
        seen = read_up_to(live, last)
        assert read_up_to(late, last) == seen
        listed = live.call("events.list", sessionId=session)["notifications"]
        assert [(note["method"], note["params"]) for note in seen] == [
            (
                each["name"],
                {**each["params"], "sessionId": session, **{key: each[key] for key in ("seq", "cause", "at")}},
            )
            for each in listed
        ]


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (10**9, "ends at 2, so nothing can come after 1000000000. Subscribe from 0"),
        (2**80, "nothing can come after"),
        (-1, "after must be a whole number from 0 on"),
    ],
)
def test_a_cursor_that_cannot_be_is_refused_with_a_sentence(
    server: ServerInThread, session: str, after: int, words: str
) -> None:
    with server.connect() as client:
        error = client.error("events.subscribe", sessionId=session, after=after)
        assert error["code"] == -32602
        assert words in error["message"]


def test_unsubscribing_tells_the_number_of_the_last_that_was_sent(server: ServerInThread, session: str) -> None:
    with server.connect() as client:
        client.call("events.subscribe", sessionId=session, after=0)
        work(client, session)
        ended = client.call("events.unsubscribe", sessionId=session)
        assert numbers(client.notes) == list(range(1, ended["after"] + 1))
        work(client, session)
        assert numbers(client.notes) == list(range(1, ended["after"] + 1)), "nothing came after it"
        last = last_seq(client, session)
        client.notes.clear()
        client.call("events.subscribe", sessionId=session, after=ended["after"])
        assert numbers(read_up_to(client, last)) == list(range(ended["after"] + 1, last + 1))


def test_a_client_that_comes_and_goes_at_random_misses_nothing_and_sees_nothing_twice(
    server: ServerInThread, session: str
) -> None:
    chance = random.Random(SEED)
    seen: list[Json] = []
    reconnects = 0
    with server.connect() as giver:
        for name in ("second", "third"):
            giver.call("async.createAgent", sessionId=session, agentId=name)
        for number in range(120):
            given = {"sessionId": session, "agentId": chance.choice(("worker", "second", "third")), "prompt": "go"}
            giver.send(frame(request_of("async.sendTask", given, number)))
        while True:
            states = giver.call("async.getAgentStates", sessionId=session)
            ended = all(not each["queue_size"] and not each["running_tasks"] for each in states["agents"].values())
            if ended and seen and seen[-1]["params"]["seq"] >= last_seq(giver, session):
                break
            reconnects += 1
            seen += some_notes(server, session, chance, after=seen[-1]["params"]["seq"] if seen else 0)
        listed = giver.call("events.list", sessionId=session, limit=100_000)["notifications"]
    print(f"\n{len(seen)} notifications over {reconnects} connections, seed {SEED}")
    assert numbers(seen) == list(range(1, len(seen) + 1))
    assert [note["method"] for note in seen] == [note["name"] for note in listed]
    assert sum(note["method"] == "async.task.completed" for note in seen) == 120
    assert reconnects > 20


def some_notes(server: ServerInThread, session: str, chance: random.Random, *, after: int) -> list[Json]:
    """What a client reads that leaves after a while, in one way or another."""
    notes: list[Json] = []
    with server.connect() as client:
        client.call("events.subscribe", sessionId=session, after=after)
        client.socket.settimeout(0.2)
        try:
            for _ in range(chance.randrange(60)):
                notes.append(client.next_note())  # noqa: PERF401 - what came before it times out is kept
        except TimeoutError:
            pass  # there is no more
        leave(client, chance)
    return notes


def leave(client: RawSocket, chance: random.Random) -> None:
    """Say goodbye, or close the connection, or break it."""
    way = chance.randrange(3)
    if way == 0:
        client.send(frame(struct.pack("!H", 1001), CLOSE))
    elif way == 1:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


@pytest.mark.parametrize("deltas", [True, False])
def test_pieces_of_answers_come_only_to_those_who_ask(server: ServerInThread, deltas: bool) -> None:  # noqa: FBT001
    with server.connect(path=ONLY_WHAT_IS_SUBSCRIBED) as client:
        session = client.call("session.create")["sessionId"]
        client.call("async.createAgent", sessionId=session, agentId="worker", config={"model": "streaming"})
        client.call("events.subscribe", sessionId=session, after=0, deltas=deltas)
        work(client, session)
        pieces = [note["params"] for note in client.notes if note["method"] == "async.task.delta"]
        assert bool(pieces) == deltas
        assert "".join(piece["text"] for piece in pieces) == (STREAMED if deltas else "")
        assert {piece["seq"] for piece in pieces} <= {0}
        kept = [note for note in client.notes if note["method"] != "async.task.delta"]
        assert numbers(kept) == list(range(1, len(kept) + 1))


def test_requests_take_effect_in_the_order_in_which_they_were_sent(server: ServerInThread) -> None:
    deeds: list[tuple[str, dict[str, Any]]] = [
        ("session.create", {}),
        ("async.createAgent", {"agentId": "a", "autoStart": False}),
        *(("async.sendTask", {"agentId": "a", "prompt": "go", "taskId": f"t{number}"}) for number in range(20)),
        ("async.startAgent", {"agentId": "a"}),
        ("async.pauseAgent", {"agentId": "a"}),
        ("async.createAgent", {"agentId": "b"}),
        ("async.broadcastEvent", {"event": "x"}),
        ("async.resumeAgent", {"agentId": "a"}),
        ("task.list", {"agentId": "a"}),
        ("session.list", {}),
        ("session.delete", {}),
        ("session.create", {}),
        ("async.createAgent", {"agentId": "a"}),
        ("async.getAgentStates", {}),
    ]
    with server.connect() as client:
        sent = b""
        for number, (method, params) in enumerate(deeds):
            given = params if method == "session.list" else {"sessionId": "in-order", **params}
            sent += frame(request_of(method, given, number))
        client.send(sent)
        answers: dict[int, Json] = {}
        while len(answers) < len(deeds):
            answer = client.receive()
            if "id" in answer:
                answers[answer["id"]] = answer
        refused = [(deeds[number], answer["error"]) for number, answer in answers.items() if "error" in answer]
        assert refused == []
        results = {method: answers[number]["result"] for number, (method, _) in enumerate(deeds)}
        assert [task["taskId"] for task in results["task.list"]["tasks"]] == [
            f"t{number}" for number in range(19, -1, -1)
        ]
        assert "in-order" in [each["sessionId"] for each in results["session.list"]["sessions"]]
        assert results["session.delete"]["agents"] == 2
        assert list(results["async.getAgentStates"]["agents"]) == ["a"]
        assert results["async.getAgentStates"]["last_seq"] <= 4, "it is another session"


def test_what_a_client_asked_for_is_done_also_when_it_leaves_at_once(server: ServerInThread, session: str) -> None:
    with server.connect() as client:
        given = {"sessionId": session, "agentId": "worker", "prompt": "go"}
        client.send(b"".join(frame(request_of("async.sendTask", given, number)) for number in range(200)))
        client.socket.shutdown(socket.SHUT_WR)
        while True:
            try:
                client.receive()
            except ClosedError:
                break
    with server.connect() as other:
        assert len(other.call("task.list", sessionId=session, limit=1000)["tasks"]) == 200


def test_a_hundred_connections_leave_no_descriptor_and_no_task_behind(server: ServerInThread, session: str) -> None:
    chance = random.Random(SEED)

    def held() -> int:
        """Descriptors and tasks; others than those of connections, as that of a log, may come and go."""
        return len(os.listdir("/proc/self/fd")) + len(asyncio.all_tasks())

    def come_and_go() -> None:
        with server.connect() as client:
            client.call("events.subscribe", sessionId=session, after=0, deltas=True)
            client.send(frame(request_of("task.wait", {"sessionId": session, "taskId": "endless"})))
            client.next_note()
            leave(client, chance)

    with server.connect() as client:
        client.call("async.pauseAgent", sessionId=session, agentId="worker")
        client.call("async.sendTask", sessionId=session, agentId="worker", prompt="go", taskId="endless")
    before = server.do(counted(held))
    for _ in range(100):
        come_and_go()
    server.until(lambda: not sockets() and held() < before + 10)


def counted(count: Callable[[], int]) -> Callable[[], Coroutine[Any, Any, int]]:
    async def on_the_event_loop() -> int:
        return count()

    return on_the_event_loop


def test_another_subscription_to_a_session_takes_the_place_of_the_first(server: ServerInThread, session: str) -> None:
    with server.connect() as client:
        subscribing = {"sessionId": session, "after": 0}
        client.send(b"".join(frame(request_of("events.subscribe", subscribing, number)) for number in range(5)))
        for number in range(5):
            client.answer_to(number)
        client.call("async.broadcastEvent", sessionId=session, event="once")
        work(client, session)
        assert sum(note["method"] == "event.broadcast" for note in client.notes) == 1


def test_a_session_that_is_deleted_says_farewell_and_one_of_the_same_name_begins_anew(server: ServerInThread) -> None:
    with server.connect() as client, server.connect() as owner:
        for word in ("before", "after"):
            owner.call("session.create", sessionId="again")
            client.call("events.subscribe", sessionId="again", after=0)
            owner.call("async.broadcastEvent", sessionId="again", event=word)
            told = client.next_note()
            assert (told["params"]["seq"], told["params"]["event"]) == (1, word)
            owner.call("session.delete", sessionId="again")
            (farewell,) = client.notes_until("session.closed")
            assert farewell["params"]["sessionId"] == "again"
            assert farewell["params"]["seq"] == 0


def test_a_feed_that_fails_closes_the_connection_and_does_not_fall_silent(
    server: ServerInThread, session: str, monkeypatch: pytest.MonkeyPatch, witness: LogWitness
) -> None:
    def fail(_: NotificationFrames, note: Notification) -> bytes:
        raise RuntimeError(f"cannot tell {note.name}")

    monkeypatch.setattr(NotificationFrames, "of", fail)
    with server.connect() as client:
        client.call("events.subscribe", sessionId=session, after=0)
        closed = client.until_closed()
    assert (closed.code, closed.reason) == (1011, "internal")
    assert len(witness.complaints) == 1
    assert "cannot tell agent.created" in witness.complaints.pop()


def test_a_client_that_calls_a_method_of_the_guide_gets_the_notifications_of_that_session(
    server: ServerInThread, session: str
) -> None:
    """From its first such call on, with what comes of it; of no other session, and without pieces of answers."""
    with server.connect() as client, server.connect() as other:
        last = last_seq(client, session)
        other.call("async.createAgent", sessionId="another", agentId="streamer", config={"model": "streaming"})
        task = client.call("async.sendTask", sessionId=session, agentId="worker", prompt="go")["taskId"]
        notes = client.notes_until("async.task.completed")
        assert numbers(notes) == list(range(last + 1, last + 1 + len(notes)))
        assert notes[0]["params"]["taskId"] == task
        other.call("async.sendTask", sessionId="another", agentId="streamer", prompt="go")
        heard = other.notes_until("async.task.completed")
        assert {note["params"]["sessionId"] for note in heard} == {"another"}
        assert "async.task.delta" not in {note["method"] for note in heard}
        other.call("session.delete", sessionId="another")


def test_a_first_call_that_only_reads_subscribes_too(server: ServerInThread, session: str) -> None:
    with server.connect() as client, server.connect() as other:
        last = client.call("async.getAgentStates", sessionId=session)["last_seq"]
        other.call("async.broadcastEvent", sessionId=session, event="now")
        assert client.next_note()["params"]["seq"] == last + 1


def test_what_a_client_has_said_about_its_notifications_stays(server: ServerInThread, session: str) -> None:
    """Neither one that unsubscribed is subscribed again, nor one that asked to be asked."""
    with server.connect() as gone, server.connect(path=ONLY_WHAT_IS_SUBSCRIBED) as silent:
        gone.call("events.unsubscribe", sessionId=session)
        for client in (gone, silent):
            work(client, session)
            client.call("async.getAgentStates", sessionId=session)
            assert client.notes == []
        silent.call("events.subscribe", sessionId=session)
        silent.call("async.broadcastEvent", sessionId=session, event="now")
        assert silent.next_note()["params"]["event"] == "now"


def test_a_session_that_was_deleted_and_made_again_is_followed_again(server: ServerInThread) -> None:
    with server.connect() as client:
        for _ in range(2):
            client.call("async.createAgent", sessionId="again", agentId="worker")
            assert client.notes_until("agent.started")[0]["params"]["seq"] == 1
            client.call("session.delete", sessionId="again")
            client.notes_until("session.closed")


def test_requests_that_begin_something_make_the_session_in_the_order_in_which_they_were_sent(
    server: ServerInThread,
) -> None:
    with server.connect(path=ONLY_WHAT_IS_SUBSCRIBED) as client:
        deeds: list[tuple[str, dict[str, Any]]] = [
            ("async.createAgent", {"agentId": "a", "autoStart": False}),
            ("async.sendTask", {"agentId": "a", "prompt": "go"}),
            ("async.startAgent", {"agentId": "a"}),
            ("async.startAgent", {"agentId": "b"}),
        ]
        for number, (method, params) in enumerate(deeds):
            client.send(frame(request_of(method, {"sessionId": "made", **params}, number)))
        for number in range(len(deeds)):
            assert "error" not in client.answer_to(number)
        created = [each["sessionId"] for each in client.call("session.list")["sessions"]]
        assert "made" in created
        assert list(client.call("async.getAgentStates", sessionId="made")["agents"]) == ["a", "b"]
        client.call("session.delete", sessionId="made")


@pytest.mark.parametrize("method", ["async.getAgentStates", "async.listEvents", "task.list", "session.get"])
def test_a_request_that_only_looks_makes_no_session(server: ServerInThread, method: str) -> None:
    with server.connect() as client:
        assert client.error(method, sessionId="nowhere")["data"]["code"] == "unknown_session"
        assert "nowhere" not in [each["sessionId"] for each in client.call("session.list")["sessions"]]

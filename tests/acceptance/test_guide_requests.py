"""The requests of the user guide, exactly as it prints them, and the notifications that they lead to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ai_whisperer.domain.conversation import Answer
from ai_whisperer.models.base import Model, ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.protocol.agents import IN_NEW_SESSIONS
from ai_whisperer.settings import Settings
from tests.acceptance.raw_socket import Json, RawSocket, frame
from tests.acceptance.server_in_thread import ServerInThread
from tests.simulation.stage import prompt_of, round_of

CREATE = """{
    "method": "async.createAgent",
    "params": {
        "sessionId": "session-123",
        "agentId": "analyzer",
        "autoStart": true
    }
}"""
START = """{
    "method": "async.startAgent",
    "params": {
        "sessionId": "session-123",
        "agentId": "analyzer"
    }
}"""
STOP = """{
    "method": "async.stopAgent",
    "params": {
        "sessionId": "session-123",
        "agentId": "analyzer"
    }
}"""
SLEEP = """{
    "method": "async.sleepAgent",
    "params": {
        "sessionId": "session-123",
        "agentId": "monitor",
        "durationSeconds": 60,
        "wakeEvents": ["alert", "data_ready"]
    }
}"""
WAKE = """{
    "method": "async.wakeAgent",
    "params": {
        "sessionId": "session-123",
        "agentId": "monitor",
        "reason": "User requested immediate check"
    }
}"""
SEND_TASK = """{
    "method": "async.sendTask",
    "params": {
        "sessionId": "session-123",
        "agentId": "analyzer",
        "prompt": "Analyze the latest customer feedback data"
    }
}"""
GET_STATES = """{
    "method": "async.getAgentStates",
    "params": {
        "sessionId": "session-123"
    }
}"""
STATES = """{
    "agents": {
        "analyzer": {
            "state": "active",
            "current_task": "mailbox_message",
            "queue_size": 2,
            "sleeping_until": null
        },
        "writer": {
            "state": "idle",
            "current_task": null,
            "queue_size": 0,
            "sleeping_until": null
        }
    }
}"""
BROADCAST = """{
    "method": "async.broadcastEvent",
    "params": {
        "sessionId": "session-123",
        "event": "data_ready",
        "data": {
            "source": "analyzer",
            "timestamp": "2025-06-05T16:30:00Z"
        }
    }
}"""

ORDER = (CREATE, START, SEND_TASK, GET_STATES, SLEEP, WAKE, SLEEP, BROADCAST, STOP, START)
"""All of them in an order that makes sense; the second sleep is ended by the event."""


def say(request: ModelRequest) -> Answer | str:
    prompt = prompt_of(request)
    if "fail" in prompt:
        raise RuntimeError("The model is broken.")
    if "two parts" in prompt and round_of(request) == 0:
        return '{"analysis": "long", "commentary": "", "final": "part one", "continue": true}'
    return "[ANALYSIS]\nI looked.\n[COMMENTARY]\nI counted.\n[FINAL]\n42"


def models(name: str) -> Model:
    return FunctionModel(say, latency_seconds=1e6 if name == "slow" else 0.0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerInThread]:
    settings = Settings(data=tmp_path_factory.mktemp("data"), port=0, shutdown_grace_seconds=0)
    with ServerInThread(settings, model_factory=models) as server:
        yield server


@pytest.fixture
def client(server: ServerInThread) -> Iterator[RawSocket]:
    """A client of a fresh session with the id of the guide, in which there is a monitor.

    Nobody makes the session, and nobody subscribes: the guide does not say that one must.
    """
    with server.connect() as client:
        client.call("async.createAgent", sessionId="session-123", agentId="monitor")
        yield client
        client.call("session.delete", sessionId="session-123")


def sent(client: RawSocket, printed: str, request_id: int) -> Json:
    """The answer to a request of the guide with `jsonrpc` and an id added."""
    client.send(frame(json.dumps({"jsonrpc": "2.0", "id": request_id, **json.loads(printed)}).encode()))
    return client.answer_to(request_id)


def sent_bare(client: RawSocket, printed: str) -> Json:
    """The answer to a request of the guide as it is printed, to the letter."""
    client.send(frame(printed.encode()))
    return client.answer_to(None)


def test_the_requests_of_the_guide_are_answered(client: RawSocket) -> None:
    for number, printed in enumerate(ORDER, start=1):
        answer = sent(client, printed, number)
        assert answer.keys() == {"jsonrpc", "id", "result"}, (printed, answer)
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", number)


def test_the_requests_of_the_guide_are_answered_as_they_are_printed(client: RawSocket) -> None:
    for printed in ORDER:
        answer = sent_bare(client, printed)
        assert answer.keys() == {"jsonrpc", "id", "result"}, (printed, answer)
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", None)


def test_what_the_requests_of_the_guide_do(client: RawSocket) -> None:
    created = sent(client, CREATE, 1)["result"]
    assert (created["agentId"], created["state"], created["started"]) == ("analyzer", "idle", True)
    task = sent(client, SEND_TASK, 2)["result"]
    assert task["prompt"] == "Analyze the latest customer feedback data"
    ended = client.call("task.wait", sessionId="session-123", taskId=task["taskId"])
    channels = {"analysis": "I looked.", "commentary": "I counted.", "final": "42"}
    assert ended["result"] == {**channels, "output": None}
    asleep = sent(client, SLEEP, 3)["result"]
    assert (asleep["state"], asleep["wakeEvents"]) == ("sleeping", ["alert", "data_ready"])
    assert asleep["sleepingUntil"] is not None
    woken = sent(client, WAKE, 4)["result"]
    assert woken["sleepingUntil"] is None
    assert told(client, "async.task.started", kind="wake_up")["agentId"] == "monitor"
    sent(client, SLEEP, 5)
    event = sent(client, BROADCAST, 6)["result"]
    assert (event["name"], event["woken"]) == ("data_ready", 1)
    assert event["data"] == {"source": "analyzer", "timestamp": "2025-06-05T16:30:00Z"}
    assert sent(client, STOP, 7)["result"]["state"] == "stopped"
    assert sent(client, START, 8)["result"]["state"] == "idle"


def told(client: RawSocket, name: str, **wanted: Any) -> dict[str, Any]:
    """The params of the first notification of that name with these params; what comes before it is kept."""
    at = 0
    while True:
        if at == len(client.notes):
            client.notes.append(client.receive())
        note = client.notes[at]
        if note["method"] == name and note["params"].items() >= wanted.items():
            return dict(note["params"])
        at += 1


def test_to_start_an_agent_that_is_started_changes_nothing(client: RawSocket) -> None:
    sent(client, CREATE, 1)
    before = client.call("async.getAgentStates", sessionId="session-123")
    assert sent(client, START, 2)["result"]["started"] is True
    assert client.call("async.getAgentStates", sessionId="session-123") == before


def test_the_states_of_agents_are_those_of_the_guide(client: RawSocket) -> None:
    """The analyzer answers a mail while two more wait; the writer has nothing to do."""
    for name in ("analyzer", "writer"):
        client.call("async.createAgent", sessionId="session-123", agentId=name, config={"model": "slow"})
    for number in range(3):
        client.call("mail.send", sessionId="session-123", to="analyzer", subject="s", body=f"mail {number}")
    answer = sent(client, GET_STATES, 1)["result"]
    wanted = json.loads(STATES)["agents"]
    assert answer["agents"].keys() == {*wanted, "monitor"}
    for name, state in wanted.items():
        assert {key: answer["agents"][name][key] for key in state} == state
    bare = sent_bare(client, GET_STATES)["result"]
    assert bare["agents"] == answer["agents"]


def test_a_sleeping_agent_shows_until_when(client: RawSocket) -> None:
    sent(client, SLEEP, 1)
    state = sent(client, GET_STATES, 2)["result"]["agents"]["monitor"]
    assert state["state"] == "sleeping"
    assert isinstance(state["sleeping_until"], float)


def test_every_notification_has_session_number_and_cause(client: RawSocket) -> None:
    for printed in ORDER:
        sent_bare(client, printed)
    client.call("async.broadcastEvent", sessionId="session-123", event="the end")
    notes = client.notes
    while notes[-1]["params"].get("event") != "the end":
        notes.append(client.receive())
    for number, note in enumerate(notes, start=1):
        assert note["jsonrpc"] == "2.0"
        assert "id" not in note
        params = note["params"]
        assert (params["sessionId"], params["seq"]) == ("session-123", number)
        assert params["cause"].partition(":")[0] in {"user", "request", "task", "event", "timer", "schedule", "mail"}
        assert isinstance(params["at"], float)


def test_lifecycle_calls_lead_to_the_notifications_of_the_spec(client: RawSocket) -> None:
    sent(client, CREATE, 1)
    for method in ("pauseAgent", "resumeAgent", "stopAgent"):
        client.call(f"async.{method}", sessionId="session-123", agentId="analyzer")
    for name in ("agent.started", "agent.paused", "agent.resumed", "agent.stopped"):
        assert told(client, name, agentId="analyzer")["cause"].startswith("request:"), name
    assert changes_of("analyzer", client.notes) == [("idle", "paused"), ("paused", "idle"), ("idle", "stopped")]


def changes_of(agent: str, notes: list[Json]) -> list[tuple[str, str]]:
    """From which state to which the agent went, each time."""
    changed = (note["params"] for note in notes if note["method"] == "agent.state_changed")
    return [(each["from"], each["to"]) for each in changed if each["agentId"] == agent]


def test_a_task_leads_to_the_notifications_of_the_spec(client: RawSocket) -> None:
    sent(client, CREATE, 1)
    task = sent(client, SEND_TASK, 2)["result"]
    started = told(client, "async.task.started", taskId=task["taskId"])
    completed = told(client, "async.task.completed", taskId=task["taskId"])
    assert completed["result"] == {"analysis": "I looked.", "commentary": "I counted.", "final": "42"}
    assert started["agentId"] == completed["agentId"] == "analyzer"
    assert started["seq"] < completed["seq"]
    told(client, "agent.state_changed", agentId="analyzer", to="idle")
    assert changes_of("analyzer", client.notes) == [("idle", "active"), ("active", "idle")]


def test_a_task_that_goes_on_and_one_that_fails(client: RawSocket) -> None:
    sent(client, CREATE, 1)
    for prompt, name in (("Do it in two parts.", "async.task.continuation"), ("Please fail.", "async.task.error")):
        task = client.call("async.sendTask", sessionId="session-123", agentId="analyzer", prompt=prompt)
        assert told(client, name, taskId=task["taskId"])["agentId"] == "analyzer"
    assert "broken" in told(client, "async.task.error")["error"]["message"]


@pytest.mark.parametrize("path", ["/", "/?x=1", "/s/default", "/socket", "/ws/", "/healthz"])
def test_a_websocket_at_another_address_is_told_the_right_one(server: ServerInThread, path: str) -> None:
    """As by whoever opens the address that the server printed, which is that of the page."""
    with server.connect(path=path) as client:
        told = client.receive()
        assert f"Connect to ws://127.0.0.1:{server.port}/ws" in told["error"]["message"]
        assert (told["id"], told["error"]["data"]) == (None, {"code": "invalid_request", "path": "/ws"})
        closed = client.until_closed()
        assert (closed.code, closed.reason) == (4404, "The WebSocket is at /ws.")


def test_a_priority_that_there_is_not_is_answered_with_those_that_there_are(client: RawSocket) -> None:
    error = client.error("async.sendTask", sessionId="session-123", agentId="monitor", prompt="p", priority="asap")
    assert "Invalid enum value 'asap' at `priority`. Valid values: urgent, high, normal, low." in error["message"]


BEGINNINGS: list[tuple[str, Json]] = [
    ("async.createAgent", {"agentId": "analyzer"}),
    ("async.startAgent", {"agentId": "analyzer"}),
    ("async.sleepAgent", {"agentId": "analyzer", "durationSeconds": 60}),
    ("async.sendTask", {"agentId": "analyzer", "prompt": "go"}),
    ("async.broadcastEvent", {"event": "data_ready"}),
]
"""What creates the session if it is not there."""


def test_the_requests_that_begin_something_are_all_here() -> None:
    assert {name for name, _ in BEGINNINGS} == {method.name for method in IN_NEW_SESSIONS}


@pytest.mark.parametrize("session_id", ["", " ", "a~1", "a\nb", "x" * 201])
def test_no_request_creates_a_session_with_an_id_that_session_create_refuses(
    server: ServerInThread, session_id: str
) -> None:
    with server.connect() as client:
        refused = client.error("session.create", sessionId=session_id)
        assert refused["data"]["code"] == "invalid_input"
        listed = client.call("session.list")
        for method, params in BEGINNINGS:
            assert client.error(method, sessionId=session_id, **params)["message"] == refused["message"]
        assert client.call("session.list") == listed

"""Twenty secrets are shown to the server; none is found in its logs, its database, its figures or others' frames."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import ModelServerError
from ai_whisperer.models.base import Model, ModelRequest, StreamEvent, TextDelta
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.server.process_log import setup_logging
from ai_whisperer.settings import Settings
from tests.acceptance.raw_socket import RawSocket, RefusedError, exchange, fetch, frame, http_head
from tests.acceptance.server_in_thread import LogWitness, ServerInThread, witnessed
from tests.simulation.stage import call, round_of

CANARIES = {
    name: f"canary-{number:02}-{name.replace(' ', '-')}-9f3c"
    for number, name in enumerate(
        (
            "local token",
            "alice token",
            "bob token",
            "bearer of a stranger",
            "query of a stranger",
            "cookie of a stranger",
            "bearer to a page",
            "query to a page",
            "cookie to a page",
            "other header",
            "other cookie",
            "other query",
            "path",
            "method",
            "broken frame",
            "param",
            "provider key",
            "tool token",
            "database password",
            "proxy password",
        )
    )
}
KEPT_ON_PURPOSE = {"token", "server.json"}
"""Files that hold a token for those who may read the data folder, and only for those."""


class Leaking:
    """A model whose client fails with keys in what it says."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        for key in (CANARIES["provider key"],):
            raise ModelServerError(f"401 for Authorization: Bearer {key}, attempt {request.attempt}")
        yield TextDelta(text="never")

    async def close(self) -> None:
        pass


def fetch_feedback() -> str:
    """Fetch the feedback."""
    raise OSError(
        f"https://u:{CANARIES['database password']}@db/?x=1 via http://p:{CANARIES['proxy password']}@proxy/ refused "
        f"{CANARIES['tool token']}"
    )


def models(name: str) -> Model:
    def say(request: ModelRequest) -> Answer | str:
        return call("fetch_feedback") if round_of(request) == 0 else "done"

    return Leaking() if name == "leaking" else FunctionModel(say)


@pytest.fixture(scope="module")
def witness() -> Iterator[LogWitness]:
    with witnessed(logging.DEBUG) as witness:
        yield witness


class Told(NamedTuple):
    """What clients and a scraper were told, and the data folder of the server, which has ended."""

    frames: dict[str, str]
    data: Path


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, witness: LogWitness) -> Told:
    data = tmp_path_factory.mktemp("data")
    settings = Settings(
        data=data,
        port=0,
        token=CANARIES["local token"],
        tokens={"alice": CANARIES["alice token"], "bob": CANARIES["bob token"]},
        log_level="debug",
        agent_log=data / "agents.log",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", CANARIES["provider key"])
        patch.setenv("FEEDBACK_TOKEN", CANARIES["tool token"])
        patch.setenv("DATABASE_URL", f"postgres://u:{CANARIES['database password']}@db/x")
        patch.setenv("HTTPS_PROXY", f"http://p:{CANARIES['proxy password']}@proxy:1")
        log = setup_logging(data, level="debug")
        try:
            with ServerInThread(settings, model_factory=models, tools=[fetch_feedback]) as server:
                return Told(play(server), data)
        finally:
            log.close()


def test_there_are_twenty() -> None:
    assert len(set(CANARIES.values())) == 20


def play(server: ServerInThread) -> dict[str, str]:
    """Everything that two clients and a scraper are told while strangers and friends show the server their secrets."""
    with server.connect(CANARIES["bob token"]) as bob, server.connect(CANARIES["alice token"]) as alice:
        for client, session in ((bob, "of-bob"), (alice, "of-alice")):
            client.call("session.create", sessionId=session)
            client.call("events.subscribe", sessionId=session, after=0, deltas=True)
        strangers_come(server)
        friends_are_careless(server)
        fail_with_secrets(alice)
        bob.call("async.broadcastEvent", sessionId="of-bob", event="the end")
        shown = bob.call("session.list"), bob.call("server.info"), bob.call("template.list")
        frames = {"bob": json.dumps([bob.notes, shown]), "alice": json.dumps(alice.notes)}
    metrics = fetch(server.port, "/metrics", token=CANARIES["bob token"]).text
    return {**frames, "metrics": metrics}


def strangers_come(server: ServerInThread) -> None:
    wrong = CANARIES
    for options in (
        {"token": wrong["bearer of a stranger"]},
        {"path": f"/ws?token={wrong['query of a stranger']}"},
        {"headers": {"Cookie": f"whisperer-{server.port}={wrong['cookie of a stranger']}", "Origin": server.url}},
    ):
        with pytest.raises(RefusedError) as refused:
            RawSocket(server.port, **options)
        assert "canary" not in refused.value.response.text
    cookie = {"Cookie": f"whisperer-{server.port}={wrong['cookie to a page']}"}
    assert fetch(server.port, "/metrics", token=wrong["bearer to a page"]).status == 401
    assert fetch(server.port, f"/?token={wrong['query to a page']}").status == 401
    assert fetch(server.port, "/", headers=cookie).status == 401
    broken = http_head(
        "GET", "/", {"Host": "x", "Authorization": f"Bearer {wrong['bearer to a page']}", "bad name": "x"}
    )
    assert exchange(server.port, broken).startswith(b"HTTP/1.1 400")


def friends_are_careless(server: ServerInThread) -> None:
    token = CANARIES["alice token"]
    headers = {"X-Api-Key": CANARIES["other header"], "Cookie": f"other={CANARIES['other cookie']}"}
    path = f"/ws?token={token}&code={CANARIES['other query']}"
    with RawSocket(server.port, path=path, headers=headers) as careless:
        careless.error(CANARIES["method"])
        careless.error("server.info", secret=CANARIES["param"])
        careless.error("async.getAgentStates", sessionId=CANARIES["param"])
        careless.send(frame(f'{{"token": "{CANARIES["broken frame"]}", '.encode()))
        assert careless.receive()["error"]["code"] == -32700
        careless.send(frame(f"{CANARIES['broken frame']}\xff".encode("latin-1")))
        assert careless.until_closed().code == 1007
    assert fetch(server.port, f"/{CANARIES['path']}?x={CANARIES['other query']}", token=token).status == 404


def fail_with_secrets(alice: RawSocket) -> None:
    retry = {"max_attempts": 2, "first_delay_seconds": 0.0, "max_delay_seconds": 0.0}
    for name in ("leaking", "clumsy"):
        alice.call("async.createAgent", sessionId="of-alice", agentId=name, config={"model": name, "retry": retry})
        task = alice.call("async.sendTask", sessionId="of-alice", agentId=name, prompt="go")
        alice.call("task.wait", sessionId="of-alice", taskId=task["taskId"])
        alice.notes.append(alice.call("task.steps", sessionId="of-alice", taskId=task["taskId"]))
        alice.notes.append(alice.call("log.read", sessionId="of-alice", agentId=name))


def found_in(text: str) -> list[str]:
    return [name for name, canary in CANARIES.items() if canary in text]


def test_no_secret_is_in_the_frames_of_clients_or_in_the_figures(told: Told) -> None:
    frames = told.frames
    assert {name: found_in(text) for name, text in frames.items()} == {"bob": [], "alice": [], "metrics": []}
    assert "the end" in frames["bob"]
    assert frames["alice"].count("[secret]") >= 4, "what failed was told, without the secrets in it"
    assert "whisperer_requests_total" in frames["metrics"]


def test_no_secret_is_in_any_file_of_the_data_folder(told: Told) -> None:
    files = [file for file in told.data.rglob("*") if file.is_file() and file.name not in KEPT_ON_PURPOSE]
    assert {"whisperer.db", "server.log", "agents.log"} <= {file.name for file in files}
    assert {file.name: found for file in files if (found := found_in(file.read_bytes().decode("latin-1")))} == {}


@pytest.mark.usefixtures("told")
def test_no_secret_is_in_what_is_logged_even_before_it_is_blotted_out(witness: LogWitness) -> None:
    assert found_in("\n".join(witness.lines)) == []
    assert any("async.getAgentStates" in line for line in witness.lines), "everything was listened to"

"""`whisperer serve` as a process: how it starts, how it ends, and what it says when it cannot start."""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ai_whisperer.cli import long_waits
from ai_whisperer.cli.output import Output
from ai_whisperer.domain.conversation import ToolCall
from ai_whisperer.domain.tasks import StepKind, StepRecord, StepState, TaskRecord
from ai_whisperer.store.sqlite import SqliteStore
from tests.acceptance.command_stage import Process, Whisperer, run, serving


@pytest.fixture
def whisperer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Whisperer:
    return Whisperer(tmp_path, capsys)


@contextmanager
def task_under_way(whisperer: Whisperer, prompt: str) -> Iterator[None]:
    """A new agent with a task whose first step has just begun."""
    with whisperer.watching() as watching:
        whisperer.ok("agents", "create", "ann")
        watching.line_with("agent.created")
        whisperer.ok("tasks", "send", "ann", prompt, "--id", "long")
        watching.line_with('"taskId": "long", "stepId"')
        yield


@pytest.mark.parametrize("event_loop", ["asyncio", "uvloop"])
def test_a_signal_lets_the_step_under_way_finish_and_the_task_goes_on_at_the_next_start(
    whisperer: Whisperer, event_loop: str
) -> None:
    pytest.importorskip(event_loop)
    with serving(whisperer.data, "--event-loop", event_loop) as server:
        with task_under_way(whisperer, "two steps"):
            server.signal(signal.SIGTERM)
        ended = server.ended()
        assert (ended.code, ended.out) == (0, "")
        assert f"The data is in {whisperer.data}." in ended.err
        assert "The model is scripted:" in ended.err
    assert not (whisperer.data / "server.json").exists()
    task, steps = asyncio.run(kept(whisperer.data, "long"))
    assert not task.state.ended
    assert [(step.kind, step.state) for step in steps][:1] == [(StepKind.MODEL, StepState.DONE)]
    with serving(whisperer.data, "--event-loop", event_loop) as server:
        whisperer.ok("tasks", "wait", "long")
        steps = whisperer.json("tasks", "show", "long")["steps"]
        assert [(step["kind"], step["attempt"]) for step in steps] == [("model", 1), ("tool", 1), ("model", 1)]
        server.signal(signal.SIGINT)
        assert server.ended().code == 0


async def kept(data: Path, task_id: str) -> tuple[TaskRecord, list[StepRecord]]:
    """The task as it is on disk while no server runs."""
    store = SqliteStore.open(data)
    try:
        (task,) = (task for task in await store.tasks("default", limit=10) if task.id == task_id)
        return task, await store.steps("default", task_id)
    finally:
        store.abandon()


LINGERING = '''
import time
from pathlib import Path
from ai_whisperer import tool

@tool
def linger() -> str:
    """Wait for a file."""
    while not Path("enough").exists():
        time.sleep(0.05)
    return "enough"
'''


def test_whoever_waits_for_a_plain_function_is_told_so(whisperer: Whisperer, monkeypatch: pytest.MonkeyPatch) -> None:
    word = "Waiting until these tools have ended: linger. A tool that is a plain function cannot be interrupted."
    told = []

    def hear(_: Output, sentence: str) -> None:
        told.append(sentence)
        enough.touch()

    monkeypatch.setattr(long_waits, "SILENT_SECONDS", 0.01)
    monkeypatch.setattr(Output, "note", hear)
    enough, tools = whisperer.data / "enough", whisperer.data / "own"
    tools.mkdir()
    (tools / "lingering.py").write_text(LINGERING, encoding="utf-8")
    rules = "rules:\n  - {turn: 0, tools: [{name: linger, arguments: {}}]}\n  - {text: done}\n"
    with serving(whisperer.data, "--tools", str(tools), answers=rules) as server, whisperer.watching() as seen:
        whisperer.ok("agents", "create", "ann", "--config", '{"tools": ["linger"]}')
        for task, command in (("one", ["tasks", "cancel", "one"]), ("two", ["stop", "ann"])):
            whisperer.ok("tasks", "send", "ann", "wait", "--id", task)
            seen.line_with(f'"stepId": "{task}.2"')
            whisperer.ok(*command)
            enough.unlink()
        assert told == [word, word]
        whisperer.ok("start", "ann")
        whisperer.ok("tasks", "send", "ann", "wait", "--id", "three")
        seen.line_with('"stepId": "three.2"')
        server.signal(signal.SIGTERM)
        server.error_with(word)
        enough.touch()
        assert server.ended().code == 0


def test_of_a_tool_that_can_be_interrupted_it_is_not_said_that_it_cannot() -> None:
    def under_way(name: str) -> StepRecord:
        call = ToolCall(call_id="c", name=name, arguments="{}")
        return StepRecord(session_id="s", task_id="t", number=1, kind=StepKind.TOOL, state=StepState.STARTED, call=call)

    alone = long_waits.waits_for([under_way("run_command"), under_way("mcp__odd__act"), under_way("run_command")])
    assert alone == "Waiting until these tools have ended: run_command, mcp__odd__act."
    assert long_waits.waits_for([under_way("run_command"), under_way("own")]).endswith("cannot be interrupted.")
    assert long_waits.waits_for([]) == ""


@pytest.mark.parametrize("port", [[], ["--port", "0"]])
def test_a_second_server_in_one_folder_is_told_of_the_first(whisperer: Whisperer, port: list[str]) -> None:
    with serving(whisperer.data) as server:
        address = json.loads((whisperer.data / "server.json").read_text())
        flags = port or ["--port", str(address["url"].rpartition(":")[2])]
        told = run("serve", "--data", str(whisperer.data), *flags)
        assert told.code == 1
        assert f"A server (process {server.process.pid}) serves the data folder" in told.err
        assert f"already, at {address['url']}." in told.err
        assert "Port" not in told.err


UNFIT = """
import socket
from pathlib import Path

from ai_whisperer import tool

@tool
def connect(to: socket.socket) -> str:
    return "connected"

@tool
def look(at: Path) -> str:
    return f"{at.name} seen"
"""


def test_a_tool_that_models_cannot_call_is_left_out_and_the_server_and_the_doctor_say_so(whisperer: Whisperer) -> None:
    tools = whisperer.data / "own"
    tools.mkdir()
    (tools / "unfit.py").write_text(UNFIT, encoding="utf-8")
    word = "The tool 'connect' has the parameter 'to' of the type socket.socket, which models cannot give"
    rules = "rules:\n  - {turn: 0, tools: [{name: look, arguments: {at: /a/b}}]}\n  - {text: '{last}'}\n"
    with serving(whisperer.data, "--tools", str(tools), answers=rules) as server:
        server.error_with(word)
        assert word in whisperer.ok("tools", "--json")
        whisperer.ok("agents", "create", "ann", "--config", '{"tools": ["look"]}')
        assert "b seen" in whisperer.ok("tasks", "send", "ann", "look", "--wait")
    diagnosed = run("doctor", "--data", str(whisperer.data), "--tools", str(tools))
    assert diagnosed.code == 1
    assert word in " ".join(diagnosed.out.split())
    assert "Traceback" not in diagnosed.err


def test_a_server_whose_terminal_is_closed_leaves_in_peace(whisperer: Whisperer) -> None:
    with serving(whisperer.data) as server:
        server.signal(signal.SIGHUP)
        assert server.ended().code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_leaves_at_once(whisperer: Whisperer, number: signal.Signals) -> None:
    with serving(whisperer.data, "--shutdown-grace-seconds", "3600") as server:
        with task_under_way(whisperer, "Work eternally"):
            server.signal(number)
        server.error_with("A second signal ends it at once.")
        server.signal(number)
        assert server.ended().code == 128 + number


def test_what_is_lost_is_told_at_the_start_and_given_up_only_when_that_is_asked_for(whisperer: Whisperer) -> None:
    with serving(whisperer.data) as server:
        whisperer.ok("agents", "create", "ann")
        server.signal(signal.SIGTERM)
        assert server.ended().code == 0
    (whisperer.data / "whisperer.db").unlink()
    refused = run("serve", "--port", "0", "--data", str(whisperer.data), "--model", "scripted", "--json")
    assert (refused.code, refused.error["code"]) == (1, "store_lost")
    assert "of session 'default' at" in refused.error["message"]
    assert not (whisperer.data / "whisperer.db").exists()
    with serving(whisperer.data, "--accept-loss") as server:
        server.error_with("is given up for lost; the last that was acknowledged is notification")
        assert whisperer.json("agents") == []


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process can be set on Linux only")
def test_a_disk_that_takes_no_more_ends_the_server_with_a_sentence(whisperer: Whisperer) -> None:
    with serving(whisperer.data) as server:
        whisperer.ok("agents", "create", "ann")
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        whisperer("tasks", "send", "ann", "x" * 10_000)
        ended = server.ended()
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.splitlines()[-1].startswith("whisperer: A commit failed")
        assert "Traceback" not in ended.err


def test_the_address_can_be_had_as_json_of_a_server_that_has_room_for_all_its_clients(tmp_path: Path) -> None:
    server = Process("serve", "--port", "0", "--json", "--model", "scripted", folder=tmp_path)
    try:
        ready = json.loads(server.line())
        assert ready["ready"] == f"{ready['url']}/?token={ready['token']}"
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        assert resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)[0] >= min(2_500, hard)
        server.signal(signal.SIGTERM)
        assert server.ended().code == 0
    finally:
        server.process.kill()


@pytest.fixture
def taken_port() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield str(listening.getsockname()[1])


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--token", "with blank"], "invalid_settings", "The setting token is wrong (flag --token)"),
        (["--port", "x"], "invalid_settings", "a whole number from 0 to 65535"),
        (["--host", "192.0.2.1"], "invalid_settings", "needs TLS"),
        (["--tls-key", "nix.pem"], "invalid_settings", "Set both or neither."),
        (["--tls-key", "nix.pem", "--tls-certificate", "nix.pem"], "invalid_settings", "The TLS certificate"),
        (["--model", "nonsense:x"], "model_name", "There is no model 'nonsense:x'."),
        (["--model", "openai-chat:x"], "model_name", "Set OPENAI_API_KEY"),
        (["--model", "scripted:nix.yaml"], "model_name", "nix.yaml"),
    ],
)
def test_a_server_that_cannot_start_says_why_in_one_sentence(
    whisperer: Whisperer, monkeypatch: pytest.MonkeyPatch, flags: list[str], code: str, words: str
) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    told = whisperer("serve", "--port", "0", *flags)
    assert (told.code, told.out) == (1, "")
    (line,) = told.err.splitlines()
    assert line.startswith("whisperer: ")
    assert words in line
    in_json = whisperer("serve", "--port", "0", *flags, "--json")
    assert (in_json.code, in_json.out, in_json.error["code"]) == (1, "", code)


def test_a_port_that_is_taken_is_named(whisperer: Whisperer, taken_port: str) -> None:
    told = whisperer("serve", "--port", taken_port, "--model", "scripted")
    assert (told.code, told.out) == (1, "")
    assert told.err.startswith(f"whisperer: Port {taken_port} on 127.0.0.1 cannot be used")


def test_a_folder_that_another_server_has_open_is_refused(whisperer: Whisperer) -> None:
    with serving(whisperer.data) as server:
        told = whisperer("serve", "--port", "0", "--model", "scripted")
        assert (told.code, told.out) == (1, "")
        assert f"A server (process {server.process.pid}) serves the data folder" in told.err
        assert "Traceback" not in told.err

"""`whisperer run`: one task or one workflow, and away."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ai_whisperer.cli.calling import Serving
from ai_whisperer.cli.commands.run import run as run_command
from ai_whisperer.cli.main import main
from ai_whisperer.cli.output import Output
from ai_whisperer.client import Client
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.errors import DefinitionError, StateError
from ai_whisperer.server.address import find_address
from ai_whisperer.server.serving import running
from ai_whisperer.setting_sources import load_settings
from ai_whisperer.settings import Settings
from ai_whisperer.store.sqlite import SqliteStore
from tests.acceptance.command_stage import Process, serving
from tests.acceptance.command_stage import run as run_to_end
from tests.acceptance.command_stage import running as running_command

RULES = r"""
rules:
  - {prompt_match: fail, failure: refused}
  - {prompt_match: wait a bit, latency_seconds: 60, text: never}
  - {prompt_match: slowly, latency_seconds: 60, text: never}
  - {prompt_match: nasty, text: "[red]red[/red] \e[2J\u202e"}
  - {prompt_match: look first, turn: 0, text: Let me look., reasoning: I wonder., tools: [{name: list_agents}]}
  - {prompt_match: go on, turn: 0, text: '{"final": "One.", "continue": true}'}
  - {text: "one two three four", chunk_characters: 4}
"""


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("run")
    (made / "rules.yaml").write_text(RULES, encoding="utf-8")
    return made


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def ran(*arguments: str, model: str = f"scripted:{folder / 'rules.yaml'}") -> Ran:
        code = main(["run", "--data", str(folder / "data"), "--model", model, *arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return ran


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Output, "is_terminal", True)


def test_the_answer_is_all_that_goes_to_the_standard_output(run: Run) -> None:
    ran = run("alice", "Hello")
    assert (ran.code, ran.out) == (0, "one two three four\n")
    assert "The model is scripted:" in ran.err
    assert "alice" in ran.err


def test_each_run_is_a_conversation_of_its_own(run: Run) -> None:
    first, second = (json.loads(run("alice", "Hello", "--json").out)["task"] for _ in range(2))
    assert first["threadId"] != second["threadId"]
    assert first["agentId"] == second["agentId"] == "alice"


@pytest.mark.usefixtures("terminal")
def test_on_a_terminal_the_answer_is_shown_once_as_it_is_streamed(run: Run) -> None:
    assert run("alice", "Hello").out == "one two three four\n"


@pytest.mark.usefixtures("terminal")
def test_what_turns_out_not_to_be_the_answer_is_followed_by_it(run: Run) -> None:
    ran = run("alice", "look first")
    assert ran.out == "Let me look.\none two three four\n"
    assert "alice      used list_agents" in ran.err


def test_a_pipe_gets_the_answer_and_nothing_that_looked_like_it(run: Run) -> None:
    assert run("alice", "look first").out == "one two three four\n"


@pytest.mark.parametrize("asked", [True, False])
def test_the_reasoning_is_shown_only_if_it_is_asked_for(run: Run, *, asked: bool) -> None:
    ran = run("alice", "look first", *(["--analysis"] if asked else []))
    assert ("I wonder." in ran.err) == asked
    assert "I wonder." not in ran.out


@pytest.mark.usefixtures("terminal")
def test_an_answer_that_is_continued_is_shown_whole_and_once(run: Run) -> None:
    assert run("alice", "go on").out == "One.\none two three four\n"


def test_one_json_document_tells_it_all(run: Run) -> None:
    ran = run("alice", "Hello", "--json")
    told = json.loads(ran.out)
    assert (ran.code, ran.err) == (0, "")
    assert told["answer"] == told["task"]["result"]["final"] == "one two three four"
    assert told["task"]["state"] == "completed"
    assert told["task"]["usage"]["outputTokens"] > 0


@pytest.mark.usefixtures("terminal")
def test_nothing_that_a_model_writes_is_markup_or_steers_the_terminal(run: Run) -> None:
    assert run("alice", "nasty").out == "[red]red[/red] \\x1b[2J\\u202e\n"


def test_a_task_that_fails_leaves_with_1_and_the_reason(run: Run) -> None:
    ran = run("alice", "fail")
    assert (ran.code, ran.out) == (1, "")
    assert re.search(r"whisperer: Task \S+ of alice ended as failed: Rule 1 of the scripted model", ran.err)
    as_json = run("alice", "fail", "--json")
    assert (as_json.code, json.loads(as_json.err)["error"]["code"]) == (1, "task_ended")
    assert json.loads(as_json.out)["task"]["error"]["code"] == "model_refused"


def test_a_task_that_takes_too_long_leaves_with_1(run: Run) -> None:
    ran = run("alice", "slowly", "--timeout", "0.2")
    assert ran.code == 1
    assert " of alice ended as failed: " in ran.err


def test_an_unknown_name_is_told_what_there_is(run: Run) -> None:
    ran = run("alise", "Hello")
    assert (ran.code, ran.out) == (1, "")
    last = ran.err.splitlines()[-1]
    assert "Did you mean 'alice'?" in last
    assert "Agents: " in last
    assert "Workflows: parallel-report, monitoring, decomposition, switch." in last


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Name a template or a workflow"),
        (["alice"], "Say what 'alice' should do."),
        (["parallel-raport"], "Did you mean 'parallel-report'?"),
    ],
)
def test_what_is_missing_on_the_line_is_asked_for(run: Run, arguments: list[str], words: str) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert words in line


def test_the_list_has_templates_and_workflows_and_starts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--list", "--json", "--data", str(tmp_path / "none")]) == 0
    kinds = {entry["name"]: entry["kind"] for entry in json.loads(capsys.readouterr().out)}
    assert kinds["decomposition"] == "workflow"
    assert kinds["alice"] == "template (built-in)"
    assert not (tmp_path / "none").exists()


def test_a_workflow_runs_in_a_session_of_its_own(run: Run) -> None:
    ran = run("switch", "--json", model="scripted")
    told = json.loads(ran.out)
    assert (ran.code, told["workflow"]) == (0, "switch")
    assert told["answer"].startswith("Debbie answered: Nobody is stuck.")
    assert told["sessionId"] != "default"
    assert {task["agentId"] for task in told["tasks"]} == {"alice", "debbie"}


def test_a_workflow_of_which_nothing_comes_leaves_with_1(run: Run) -> None:
    ran = run("monitoring", "Hello")
    assert ran.code == 1
    assert "The workflow 'monitoring' produced no result." in ran.err


def call_of(data: Path, **flags: str) -> Serving:
    given = {"data": str(data), **flags}
    return Serving(load_settings(given, environment={}, folder=data), Output(as_json=False))


def with_server(data: Path, body: Callable[[Client], Any]) -> None:
    async def scenario() -> None:
        async with running(Settings(data=data, port=0)) as server, Client(server.address.page) as client:
            await body(client)

    asyncio.run(scenario())


def test_the_server_that_runs_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def body(client: Client) -> None:
        assert await run_command(call_of(tmp_path), "tessa", "Hello") == 0
        (tessa,) = await client.list_agents()
        assert (tessa.agent_id, tessa.tasks) == ("tessa", 1)

    with_server(tmp_path, body)
    assert capsys.readouterr().out == "[scripted model] No rule matches: Hello\n"


@pytest.mark.parametrize(("state", "way_out"), [("pause", "resume"), ("stop", "start"), ("sleep", "wake")])
def test_an_agent_that_takes_no_work_is_told_of_with_the_way_out(tmp_path: Path, state: str, way_out: str) -> None:
    async def body(client: Client) -> None:
        await client.create_agent("tessa")
        change = {"pause": client.pause_agent, "stop": client.stop_agent}.get(state)
        await (change("tessa") if change else client.sleep_agent("tessa", duration_seconds=60))
        with pytest.raises(StateError, match=f"whisperer {way_out} tessa"):
            await run_command(call_of(tmp_path), "tessa", "Hello")
        assert await client.list_tasks() == []

    with_server(tmp_path, body)


def test_a_run_whose_agent_is_paused_tells_the_way_out(slowly: Process, tmp_path: Path) -> None:
    assert run_to_end("pause", "alice", "--reason", "lunch", "--data", str(tmp_path)).code == 0
    slowly.error_with("was paused: lunch")
    slowly.error_with("To resume it: whisperer resume alice")


def test_a_model_cannot_be_named_for_an_agent_that_has_one(tmp_path: Path) -> None:
    async def body(client: Client) -> None:
        await client.create_agent("tessa")
        with pytest.raises(StateError, match="keeps its model"):
            await run_command(call_of(tmp_path, model="scripted:demo"), "tessa", "Hello")

    with_server(tmp_path, body)


def test_a_workflow_says_that_the_server_lacks_its_tools(tmp_path: Path) -> None:
    async def body(_: Client) -> None:
        with pytest.raises(DefinitionError, match=r"lacks what the workflow 'parallel-report' needs \(read_feedback\)"):
            await run_command(call_of(tmp_path), "parallel-report")

    with_server(tmp_path, body)


@pytest.fixture
def slowly(folder: Path, tmp_path: Path) -> Iterator[Process]:
    """A run whose task has begun and takes long."""
    arguments = ["run", "alice", "slowly", "--data", str(tmp_path), "--model", f"scripted:{folder / 'rules.yaml'}"]
    with running_command(*arguments, folder=tmp_path, environment={"WHISPERER_SHUTDOWN_GRACE_SECONDS": "0"}) as process:
        process.error_with("started a task")
        yield process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_the_task(slowly: Process, tmp_path: Path, number: signal.Signals) -> None:
    slowly.signal(number)
    ended = slowly.ended()
    assert (ended.code, ended.err.splitlines()[-1]) == (128 + number, "It was cancelled.")
    assert asyncio.run(states_in(tmp_path)) == [TaskState.CANCELLED]


def test_whoever_asks_twice_has_the_run_leave_at_once(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with running_command("run", "alice", "Work eternally", "--data", str(tmp_path), folder=tmp_path) as process:
            process.error_with("started a task")
            server.signal(signal.SIGSTOP)  # nobody answers the request to cancel
            process.signal(signal.SIGINT)
            process.error_with("A second signal ends it at once.")
            process.signal(signal.SIGINT)
            assert process.ended().code == 130
        server.signal(signal.SIGCONT)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process can be set on Linux only")
def test_a_store_that_stops_ends_the_run_with_a_sentence(slowly: Process, tmp_path: Path) -> None:
    address = find_address(tmp_path)
    assert address is not None
    resource.prlimit(slowly.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    run_to_end("mail", "send", "alice", "Hello", "x" * 10_000, "--data", str(tmp_path))
    ended = slowly.ended()
    assert (ended.code, ended.err.splitlines()[-1].startswith("whisperer: A commit failed")) == (1, True)


def test_a_run_outlives_the_run_whose_server_it_uses(slowly: Process, tmp_path: Path) -> None:
    with running_command("run", "tessa", "wait a bit", "--data", str(tmp_path), folder=tmp_path) as other:
        other.error_with("started a task")
        slowly.signal(signal.SIGINT)
        assert slowly.ended().code == 130
        answer = other.line()
        assert answer.startswith("[scripted model] I play fixed answers")
        assert "whisperer run --list" in answer
        assert other.ended().code == 0


def test_what_a_run_that_was_killed_left_unfinished_is_told_by_the_next(
    slowly: Process, folder: Path, tmp_path: Path
) -> None:
    slowly.signal(signal.SIGKILL)
    slowly.process.wait()
    model = f"scripted:{folder / 'rules.yaml'}"
    ran = run_to_end("run", "tessa", "hello", "--data", str(tmp_path), "--model", model)
    assert ran.code == 0
    assert "an earlier command left unfinished continue now: 1 of alice (session default). See" in ran.err


async def states_in(data: Path) -> list[TaskState]:
    store = SqliteStore.open(data)
    try:
        return [task.state for task in await store.tasks("default", limit=10)]
    finally:
        store.abandon()

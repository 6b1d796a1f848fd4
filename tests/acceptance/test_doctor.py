"""`whisperer doctor`: what it finds, what it advises, how it leaves."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from ai_whisperer.cli.doctor import folder, machine, mcp, models, sandbox
from ai_whisperer.cli.doctor.asking import Watch, ask_model
from ai_whisperer.cli.doctor.findings import Finding, Level
from ai_whisperer.cli.main import main
from ai_whisperer.client import Client
from ai_whisperer.domain.conversation import Answer, Usage
from ai_whisperer.errors import WhispererError
from ai_whisperer.mcp_config import mcp_servers_from
from ai_whisperer.models.base import Finished, TextDelta
from ai_whisperer.models.detection import KEYS, LLAMACPP, LMSTUDIO, SERVERS, detect_model
from ai_whisperer.sandbox.probing import Probe
from ai_whisperer.server.serving import RunningServer, running
from ai_whisperer.setting_sources import load_settings
from ai_whisperer.settings import Settings
from ai_whisperer.store.moved import Moved, mark_moved
from ai_whisperer.store.sqlite import SqliteStore
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from ai_whisperer.store.sqlite.opening import latest_version
from ai_whisperer.templates.library import TemplateLibrary
from ai_whisperer.testing.model_server import Call, ModelServer, Reply

KEY = "sk-canary-0123456789abcdef"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without keys, on a machine without an Ollama."""
    for name in (name for names in (*KEYS.values(), *SERVERS.values()) for name in names):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("ai_whisperer.cli.model_choice.detect_model", partial(detect_model, usual_addresses={}))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A data folder that a store has left behind."""

    async def make() -> None:
        await SqliteStore.open(tmp_path).close()

    asyncio.run(make())
    return tmp_path


def serving(data: Path, look: Callable[[RunningServer], Any], *, model: str | None = None) -> Any:
    """What there is to see while a server runs in the folder."""

    async def scenario() -> Any:
        async with running(Settings(data=data, port=0, model=model)) as server:
            return await asyncio.to_thread(look, server)

    return asyncio.run(scenario())


@pytest.mark.usefixtures("bare")
def test_on_a_new_machine_all_is_well_and_the_scripted_model_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--data", str(tmp_path / "new"), "--port", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith(("ok ", "warning ", " ")) for line in lines)
    (told,) = (line for line in lines if line.startswith("warning") and not re.search("Sandbox|User", line))
    assert "scripted:demo (the environment has no key and no model server)" in told
    assert any("Sandbox: rlimits" in line for line in lines)
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("bare")
def test_the_model_is_that_of_the_server_that_runs_unless_another_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def look(server: RunningServer) -> list[str]:
        told = []
        for more in ([], ["--model", "scripted:demo"]):
            assert main(["doctor", "--json", "--data", str(tmp_path), "--port", "0", *more]) == 0
            checks = json.loads(capsys.readouterr().out)["checks"]
            told += [each["found"] for each in checks if each["check"] == "Model"]
        return [*told, server.address.url]

    told, named, url = serving(tmp_path, look, model="vllm:mine")
    assert told == f"vllm:mine (the model of the server at {url})"
    assert named.startswith("scripted:demo")


@pytest.mark.usefixtures("bare")
def test_a_server_that_does_not_answer_is_a_warning_and_the_doctor_goes_on(tmp_path: Path) -> None:
    def look(_: RunningServer) -> models.Chosen | None:
        found = {"url": "http://127.0.0.1:9", "token": "t", "pid": os.getpid()}
        (tmp_path / "server.json").write_text(json.dumps(found))
        return models.check_server(tmp_path)

    model, (finding,) = serving(tmp_path, look)
    assert (model, finding.level) == (None, Level.WARNING)
    assert "127.0.0.1:9 is unknown: the server does not answer" in finding.found
    assert models.check_server(tmp_path) is None


@pytest.mark.usefixtures("bare")
def test_a_problem_leaves_with_1_and_tells_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "bad.md").write_text("---\nname: bad\nlimits: 5\n---\n", encoding="utf-8")
    arguments = ["doctor", "--data", str(tmp_path), "--port", "0", "--templates", str(tmp_path / "agents")]
    assert main(arguments) == 1
    out = capsys.readouterr().out
    assert f"problem  Templates:    '{tmp_path / 'agents' / 'bad.md'}' cannot be used" in out
    assert "line 3" in out


@pytest.mark.usefixtures("bare")
def test_programs_get_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert main(["doctor", "--data", str(tmp_path), "--port", "0", "--json"]) == 0
    out = capsys.readouterr().out
    told = json.loads(out)
    assert told["ok"] is True
    assert {"check": "Keys", "level": "ok", "found": "set: OPENAI_API_KEY", "advice": ""} in told["checks"]
    assert KEY not in out


def test_versions_that_are_too_old_are_problems() -> None:
    assert machine.check_python().level is Level.OK
    assert machine.check_python((3, 10, 9)).level is Level.PROBLEM
    assert machine.check_sqlite().level is Level.OK
    assert machine.check_sqlite("3.40.1").level is Level.PROBLEM


def test_a_disk_that_fills_up_is_told_of_before_it_is_full(tmp_path: Path) -> None:
    levels = [machine.check_disk(tmp_path / "new", free_bytes=free << 20).level for free in (50, 500, 5000)]
    assert levels == [Level.PROBLEM, Level.WARNING, Level.OK]


def test_a_clock_behind_the_database_is_told_of(old: Path) -> None:
    database = old / DATABASE_NAME
    assert machine.check_time(database).level is Level.OK
    behind = machine.check_time(database, now=time.time() - 3600)
    assert behind.level is Level.WARNING
    assert "3600 s after that" in behind.found
    assert machine.check_time(database, zone="No/Where").level is Level.PROBLEM


def test_each_sandbox_is_told_with_whether_it_holds_and_which_is_used() -> None:
    def probes(**holds: bool) -> list[Probe]:
        return [
            Probe(level=level, runs=held, reason="" if held else "It is not there.") for level, held in holds.items()
        ]

    all_hold = sandbox.check_sandbox("auto", probes(namespaces=True, bubblewrap=True, rlimits=True))
    assert all_hold[0].found.startswith("namespaces contains")
    second = sandbox.check_sandbox("auto", probes(namespaces=False, bubblewrap=True, rlimits=True))
    assert second[0].found.startswith("bubblewrap contains")
    assert "It is not there." in second[1].found
    none = sandbox.check_sandbox("auto", probes(namespaces=False, bubblewrap=False, rlimits=True))
    assert none[0].level is Level.WARNING
    assert "refused" in none[0].found
    weak = Probe(level="rlimits", ways_out=("read the token",), reason="1 of 2 escape attempts succeed: …")
    weakest = sandbox.check_sandbox("rlimits", [*probes(namespaces=True), weak])
    assert weakest[0].level is Level.WARNING
    assert "rlimits (as set) does not contain programs: 1 of 2 escape attempts succeed" in weakest[0].found


def test_a_server_that_root_would_run_is_told_of() -> None:
    assert sandbox.check_user(is_root=True).level is Level.WARNING
    assert "--user NAME" in sandbox.check_user(is_root=True).advice
    assert sandbox.check_user(is_root=False).level is Level.OK


def test_a_folder_and_its_database_are_looked_at_and_left_alone(old: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in old.iterdir()}
    assert "nobody uses it now" in folder.check_folder(old).found
    assert folder.check_database(old).found.startswith("intact, version ")
    assert {path.name: path.stat().st_mtime_ns for path in old.iterdir() if path.name in before} == before


def test_a_folder_in_use_is_told_with_its_server(tmp_path: Path) -> None:
    def look(server: RunningServer) -> tuple[Finding, Finding, str]:
        return folder.check_folder(tmp_path), folder.check_database(tmp_path), server.address.url

    used, database, url = serving(tmp_path, look)
    assert (used.level, database.level) == (Level.OK, Level.OK)
    assert f"whose server is at {url}" in used.found
    assert "open in the process that uses the folder" in database.found


def test_a_folder_that_cannot_be_used_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert folder.check_folder(Path("/proc/whisperer")).level is Level.PROBLEM
    assert folder.check_folder(tmp_path / "file").level is Level.PROBLEM
    assert folder.check_folder(tmp_path / "file" / "below").level is Level.PROBLEM


def test_a_token_that_others_may_read_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "token").touch(mode=0o644)
    found = folder.check_folder(tmp_path)
    assert (found.level, found.advice) == (Level.WARNING, f"chmod 600 '{tmp_path / 'token'}'")


def test_a_folder_whose_sessions_were_copied_elsewhere_is_a_problem(tmp_path: Path) -> None:
    mark_moved(tmp_path, Moved(address="postgresql://db.example/agents", at=1.0))
    found = folder.check_database(tmp_path)
    assert found.level is Level.PROBLEM
    assert "were copied to postgresql://db.example/agents on 1970-01-01" in found.advice
    assert "--store" in found.advice


def test_a_database_that_is_none_or_too_new_is_a_problem(tmp_path: Path) -> None:
    database = tmp_path / DATABASE_NAME
    assert folder.check_database(tmp_path).level is Level.OK
    database.write_bytes(b"not a database at all, but long enough to be looked at as one" * 100)
    assert folder.check_database(tmp_path).level is Level.PROBLEM
    database.unlink()
    asyncio.run(age(tmp_path, version=9999))
    found = folder.check_database(tmp_path)
    assert (found.level, "version 9999" in found.advice) == (Level.PROBLEM, True)


def test_a_database_that_is_gone_is_a_problem_with_what_to_do(tmp_path: Path) -> None:
    asyncio.run(age(tmp_path, version=latest_version()))
    (tmp_path / DATABASE_NAME).unlink()
    found = folder.check_database(tmp_path)
    assert found.level is Level.PROBLEM
    assert "--accept-loss" in found.advice


async def age(data: Path, *, version: int) -> None:
    await SqliteStore.open(data).close()
    connection = apsw.Connection(str(data / DATABASE_NAME))
    connection.execute(f"PRAGMA user_version={version}")
    connection.close()


def test_a_port_is_free_or_ours_or_taken(tmp_path: Path) -> None:
    def look(server: RunningServer) -> tuple[Finding, Finding]:
        port = int(server.address.url.rpartition(":")[2])
        ours = folder.check_port(Settings(data=tmp_path, port=port))
        return ours, folder.check_port(Settings(data=tmp_path / "other", port=port))

    ours, of_others = serving(tmp_path, look)
    assert (ours.level, of_others.level) == (Level.OK, Level.PROBLEM)
    assert "the server of this data folder answers" in ours.found
    assert "a server of another data folder answers" in of_others.found
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert folder.check_port(Settings(data=tmp_path, port=port)).level is Level.PROBLEM
    assert folder.check_port(Settings(data=tmp_path, port=port)).level is Level.OK


def test_what_answers_no_http_is_something_else(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as strange:

        def answer() -> None:
            taken, _ = strange.accept()
            taken.sendall(b"220 mail.example.org ESMTP\r\n")
            taken.close()

        answering = threading.Thread(target=answer)
        answering.start()
        found = folder.check_port(Settings(data=tmp_path, port=strange.getsockname()[1]))
        answering.join()
    assert (found.level, "cannot be used" in found.found) == (Level.PROBLEM, True)


def test_what_may_not_be_looked_at_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "stat", refused)
    assert not machine.is_there(tmp_path)
    assert machine.nearest_existing(tmp_path) == Path("/")


def test_templates_are_counted() -> None:
    (found,) = folder.check_templates(TemplateLibrary.standard(project="/none", user="/none"))
    assert found == Finding(check="Templates", level=Level.OK, found="12 can be used")


@pytest.mark.parametrize(
    ("model", "advice"), [("nonsense", "There is no model"), ("openrouter:x", "Set OPENROUTER_API_KEY")]
)
def test_a_named_model_that_cannot_be_used_is_a_problem(tmp_path: Path, model: str, advice: str) -> None:
    settings = load_settings({"model": model}, environment={}, folder=tmp_path)
    chosen = models.check_choice(settings, {})
    (found,) = chosen.findings
    assert (chosen.model, found.level) == (None, Level.PROBLEM)
    assert advice in found.advice


def test_a_choice_that_was_passed_over_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.genai", None)
    settings = load_settings({}, environment={}, folder=tmp_path)
    chosen = models.check_choice(settings, {"GOOGLE_API_KEY": KEY, "OPENROUTER_API_KEY": KEY})
    assert [found.level for found in chosen.findings] == [Level.WARNING, Level.OK]
    assert "pip install" in chosen.findings[0].found


def asked(monkeypatch: pytest.MonkeyPatch, reply: Reply) -> list[Finding]:
    """What the doctor finds when it asks a model whose server replies so."""

    async def ask() -> list[Finding]:
        async with ModelServer(lambda *_: reply) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", KEY)
            found = await asyncio.to_thread(ask_model, "openai-chat:mine")
            assert [each["function"]["name"] for each in server.received[-1].body["tools"]] == ["add"]
            return found

    for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(proxy, raising=False)
    return asyncio.run(ask())


def test_a_model_that_is_asked_tells_how_fast_it_is_and_calls_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call("add", '{"a": 17, "b": 25}')
    answered, called = asked(monkeypatch, Reply(tool_calls=(call,), input_tokens=90, output_tokens=20))
    assert (answered.level, called.level) == (Level.OK, Level.OK)
    words = (
        r"openai-chat:mine answered after \d+\.\d s, the first token after \d+\.\d\d s(, [\d,]+ tokens a second)?; "
        "90 tokens in, 20 out"
    )
    assert re.fullmatch(words, answered.found), answered.found
    assert called.found == "it called the tool as it should"


def test_the_speed_of_an_answer_is_counted_from_its_first_token() -> None:
    times = iter([10.0, 12.5, 14.5])
    watch = Watch(lambda: next(times))
    for event in (TextDelta(text="a"), TextDelta(text="b"), Finished()):
        watch.see(event)
    told = watch.told(Answer(text="ab", usage=Usage(input_tokens=1_200, output_tokens=41)))
    assert told == "4.5 s, the first token after 2.50 s, 20 tokens a second; 1,200 tokens in, 41 out"


@pytest.mark.parametrize(
    ("reply", "level", "words"),
    [
        (Reply(text='{"name": "add", "arguments": {"a": 17, "b": 25}}'), Level.WARNING, "wrote the call as text"),
        (Reply(tool_calls=(Call("functions.add", '{"a": 17, "b": "25"}'),)), Level.WARNING, "had to be repaired"),
        (Reply(text="The sum is 42."), Level.PROBLEM, "it wrote: The sum is 42."),
        (Reply(tool_calls=(Call("add", '{"a": 1, "b": 25}'),)), Level.PROBLEM, "did not do it rightly; it wrote: add"),
        (Reply(tool_calls=(Call("multiply", "{"),)), Level.PROBLEM, "it wrote: multiply {"),
    ],
)
def test_a_model_that_does_not_call_its_tool_as_it_should_is_told_of(
    monkeypatch: pytest.MonkeyPatch, reply: Reply, level: Level, words: str
) -> None:
    answered, called = asked(monkeypatch, reply)
    assert (answered.level, called.level) == (Level.OK, level)
    assert words in called.found
    assert called.advice


def test_a_model_that_refuses_is_a_problem_without_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    (refused,) = asked(monkeypatch, Reply(status=401, error=f"bad key {KEY}"))
    assert refused.level is Level.PROBLEM
    assert "refused the key" in refused.advice
    assert KEY not in refused.advice


@pytest.mark.usefixtures("bare")
def test_the_mcp_servers_of_a_server_that_runs_are_told_once_somebody_needed_them(tmp_path: Path) -> None:
    servers = {"gone": {"command": "false"}, "unused": {"command": "false"}}

    async def scenario() -> list[Finding]:
        settings = Settings(data=tmp_path, port=0, model="scripted", mcp=mcp_servers_from(servers, folder=tmp_path))
        async with running(settings) as server:
            async with Client(server.address.url, server.address.token, reconnect_seconds=0) as client:
                with pytest.raises(WhispererError):
                    await client.start_mcp_server("gone")
            return await asyncio.to_thread(lambda: list(mcp.check_running_mcp(tmp_path, "default")))

    [found] = asyncio.run(scenario())
    assert found.level is Level.WARNING
    assert found.found.startswith("gone: failed in the session 'default'; it is tried again ")
    assert "it ended with the code 1" in found.found
    assert list(mcp.check_running_mcp(tmp_path, "default")) == []


@pytest.mark.usefixtures("bare")
def test_a_scripted_model_has_no_tool_to_call() -> None:
    (answered,) = ask_model("scripted:demo")
    assert answered.level is Level.OK


@pytest.mark.usefixtures("bare")
def test_servers_that_answer_at_their_usual_ports_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def look() -> Sequence[Finding]:
        async with ModelServer(models=["qwen3-4b"]) as server:
            usual = {LLAMACPP: server.base_url, LMSTUDIO: server.base_url}
            monkeypatch.setattr(
                "ai_whisperer.cli.model_choice.detect_model", partial(detect_model, usual_addresses=usual)
            )
            settings = load_settings({}, environment={}, folder=tmp_path)
            return (await asyncio.to_thread(models.check_choice, settings, {})).findings

    taken, other = asyncio.run(look())
    assert taken.found.startswith("llamacpp:qwen3-4b (a llama.cpp server answers at http://127.0.0.1:")
    assert other.found.startswith("--model lmstudio:qwen3-4b would do too (LM Studio answers at http://127.0.0.1:")
    assert {taken.level, other.level} == {Level.OK}


def test_whoever_asks_about_the_model_is_only_warned_of_a_port_that_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        arguments = ["doctor", "--json", "--model", "scripted", "--port", port]
        main(arguments)
        before = {each["check"]: each["level"] for each in json.loads(capsys.readouterr().out)["checks"]}
        main([*arguments, "--ask"])
        after = {each["check"]: each["level"] for each in json.loads(capsys.readouterr().out)["checks"]}
    assert (before["Port"], after["Port"]) == ("problem", "warning")

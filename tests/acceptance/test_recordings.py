"""`whisperer record` and `whisperer replay` of a recording, on a folder whose server runs and on one at rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.cli.main import main
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.forks import Fork
from ai_whisperer.replay.recording import read_recording
from tests.acceptance.command_stage import Ran, Whisperer

Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs a command in this process."""

    def ran(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(list(arguments))
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return ran


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which an agent has done two tasks; no server has it."""
    folder = tmp_path_factory.mktemp("folder")

    async def work() -> None:
        async with AsyncAgentSessionManager(folder, model="scripted", templates=()) as manager:
            await manager.create_agent("ann", {"prompt": "You are Ann.", "model": "scripted"})
            await manager.run_task("ann", "hello")
            await manager.run_task("ann", "and again")

    asyncio.run(work())
    return folder


@pytest.fixture(scope="module")
def recording(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("recordings") / "team.wrec"
    assert main(["record", "default", "--data", str(folder), "-o", str(file)]) == 0
    return file


def test_a_session_is_recorded_and_played(recording: Path, run: Run) -> None:
    ran = run("replay", str(recording))
    assert (ran.code, ran.err) == (0, ""), ran
    assert ran.out.startswith(f"ok      {recording}: 2 steps, ")


def test_a_session_of_a_running_server_is_recorded_and_the_server_is_left_alone(
    whisperer: Whisperer, tmp_path: Path, run: Run
) -> None:
    whisperer.ok("agents", "create", "recorded", "--config", '{"prompt": "p"}')
    whisperer.ok("tasks", "send", "recorded", "hello", "--id", "recorded-task")
    whisperer.ok("tasks", "wait", "recorded-task")
    file = tmp_path / "team.wrec"
    ran = run("record", "default", "--data", str(whisperer.data), "-o", str(file), "--json")
    assert ran.json["recording"] == str(file)
    assert any(agent.id == "recorded" for agent in read_recording(file).agents)


def test_a_session_that_no_server_lists_is_recorded_and_its_folder_left_alone(
    folder: Path, tmp_path: Path, run: Run
) -> None:
    def contents() -> dict[str, bytes]:
        """Without what SQLite has beside a database that is read."""
        found = (each for each in folder.iterdir() if each.is_file() and not each.name.endswith(("-shm", "-wal")))
        return {each.name: each.read_bytes() for each in found}

    before = contents()
    assert run("record", "default", "--data", str(folder), "-o", str(tmp_path / "team.wrec")).code == 0
    assert (
        "There is no session 'other'. There are: default"
        in run("record", "other", "--data", str(folder), "-o", str(tmp_path / "other.wrec")).err
    )
    assert contents() == before


def test_a_difference_ends_with_1_and_is_told_to_people_and_programs(recording: Path, tmp_path: Path, run: Run) -> None:
    agents = tmp_path / "agents"
    agents.mkdir()
    (agents / "ann.md").write_text("---\nname: ann\nmodel: scripted\n---\nYou are Anna.\n", encoding="utf-8")
    flags = ("--agents", "live", "--templates", str(agents))
    xml = tmp_path / "out.xml"
    ran = run("replay", str(recording), *flags, "--junit", str(xml))
    assert ran.code == 1
    assert f"FAILED  {recording}: ann, task 1, request 1: the system prompt differs" in ran.out
    assert "-You are Ann.\n+You are Anna." in ran.out
    (case,) = ET.fromstring(xml.read_text(encoding="utf-8"))[0]  # noqa: S314 - it is our own
    assert case[0].tag == "failure"
    (told,) = run("replay", str(recording), *flags, "--json").json
    assert (told["ok"], told["difference"]["kind"], told["difference"]["key"]) == (False, "request", "2>ann/1")
    assert run("replay", str(recording), *flags, "--ignore", "system").code == 0


def test_one_that_cannot_be_read_does_not_keep_the_others_from_being_played(
    recording: Path, tmp_path: Path, run: Run
) -> None:
    cut, other, newer = tmp_path / "cut.wrec", tmp_path / "other.wrec", tmp_path / "newer.wrec"
    cut.write_bytes(recording.read_bytes()[:2000])
    other.write_bytes(b"no recording")
    newer.write_bytes(recording.read_bytes().replace(b'"format":1', b'"format":99', 1))
    files = [str(each) for each in (cut, other, recording, newer)]
    xml = tmp_path / "out.xml"
    ran = run("replay", *files, "--junit", str(xml))
    assert (ran.code, ran.err) == (1, "")
    lines = ran.out.splitlines()
    assert lines[0].startswith(f"FAILED  {cut}: ") and "ends before its end" in lines[0]  # noqa: PT018
    assert lines[1].startswith(f"FAILED  {other}: ") and "is not a recording" in lines[1]  # noqa: PT018
    assert lines[2].startswith(f"ok      {recording}: 2 steps, ")
    assert lines[3].startswith(f"FAILED  {newer}: ") and "Update AI Whisperer" in lines[3]  # noqa: PT018
    assert lines[4:] == ["1 of 4 recordings played as expected."]
    suites = ET.fromstring(xml.read_text(encoding="utf-8"))  # noqa: S314 - it is our own
    assert [suite.get("failures") for suite in suites] == ["1", "1", "0", "1"]
    told = run("replay", *files, "--json").json
    assert [each["ok"] for each in told] == [False, False, True, False]
    assert "ends before its end" in told[0]["error"]


def test_an_update_rewrites_the_recording(recording: Path, tmp_path: Path, run: Run) -> None:
    agents = tmp_path / "agents"
    agents.mkdir()
    (agents / "ann.md").write_text("---\nname: ann\nmodel: scripted\n---\nYou are Anna.\n", encoding="utf-8")
    copy = tmp_path / "copy.wrec"
    copy.write_bytes(recording.read_bytes())
    flags = ("--agents", "live", "--templates", str(agents))
    ran = run("replay", str(copy), *flags, "--update")
    assert (ran.code, "rewritten" in ran.out) == (0, True)
    assert run("replay", str(copy)).code == 0
    assert read_recording(copy).agents[0].definition.prompt == "You are Anna."


def test_an_update_is_redacted(recording: Path, tmp_path: Path, run: Run) -> None:
    secret = "sk-" + "a1" * 12
    agents = tmp_path / "agents"
    agents.mkdir()
    (agents / "ann.md").write_text(f"---\nname: ann\nmodel: scripted\n---\nThe key is {secret}.\n", encoding="utf-8")
    copy = tmp_path / "copy.wrec"
    copy.write_bytes(recording.read_bytes())
    assert run("replay", str(copy), "--agents", "live", "--templates", str(agents), "--update").code == 0
    assert secret not in copy.read_text(encoding="utf-8")
    assert read_recording(copy).agents[0].definition.prompt == "The key is [secret]."
    assert run("replay", str(copy)).code == 0


TOOL = """from ai_whisperer import tool


@tool
def {name}(amount: int) -> str:
    \"\"\"Pay somebody.\"\"\"
    return "paid"
"""


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("", "is not there now: pay"),
        (TOOL.format(name="pay_out"), "is not there now: pay"),
        (TOOL.format(name="pay") + TOOL.format(name="take_back"), "the tools differ"),
        ("this is no Python", "Not all tools of the project can be used"),
    ],
)
def test_tools_of_the_project_that_are_gone_renamed_new_or_broken_are_told(
    file: str, told: str, folder: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tools = tmp_path / ".whisperer" / "tools"
    tools.mkdir(parents=True)
    (tools / "paying.py").write_text(TOOL.format(name="pay"), encoding="utf-8")
    assert run("record", "default", "--data", str(folder), "-o", "team.wrec").code == 0
    assert run("replay", "team.wrec").code == 0
    (tools / "paying.py").unlink()
    if file:
        (tools / "paying.py").write_text(file, encoding="utf-8")
    ran = run("replay", "team.wrec")
    assert (ran.code != 0, told in ran.out + ran.err) == (True, True), ran
    assert run("replay", "team.wrec", "--ignore", "tools").code == 0
    can_be_kept = told == "the tools differ"
    assert (run("replay", "team.wrec", "--update").code == 0) is can_be_kept
    assert (run("replay", "team.wrec").code == 0) is can_be_kept


def test_nothing_is_compared_when_models_answer_and_that_is_told(recording: Path, run: Run) -> None:
    ran = run("replay", str(recording), "--models", "live")
    assert (ran.code, "nothing was compared" in ran.out, "as recorded" in ran.out) == (0, True, False), ran
    assert run("replay", str(recording), "--models", "live", "--json").json[0]["compared"] is False


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("record", "nobody", "--data", "{folder}", "-o", "x.wrec"), "There is no session 'nobody'"),
        (("record", "default", "--data", "{folder}", "-o", "{recording}"), "is there already"),
        (("record", "default", "--data", "{folder}", "-o", "x.wrec", "--from", "5", "--to", "3"), "is before --from 5"),
        (("record", "default", "--data", "{folder}", "-o", "x.wrec", "--from", "999"), "has the entries 1 to"),
        (("record", "default", "--data", "{folder}", "-o", "x.wrec", "--scrub", "nothing:here"), "no function"),
        (("record", "default", "--data", "{folder}", "-o", "x.wrec", "--scrub", ".mod:f"), "no function '.mod:f'"),
        (
            ("record", "default", "--data", "{folder}", "-o", "x.wrec", "--scrub", "json:loads"),
            "failed with JSONDecode",
        ),
        (
            ("record", "default", "--data", "{folder}", "-o", "x.wrec", "--scrub", "builtins:len"),
            "returned int and not",
        ),
        (("fork", "default", "--data", "{folder}", "--at", "2", "--set", "ann.prompt.x=1"), "'prompt' has no fields"),
        (("replay", "{recording}", "--update", "--tools", "live"), "cannot be combined with --tools"),
        (("replay", "{recording}", "--update", "--models", "live"), "cannot be combined with --models"),
        (("replay", "{recording}", "--update", "--ignore", "system"), "cannot be combined with --ignore"),
        (("replay", "{talk}", "--update"), "--update is for recordings"),
        (("replay", "{recording}", "{talk}"), "Play recordings and scripts apart"),
        (("replay", "{cut}"), "ends before its end"),
        (("replay", "none.wrec"), "cannot be read"),
    ],
)
def test_what_cannot_be_done_is_told_with_what_to_do(
    arguments: tuple[str, ...], told: str, folder: Path, recording: Path, tmp_path: Path, run: Run
) -> None:
    talk, cut = tmp_path / "talk.txt", tmp_path / "cut.wrec"
    talk.write_text("agent ann\n", encoding="utf-8")
    cut.write_bytes(recording.read_bytes()[:2000])
    places = {"folder": folder, "recording": recording, "talk": talk, "cut": cut}
    ran = run(*(each.format_map(places) for each in arguments))
    assert ran.code not in (0, 1) or ran.err
    assert told in ran.err + ran.out, ran


def test_sessions_and_recordings_are_laid_side_by_side(recording: Path, folder: Path, run: Run) -> None:
    same = run("compare", str(recording), "default", "--data", str(folder))
    assert (same.code, same.err) == (0, ""), same
    assert same.out.startswith("Answers: 2 are the same, 0 are not.")
    assert run("compare", str(recording), str(recording), "--json").json["is_same"] is True
    golden = Path(__file__).parents[1] / "unit" / "recordings" / "format-1.wrec"
    other = run("compare", str(recording), str(golden))
    assert (other.code, "writer: first difference at 4>writer/1" in other.out) == (1, True)


def test_a_session_is_forked_into_others(folder: Path, tmp_path: Path, run: Run) -> None:
    prompt = tmp_path / "new.md"
    prompt.write_text("You are Anna.", encoding="utf-8")
    flags = ("--data", str(folder), "--set", f"ann.prompt=@{prompt}", "--set", "ann.limits.max_steps_per_task=7")
    ran = run("fork", "default", "--at", "2", *flags, "--runs", "2", "--as", "other", "--json")
    assert ran.json == {"session": "default", "at": 2, "forks": ["other-1", "other-2"], "effects": "ask"}

    async def definition() -> tuple[AgentDefinition, Fork | None]:
        async with AsyncAgentSessionManager(folder, session_id="other-2", model="scripted", templates=()) as manager:
            fork = (await manager._session.kernel.store.load("other-2")).fork
            return manager._session.roster.agents["ann"].record.definition, fork

    found, fork = asyncio.run(definition())
    assert (found.prompt, found.limits.max_steps_per_task) == ("You are Anna.", 7)
    assert fork is not None
    assert (fork.source, fork.at, fork.effects) == ("default", 2, "ask")
    refused = run("fork", "default", "--at", "1", "--data", str(folder))
    assert "The nearest numbers that work: 2" in refused.err
    assert "is not AGENT.FIELD=VALUE" in run("fork", "default", "--at", "2", "--set", "x", "--data", str(folder)).err

"""`whisperer templates check`: all files of templates, what is wrong with them, and what means nothing here."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.cli.commands.serve import broken_templates
from ai_whisperer.cli.main import main
from ai_whisperer.server.serving import running
from ai_whisperer.setting_sources import load_settings
from ai_whisperer.settings import Settings
from tests.unit.template_files import write


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHISPERER_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (tmp_path / ".claude" / "agents").mkdir(parents=True)
    return tmp_path


def checked(capsys: pytest.CaptureFixture[str], *, code: int) -> dict[tuple[str, str], dict[str, Any]]:
    """What is said of the files of the project, by name and kind."""
    assert main(["templates", "check", "--json"]) == code
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] == (code == 0)
    return {(each["name"], each["kind"]): each for each in report["templates"]}


def test_files_without_a_mistake_leave_with_zero(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / ".whisperer" / "agents", "editor", "tools: read_file, send_mail\nfolders: [shared]")
    said = checked(capsys, code=0)
    assert said["editor", "project"]["problems"] == said["editor", "project"]["notes"] == []
    assert ("alice", "built-in") in said


def test_each_mistake_is_told_with_what_may_be_meant(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "whisperer.toml").write_text('[mcp.github]\ncommand = "x"\n[folders]\nnotes = "."\n')
    own = project / ".whisperer" / "agents"
    write(own, "tools", "tools: read_fil, mcp__github__x, mcp__gihub__x\napprove: run_command")
    write(own, "folder", "folders: [note, shared]")
    write(own, "field", "limts: {}")
    write(own, "model", "model: opnai:x")
    write(own, "child", "extends: nobody")
    (own / "yaml.md").write_text("---\nname: yaml\ndescription: [\n---\n")
    (own / "twice.md").write_text("---\nname: folder\n---\n")
    said = checked(capsys, code=1)

    def first(name: str, number: int = 0) -> str:
        problem: str = said[name, "project"]["problems"][number]
        return problem

    assert first("tools") == "tools: there is no tool 'read_fil'. Did you mean 'read_file'?"
    assert first("tools", 1) == "tools: there is no MCP server 'gihub' (mcp__gihub__x). Did you mean 'github'?"
    assert first("tools", 2).startswith("approve: 'tools' is to ask a person about the tool 'run_command'")
    assert "Did you mean `limits`?" in first("field")
    assert "There is no model 'opnai:x'" in first("model")
    assert "there is no template 'nobody' to extend" in first("child")
    assert "line" in first("yaml")
    assert "is that of" in first("folder"), "the second of the name is told"


def test_a_folder_to_work_in_that_is_not_granted_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / ".whisperer" / "agents", "lost", "folders: [shared]\nworking_folder: notes")
    write(project / ".whisperer" / "agents", "found", "folders: [shared]\nworking_folder: shared")
    said = checked(capsys, code=1)
    (problem,) = said["lost", "project"]["problems"]
    assert problem.startswith("working_folder: 'lost' is to work in the folder 'notes', which it is not granted.")
    assert said["found", "project"]["problems"] == []


def test_a_folder_for_claude_code_that_is_not_there_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "whisperer.toml").write_text('claude_folder = "note"\n[folders]\nnotes = "."\n')
    write(project / ".claude" / "agents", "visitor", "description: Visits")
    (problem,) = checked(capsys, code=1)["visitor", "claude"]["problems"]
    assert problem == "folders: there is no folder 'note'. Did you mean 'notes'?"


def test_a_folder_that_is_not_there_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / ".whisperer" / "agents", "folder", "folders: [note, shared]")
    (project / "whisperer.toml").write_text('[folders]\nnotes = "."\n')
    [problem] = checked(capsys, code=1)["folder", "project"]["problems"]
    assert problem == "folders: there is no folder 'note'. Did you mean 'notes'?"


def test_what_means_nothing_here_is_a_note(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = "---\nname: visitor\ntools: Reed, Task, WebSearch\nmodel: claude-x\ncolor: red\n---\nRead.\n"
    (project / ".claude" / "agents" / "visitor.md").write_text(written)
    visitor = checked(capsys, code=0)["visitor", "claude"]
    assert visitor["problems"] == []
    [note] = visitor["notes"]
    assert note == (
        "means nothing here: color, model: claude-x (the session's model is used: ANTHROPIC_API_KEY is not set), "
        "tools: Reed, tools: WebSearch. Did you mean 'Read'?"
    )


def test_names_that_clash_are_notes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = project / ".whisperer" / "agents"
    write(own, "alice", "description: mine")
    write(own, "helper", "aliases: [Tessa]")
    said = checked(capsys, code=0)
    assert said["alice", "built-in"]["notes"][0] == f"not used: {own / 'alice.md'} has the same name and comes first."
    assert said["helper", "project"]["notes"] == ["the name 'Tessa' is also that of tessa: only one agent can have it."]


def test_people_read_lines(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / ".whisperer" / "agents", "bad", "tools: read_fil")
    assert main(["templates", "check"]) == 1
    told = capsys.readouterr()
    assert told.out.startswith(
        f"problem  bad  {project / '.whisperer' / 'agents' / 'bad.md'}\n         tools: there is"
    )
    assert told.err.endswith("files, 1 of which cannot be used.\n")


def test_a_server_tells_at_its_start_which_templates_cannot_be_used(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(project / ".whisperer" / "agents", "bad", "limts: {}")

    async def serve() -> None:
        async with running(Settings(data=project / "data", port=0, model="scripted")):
            pass

    asyncio.run(serve())
    [told] = [record.getMessage() for record in caplog.records if "template" in record.getMessage()]
    assert told.startswith(
        f"A template cannot be used. {project / '.whisperer' / 'agents' / 'bad.md'}, line 3: unknown"
    )


def test_all_mistakes_of_a_file_are_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = project / ".whisperer" / "agents"
    write(own, "many", "limts: {}\nmodel: 4\nlimits:\n  max_steps: 5\ntools: []\nretry: 3\ndescription: fine")
    problems = checked(capsys, code=1)["many", "project"]["problems"]
    assert len(problems) == 4
    for problem, word in zip(problems, ("limts", "model", "max_steps", "retry"), strict=True):
        assert word in problem
    lines = [int(problem.partition(", line ")[2].partition(":")[0]) for problem in problems]
    assert lines == sorted(lines), "each with its own line"


def test_the_rules_of_a_scripted_model_are_looked_at(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "rules.yaml").write_text("rules:\n  - {prompt_match: x, txt: y}\n")
    write(project / ".whisperer" / "agents", "player", "model: scripted:rules.yaml")
    write(project / ".whisperer" / "agents", "lost", "model: scripted:nowhere.yaml")
    said = checked(capsys, code=1)
    assert "txt" in said["player", "project"]["problems"][0]
    assert "nowhere.yaml" in said["lost", "project"]["problems"][0]


def test_a_file_for_claude_code_that_reads_files_is_told_how_it_sees_the_project(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project / ".claude" / "agents", "reader", "tools: Read, Grep")
    write(project / ".claude" / "agents", "thinker", "description: thinks")
    said = checked(capsys, code=0)
    assert any("claude_folder" in note for note in said["reader", "claude"]["notes"])
    assert not any("claude_folder" in note for note in said["thinker", "claude"]["notes"])
    (project / "whisperer.toml").write_text('claude_folder = "project"\n[folders]\nproject = "."\n')
    assert not any("claude_folder" in note for note in checked(capsys, code=0)["reader", "claude"]["notes"])


def test_a_template_is_shown_without_a_server(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / ".whisperer" / "agents", "editor", "tools: [read_file]", "You edit.")
    assert main(["templates", "show", "editor", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["name"], shown["definition"]["tools"]) == ("editor", ["read_file"])
    assert main(["templates", "show", "editr"]) != 0
    assert "Did you mean 'editor'?" in capsys.readouterr().err


def test_templates_are_listed_without_a_server(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / ".whisperer" / "agents", "editor", "tools: [read_file]", "You edit.")
    assert main(["templates", "--json"]) == 0
    assert "editor" in {each["name"] for each in json.loads(capsys.readouterr().out)}


def test_a_run_says_nothing_of_templates_that_it_does_not_use(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project / ".whisperer" / "agents", "broken", "limts: {}")
    assert main(["run", "alice", "hello", "--model", "scripted"]) == 0
    assert "limts" not in capsys.readouterr().err
    assert main(["run", "broken", "hello", "--model", "scripted"]) != 0
    assert "limts" in capsys.readouterr().err


def test_a_server_that_starts_tells_of_files_that_cannot_be_used(project: Path) -> None:
    own = project / ".whisperer" / "agents"
    settings = load_settings({}, environment={}, folder=project).values
    assert broken_templates(settings) == []
    write(own, "broken", "limts: {}")
    told, where = broken_templates(settings)
    assert "limts" in told
    assert where == "See all: whisperer templates check"

"""`whisperer replay`: the talks of the guide's workflows, on servers of their own and on one that runs."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.acceptance.command_stage import RULES, Ran, Whisperer, run, running

TALKS = sorted((Path(__file__).parents[2] / "examples" / "talks").glob("*.txt"))


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """Where a talk can be written; the rules of the stage are beside it."""
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    return tmp_path / "talk.txt"


def played(talk: Path, text: str, *flags: str) -> Ran:
    talk.write_text(text, encoding="utf-8")
    return run("replay", str(talk), *flags)


@pytest.mark.parametrize("path", TALKS, ids=lambda path: path.stem)
def test_the_workflows_of_the_guide_are_played_as_they_are_written(path: Path) -> None:
    ran = run("replay", str(path))
    assert (ran.code, ran.err) == (0, ""), ran
    assert "all as expected" in ran.out


def test_there_is_a_talk_for_each_workflow_and_the_migration() -> None:
    assert {path.stem for path in TALKS} == {"parallel_report", "monitoring", "decomposition", "migration"}


def test_a_server_that_is_killed_continues_where_it_was(talk: Path) -> None:
    ran = played(
        talk,
        "rules rules.yaml\nagent ann\nann: two steps\nwait 0.2s\ncrash\nrestart\n"
        "expect ann contains Done\nexpect event async.task.completed\ncrash\nrestart\nann: fine\n"
        "expect ann contains fine",
    )
    assert (ran.code, ran.err) == (0, ""), ran


def test_the_first_difference_ends_the_talk_with_1_and_is_told_to_people_and_programs(talk: Path) -> None:
    text = "rules rules.yaml\nagent ann\nann: hello\nexpect ann contains bye\nwait 1s"
    xml = talk.with_name("out.xml")
    ran = played(talk, text, "--junit", str(xml))
    assert ran.code == 1
    assert f"FAILED  {talk}, line 4: expect ann contains bye\n        There is: Done: hello" in ran.out
    assert ran.out.endswith(f"{talk}: not as expected; 1 lines were not played.\n")
    suite = ET.fromstring(xml.read_text(encoding="utf-8"))[0]  # noqa: S314 - it is our own
    assert [[child.tag for child in case] for case in suite] == [[], [], ["failure"], ["skipped"]]
    told = played(talk, text, "--json")
    (outcome,) = told.json
    assert (told.code, outcome["ok"], outcome["not_played"]) == (1, False, 1)
    assert [line["failure"] for line in outcome["lines"]] == [None, None, "There is: Done: hello"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_talk_that_is_stopped_leaves_nothing_behind(talk: Path, number: signal.Signals) -> None:
    talk.write_text("rules rules.yaml\nagent ann\nann: eternally\nexpect ann contains x\n", encoding="utf-8")
    folders = talk.parent / "temporary"
    folders.mkdir()
    with running("replay", str(talk), folder=talk.parent, environment={"TMPDIR": str(folders)}) as process:
        process.line_with("ann: eternally")
        process.signal(number)
        ended = process.ended()
    assert (ended.code, list(folders.iterdir())) == (128 + number, [])
    assert ended.out.endswith("not as expected; 1 lines were not played.\n")


def test_a_talk_with_a_typo_is_not_played_nor_are_those_before_it(talk: Path) -> None:
    good = talk.with_name("good.txt")
    good.write_text("agent ann\n", encoding="utf-8")
    talk.write_text("agent ann\nexpct ann contains x\n", encoding="utf-8")
    ran = run("replay", str(good), str(talk))
    assert ran.code != 0
    assert ran.out == ""
    assert f"{talk}, line 2: 'expct' is nothing that a line can begin with. Did you mean 'expect'?" in ran.err


def test_nothing_that_is_set_for_other_servers_holds_for_that_of_a_talk(talk: Path) -> None:
    talk.write_text("rules rules.yaml\nagent ann\nann: hello\nexpect ann contains hello\n", encoding="utf-8")
    ran = run("replay", str(talk), WHISPERER_STORE="postgresql://nobody@127.0.0.1:1/x", WHISPERER_SESSION="another")
    assert (ran.code, ran.err) == (0, ""), ran


def test_what_was_played_is_told_even_if_the_next_cannot_begin(talk: Path) -> None:
    good, xml = talk.with_name("good.txt"), talk.with_name("out.xml")
    good.write_text("rules rules.yaml\nagent ann\n", encoding="utf-8")
    talk.with_name("bad.yaml").write_text("rules: [{what: 1}]", encoding="utf-8")
    talk.write_text("rules bad.yaml\nagent ann\n", encoding="utf-8")
    ran = run("replay", str(good), str(talk), "--junit", str(xml))
    assert ran.code != 0
    assert "The server of the script did not start." in ran.err
    first, second = ET.fromstring(xml.read_text(encoding="utf-8"))  # noqa: S314 - it is our own
    assert (first.get("skipped"), second.get("skipped")) == ("0", "1")
    refused = run("replay", str(good), "--junit", str(talk.parent / "nowhere" / "out.xml"))
    assert (refused.code, refused.out) == (1, "")
    assert "cannot be written" in refused.err


def test_rules_that_are_wrong_are_told(talk: Path) -> None:
    talk.with_name("rules.yaml").write_text("rules: [{what: 1}]", encoding="utf-8")
    ran = played(talk, "rules rules.yaml\nagent ann")
    assert ran.code != 0
    assert "The server of the script did not start." in ran.err
    assert "Traceback" not in ran.err


def test_tools_that_cannot_be_loaded_are_told_with_their_line(talk: Path) -> None:
    (talk.parent / "own.py").write_text("from ai_whisperer import tool\n\nimport nothing_of_this_name\n")
    ran = played(talk, "rules rules.yaml\ntools own.py\nagent ann", "--patience", "3s")
    assert ran.code == 1
    assert f"{talk.parent / 'own.py'}, line 3: the file cannot be loaded: ModuleNotFoundError" in ran.err


def test_on_a_server_that_runs_a_talk_has_a_session_of_its_own(
    tmp_path: Path, talk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    flags = ("--port", "0", "--data", str(data), "--model", f"scripted:{tmp_path}/rules.yaml")
    with running("serve", *flags, folder=tmp_path) as server:
        assert server.line().startswith("ready ")
        whisperer = Whisperer(data, capsys)
        talk.write_text("agent ann\nann: hello\nexpect ann contains hello\n", encoding="utf-8")
        ran = whisperer("replay", str(talk))
        assert ran.code == 0, ran
        sessions = whisperer.json("sessions", "list")
        (own,) = [each for each in sessions if each["title"].startswith("replay ")]
        assert f"The session of the script is {own['sessionId']}." in ran.err
        assert whisperer.json("agents", "list") == []
        talk.write_text("agent ann\ncrash\n", encoding="utf-8")
        refused = whisperer("replay", str(talk), "--json")
        assert refused.code != 0
        assert "line 2: this session is not ours to kill" in json.loads(refused.err)["error"]["message"]
        assert len(whisperer.json("sessions", "list")) == len(sessions)

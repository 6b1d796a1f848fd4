"""Conversation scripts are read as a whole; a typo is told with its line and what was probably meant."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ai_whisperer.errors import ScriptError
from ai_whisperer.replay import lines
from ai_whisperer.replay.junit import cases_of, junit
from ai_whisperer.replay.lines import Comparison, Wanted
from ai_whisperer.replay.playing import Played
from ai_whisperer.replay.script import MOST_BYTES, parse_script, read_script


def only(text: str) -> lines.Line:
    (line,) = parse_script(text).lines
    return line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("agent ann", lines.CreateAgent(number=1, written="agent ann", agent="ann")),
        (
            "agent ann from coder model=scripted tools=[]",
            lines.CreateAgent(
                number=1,
                written="agent ann from coder model=scripted tools=[]",
                agent="ann",
                template="coder",
                config={"model": "scripted", "tools": []},
            ),
        ),
        (
            "room r of ann, ben",
            lines.CreateRoom(number=1, written="room r of ann, ben", room="r", members=("ann", "ben")),
        ),
        ("ann: Hello: you.", lines.Say(number=1, written="ann: Hello: you.", agent="ann", text="Hello: you.")),
        ("@r: Hello.", lines.Post(number=1, written="@r: Hello.", room="r", text="Hello.")),
        (
            "mail ann: Draft\n  Here.",
            lines.SendMail(number=1, written="mail ann: Draft", agent="ann", subject="Draft", body="Here."),
        ),
        ('broadcast a {"n": 1}', lines.Broadcast(number=1, written='broadcast a {"n": 1}', event="a", data={"n": 1})),
        ("pause ann", lines.Act(number=1, written="pause ann", action="pause", agent="ann")),
        (
            "sleep ann for 2m until a, b",
            lines.Sleep(number=1, written="sleep ann for 2m until a, b", agent="ann", seconds=120.0, events=("a", "b")),
        ),
        ("approve ann", lines.Decide(number=1, written="approve ann", agent="ann", approves=True)),
        ("refuse ann", lines.Decide(number=1, written="refuse ann", agent="ann", approves=False)),
        ("answer ann: 5", lines.AnswerQuestion(number=1, written="answer ann: 5", agent="ann", answer="5")),
        ("wait 0.5s", lines.Wait(number=1, written="wait 0.5s", seconds=0.5)),
        ("wait for ann", lines.Wait(number=1, written="wait for ann", agent="ann")),
        ("wait for all", lines.Wait(number=1, written="wait for all")),
        ("crash", lines.Crash(number=1, written="crash")),
    ],
)
def test_what_is_done(text: str, expected: lines.Line) -> None:
    assert only(text) == expected


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("expect ann contains so", lines.ExpectAnswer, {"agent": "ann", "channel": "final"}),
        ("expect ann analysis contains so", lines.ExpectAnswer, {"agent": "ann", "channel": "analysis"}),
        ("expect ann state is idle", lines.ExpectState, {"agent": "ann"}),
        ("expect ann fails", lines.ExpectFailure, {"agent": "ann", "wanted": None}),
        (
            "expect no mail from ann",
            lines.ExpectMail,
            {"sender": "ann", "owner": "user", "never": True, "wanted": None},
        ),
        (
            "expect mail to ben subject is so within 3s",
            lines.ExpectMail,
            {"owner": "ben", "part": "subject", "within": 3.0},
        ),
        ("expect @r from ann matches s.", lines.ExpectMessage, {"room": "r", "sender": "ann"}),
        ("expect event task.done", lines.ExpectEvent, {"event": "task.done"}),
    ],
)
def test_what_is_expected(text: str, kind: type[lines.Expect], fields: dict[str, object]) -> None:
    _, line = parse_script(f"ann: hi\n{text}").lines
    assert type(line) is kind
    assert {name: getattr(line, name) for name in fields} == fields


def test_texts_go_on_in_indented_lines_and_keep_their_own_indentation() -> None:
    script = parse_script("# one\nann: Write:\n  def f():\n\n    return 1\n\n# two\nexpect ann contains\n  so\n")
    said, expected = script.lines
    assert isinstance(said, lines.Say)
    assert said.text == "Write:\ndef f():\n\n  return 1"
    assert isinstance(expected, lines.ExpectAnswer)
    assert (expected.number, expected.wanted) == (8, Wanted(Comparison.CONTAINS, "so"))


def test_quotation_marks_keep_what_is_expected_together() -> None:
    _, line = parse_script('ann: hi\nexpect ann contains "done within 5s"').lines
    assert isinstance(line, lines.ExpectAnswer)
    assert (line.wanted, line.within) == (Wanted(Comparison.CONTAINS, "done within 5s"), None)


@pytest.mark.parametrize(
    ("comparison", "wanted", "text", "fits"),
    [
        (Comparison.CONTAINS, "b", "abc", True),
        (Comparison.IS, "abc", " abc\n", True),
        (Comparison.IS, "ab", "abc", False),
        (Comparison.MATCHES, "^b.$", "a\nbc", True),
        (Comparison.MATCHES, "^c", "abc", False),
    ],
)
def test_how_texts_are_compared(comparison: Comparison, wanted: str, text: str, *, fits: bool) -> None:
    assert Wanted(comparison, wanted).fits(text) is fits


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no line that does something"),
        ("# nothing\n", "has no line that does something"),
        ("  ann: hello", "line 1: an indented line goes with the line before it"),
        (
            "ann: hi\nexpct ann contains hi",
            "line 2: 'expct' is nothing that a line can begin with. Did you mean 'expect'?",
        ),
        ("ann:", "nothing that is said to ann"),
        ("agent an/n", "'an/n' names no agent"),
        ("agent ann coder", "'coder' is no KEY=VALUE"),
        ("room r ann", "a room needs a name and members"),
        ("mail ann", "a mail needs an agent and a subject"),
        ("broadcast", "'' is no name"),
        ('ann: hi\nbroadcast alert {"disk": 90', "line 2: '{\"disk\": 90' begins like JSON, but is not valid: "),
        ("agent ann tools=[send_mail]", "line 1: '[send_mail]' begins like JSON, but is not valid: "),
        ("pause", "'' is no name"),
        ("sleep ann 5s", "say who sleeps"),
        ("answer ann:", "say who is answered"),
        ("wait a bit", "'a bit' is not a length of time"),
        ("wait for ann and ben", "'for ann and ben' is not a length of time"),
        ("crash now", "nothing follows 'crash'"),
        ("agent ann\nrestart", "line 2: the server runs here"),
        ("crash\ncrash", "line 2: the server was killed before this line"),
        ("crash\nwait 1s\nann: hi", "line 3: the server was killed before this line"),
        ("expect ann", "nothing that can be expected"),
        ("expect ann contains", "say what it contains"),
        ("expect ann matches (", "'(' is no regular expression"),
        ("expect ann finl contains so", "'finl' is no channel. Did you mean 'final'?"),
        ("ann: hi\nexpect anne contains so", "line 2: nothing was said to anne before. Did you mean 'ann'?"),
        ("ann: hi\nexpect ann.final contains so", "Did you mean 'ann final'?"),
        ("expect no ann contains so", "line 1: nothing was said to ann before. Say something first: `ann: …`"),
        ("expect ann fails", "nothing was said to ann before"),
        (
            "agent ann\nagent ben promt=x",
            "line 2: the agent definition is not valid: unknown field `promt`. Did you mean",
        ),
        ("agent ann limits=many", "line 1: the agent definition is not valid: `limits` "),
        ("agent ann prompt=x\n  You are Ann.", "line 1: ann has two prompts"),
        ("expect ann state is idel", "'idel' is no state. Did you mean 'idle'?"),
        ("expect ann state", "'' is no state"),
        ("expect ann contains so within soon", "'soon' is not a length of time"),
        ("expect no ann contains so within 5s", "looked for at once"),
        ("expect mail from", "say who the mail is from"),
        ("expect mail by ann", "'by' says nothing about a mail"),
        ("expect ann fails\n  so", "say how the text is compared"),
        ('broadcast alert\n  {"disk": 90}', "no text belongs to 'broadcast'"),
        ("crash\n  now", "no text belongs to 'crash'"),
        ("expect mail from ann subject", "say how the subject is compared"),
        ("expect ann matches a{99999999999999999999}", "is no regular expression"),
        (f"rules {'x' * 300}", "there is no file"),
        ("rules nowhere.yaml", "no file 'nowhere.yaml' beside the script"),
        ("ann: hi\nrules x.yaml", "line 2: files come first"),
    ],
)
def test_a_script_that_cannot_be_played_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(ScriptError) as error:
        parse_script(text)
    assert told in error.value.message


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for name, content in {"odd.txt": b"ann: \xff", "large.txt": b"#" * (MOST_BYTES + 1)}.items():
        (tmp_path / name).write_bytes(content)
    for name, told in {"none.txt": "No such file", "odd.txt": "not UTF-8", "large.txt": "larger than 1 MiB"}.items():
        with pytest.raises(ScriptError, match=told):
            read_script(tmp_path / name)


def test_files_that_a_script_names_are_beside_it(tmp_path: Path) -> None:
    for name in ("rules.yaml", "tools.py"):
        (tmp_path / name).touch()
    (tmp_path / "talk.txt").write_text("rules rules.yaml\ntools tools.py\nann: hi\nexpect ann contains hi\n")
    script = read_script(tmp_path / "talk.txt")
    assert (script.rules, script.tools) == (tmp_path / "rules.yaml", [tmp_path / "tools.py"])
    with pytest.raises(ScriptError, match="one file of rules"):
        parse_script("rules rules.yaml\nrules rules.yaml\nann: hi", folder=tmp_path)


def test_two_files_of_tools_need_two_names(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tools.py").touch()
    with pytest.raises(ScriptError, match="line 2: there is another file of tools with the name"):
        parse_script("tools a/tools.py\ntools b/tools.py\nann: hi", folder=tmp_path)


def test_a_mark_of_the_byte_order_and_values_that_are_deep_are_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "talk.txt").write_text(f"\ufeffagent ann prompt={'[' * 50_000}\n", encoding="utf-8")
    (line,) = read_script(tmp_path / "talk.txt").lines
    assert isinstance(line, lines.CreateAgent)
    assert line.config["prompt"] == "[" * 50_000


def test_the_outcome_as_xml() -> None:
    script = parse_script("ann: \x0bhi & <you>\nexpect ann contains hi\nwait 1s", name="talk.txt")
    played = [
        Played(line=script.lines[0], seconds=0.5),
        Played(line=script.lines[1], seconds=1.0, failure='There is: "no" \x00'),
    ]
    suite = ET.fromstring(junit({"talk.txt": cases_of(script, played)}))[0]  # noqa: S314 - it is our own
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped", "time")} == {
        "tests": "3",
        "failures": "1",
        "skipped": "1",
        "time": "1.500",
    }
    assert [[child.tag for child in case] for case in suite] == [[], ["failure"], ["skipped"]]
    assert suite[0].get("name") == "1: ann: \ufffdhi & <you>"

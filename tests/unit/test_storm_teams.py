"""Teams and invariants of storms that cannot be used: what is wrong is told before a universe is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai_whisperer.errors import ScriptError, StormError, WhispererError
from ai_whisperer.storm.faults import FailedModel, ModelFailure, Schedule
from ai_whisperer.storm.invariants import BUILTIN, Invariant, violations
from ai_whisperer.storm.log import Log
from ai_whisperer.storm.sources import team_in
from ai_whisperer.storm.storming import Storm, Terms, run_storm

RULES = "rules:\n  - text: Done.\n"
TALK = "rules rules.yaml\nagent ann\nann: hello\nexpect ann is Done.\n"
EMPTY = Log(entries=(), tasks=(), steps={}, mails=())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    (tmp_path / "talk.txt").write_text(TALK, encoding="utf-8")
    return tmp_path


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("talk.txt", "agent ann\nan: hello\nexpct ann", "line 3: 'expct' is nothing that a line can begin with"),
        ("talk.txt", "agent ann\nann: hello", "does not say what the models answer, and a storm asks no real one"),
        ("rules.yml", "rules:\n  - text: Done.", "with the line `rules rules.yml` at its beginning"),
        ("talk.txt", '{"storm": 1}', "is no team: give a conversation script"),
        ("team.py", "x = 1", "is no team: it has no text called `talk`"),
        ("team.py", "talks = 'agent ann'", "There is 'talks': did you mean that?"),
        ("team.py", "talk = 'agent ann'", "does not say what the models answer"),
        ("team.py", "talk = 'agent ann'\nanswer = 3", "`answer` has to be a plain function of the request"),
        ("team.py", "talk = 'agent ann'\nasync def answer(request): ...", "`answer` has to be a plain function"),
        ("team.py", "talk = 'agent ann'\nrules = 3", "`rules` has to be the path of a file with rules"),
        ("team.py", "talk = 'agent ann\\nagnt ben'\nanswer = str", "talk, line 2: 'agnt' is nothing"),
        ("team.py", "talk = 'agent ann'\nrules = 'none.yaml'", "cannot be read"),
        ("team.py", "1 / 0", "line 1: the file cannot be loaded: ZeroDivisionError"),
        ("team.py", "talk = (", "cannot be loaded: SyntaxError"),
    ],
)
def test_a_file_that_is_no_team_is_told(folder: Path, name: str, text: str, told: str) -> None:
    path = written(folder / name, text)
    with pytest.raises((StormError, ScriptError)) as error:
        team_in(path)
    assert str(path) in error.value.message
    assert told in error.value.message


ASKS = "from ai_whisperer.errors import ModelServerError\ntalk = 'agent ann\\nann: hello'\ndef answer(request):\n    "


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return None", "`answer` returned nothing when ann was asked; a text or an Answer is needed"),
        ("return 3", "`answer` returned int when ann was asked"),
        ("return request.nothing", r"`answer` failed: AttributeError: .*nothing.* \(line 4\)"),
        ("assert False, 'no'", r"`answer` failed: AssertionError: no \(line 4\)"),
        ("raise ModelServerError('down')", r"no task is completed, though nothing goes wrong.* ann: "),
    ],
)
def test_an_answer_that_is_none_stops_the_storm(folder: Path, body: str, told: str) -> None:
    path = written(folder / "team.py", ASKS + body)
    with pytest.raises(StormError, match=told) as error:
        Storm(team_in(path))
    assert str(path) in error.value.message


def test_an_answer_that_is_none_in_some_universe_stops_the_storm(folder: Path) -> None:
    body = "return 'x' if request.attempt == 1 else None"
    storm = Storm(team_in(written(folder / "team.py", ASKS + body)))
    failed = FailedModel(agent="ann", request=1, failure=ModelFailure.RATE_LIMIT)
    with pytest.raises(StormError, match="`answer` returned nothing when ann was asked"):
        storm.outcome(Schedule(faults=(failed,)))


def test_a_team_that_has_nothing_to_do_is_told(folder: Path) -> None:
    path = written(folder / "talk.txt", "rules rules.yaml\nagent ann\nwait 1s\n")
    with pytest.raises(StormError, match=r"talk\.txt: no task is completed, though nothing goes wrong"):
        Storm(team_in(path))


def test_a_file_that_is_not_there_is_told(folder: Path) -> None:
    with pytest.raises(StormError, match=r"There is no team in .*none.txt: No such file"):
        team_in(folder / "none.txt")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise ValueError('no')", "line 1: the file cannot be loaded: ValueError: no"),
        ("def check(log): pass", "there is no invariant in it. Put @invariant before a function"),
        ("from ai_whisperer.storm import invariant\n@invariant\nasync def check(log): pass", "is a coroutine"),
        ("from ai_whisperer.storm import invariant\n@invariant\ndef check(): pass", "has to take the log alone"),
    ],
)
def test_a_file_of_invariants_that_cannot_be_used_is_told(folder: Path, text: str, told: str) -> None:
    path = written(folder / "checks.py", text)
    with pytest.raises(StormError) as error:
        team_in(folder / "talk.txt", invariants=[path])
    assert str(path) in error.value.message
    assert told in error.value.message


def test_an_invariant_that_fails_itself_is_an_error_and_no_finding(folder: Path) -> None:
    text = "from ai_whisperer.storm import invariant\n@invariant\ndef check(log):\n    return log.nothing\n"
    path = written(folder / "checks.py", text)
    (check,) = team_in(folder / "talk.txt", invariants=[path]).team().invariants
    with pytest.raises(StormError, match=r"the invariant 'check' failed itself.*AttributeError.*\(line 4\)"):
        violations([check], EMPTY)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            "return len(log.entries) == 0",
            "the invariant 'check' returned False, and nobody looks at that. Let it assert",
        ),
        ("yield", "the invariant 'check' returned <generator object"),
        ("raise SystemExit", "the invariant 'check' failed itself.*SystemExit"),
        ("log.tasks(state='complete')", "ValueError: 'complete' is no state of a task. Did you mean 'completed'?"),
    ],
)
def test_an_invariant_that_asserts_nothing_is_an_error(folder: Path, body: str, told: str) -> None:
    text = f"from ai_whisperer.storm import invariant\n@invariant\ndef check(log):\n    {body}\n"
    with pytest.raises(StormError, match=told):
        Storm(team_in(folder / "talk.txt", invariants=[written(folder / "checks.py", text)]))


def test_two_invariants_with_one_name_are_told(folder: Path) -> None:
    text = "from ai_whisperer.storm import invariant\n@invariant\ndef check(log):\n    assert True\n"
    one, other = written(folder / "one.py", text), written(folder / "other.py", text)
    with pytest.raises(StormError, match=r"other.py: the invariant 'check' has the same name as one in .*one.py"):
        team_in(folder / "talk.txt", invariants=[one, other])
    assert len(team_in(folder / "talk.txt", invariants=[one, one, one.parent / "." / "one.py"]).team().invariants) == 1
    builtin = written(folder / "builtin.py", text.replace("def check", "def the_log_has_no_gaps"))
    with pytest.raises(StormError, match="has the same name as a built-in one"):
        team_in(folder / "talk.txt", invariants=[builtin])


def test_what_invariants_ask_for_and_no_universe_has_is_noted(folder: Path) -> None:
    text = (
        "from ai_whisperer.storm import invariant\n@invariant\ndef check(log):\n"
        "    assert not log.calls('send_mial')\n    assert not log.calls('send_mail')\n"
        "    assert not log.tasks('anna', state='failed')\n    assert log.answers('ann')\n"
    )
    storm = Storm(team_in(folder / "talk.txt", invariants=[written(folder / "checks.py", text)]), Terms(kinds=()))
    assert run_storm(storm, range(3)).absent == ("agent 'anna' (did you mean 'ann'?)", "tool 'send_mial'")


def test_what_an_assertion_says_is_the_finding() -> None:
    def told(_: Log) -> None:
        raise AssertionError("two were paid")

    def silent(log: Log) -> None:
        if not log.entries:
            raise AssertionError

    found = violations([Invariant(name=each.__name__, function=each) for each in (told, silent)], EMPTY)
    assert [(each.invariant, each.message) for each in found] == [
        ("told", "two were paid"),
        ("silent", "raise AssertionError"),
    ]


def test_what_holds_for_every_team_holds_where_nothing_happened() -> None:
    assert violations((), EMPTY) == []
    assert len({each.name for each in BUILTIN}) == len(BUILTIN)


def test_each_team_has_the_files_anew_and_its_invariants_see_the_same_ones(folder: Path) -> None:
    written(
        folder / "bank.py",
        "from ai_whisperer import tool\nLEDGER = []\n@tool\ndef pay() -> str:\n    LEDGER.append(1)\n    return 'x'\n",
    )
    checks = written(
        folder / "checks.py",
        "from bank import LEDGER\nfrom ai_whisperer.storm import invariant\n"
        "@invariant\ndef nothing_is_paid(log):\n    assert not LEDGER\n",
    )
    talk = written(folder / "talk.txt", TALK.replace("agent ann", "tools bank.py\nagent ann"))
    source = team_in(talk, invariants=[checks])
    first, second = source.team(), source.team()
    first.setting.tools[0].function()
    assert [each.invariant for each in violations(first.invariants, EMPTY)] == ["nothing_is_paid"]
    assert violations(second.invariants, EMPTY) == []


def test_a_bad_recording_is_told(folder: Path) -> None:
    path = written(folder / "team.wrec", '{"line":"recording","format":99}\n')
    with pytest.raises(WhispererError, match=r"team\.wrec"):
        team_in(path)

"""`whisperer storm`: what it tells, writes and keeps, and how it leaves."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

from ai_whisperer.cli import storming as cli_storming
from ai_whisperer.cli.main import main
from ai_whisperer.errors import StormError
from ai_whisperer.storm import storming
from tests.acceptance.command_stage import Whisperer, serving

STORM = Path(__file__).parents[2] / "examples" / "storm"
TWICE = "no_invoice_is_paid_twice"


class Told:
    """A command in this process: what it left with, and what it said."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        capsys.readouterr()
        self.code = main(["storm", *arguments])
        self.out, self.err = capsys.readouterr()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_failure_is_told_written_replayed_and_kept(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Told(capsys, str(STORM / "invoice.txt"), "--seeds", "30", "--keep", "kept")
    assert (ran.code, ran.err) == (1, "")
    assert f"FAILED  {TWICE}: in " in ran.out
    assert "the ledger has {'A-17': 2}, by " in ran.out
    assert "The smallest schedule that does it:\n          - everything in the order in which it got ready" in ran.out
    file = f"storm-invoice-{TWICE}.json"
    assert f"Play it again: whisperer storm --replay {file}" in ran.out
    assert f"whisperer serve --data kept --session storm-{TWICE}" in ran.out
    assert len(json.loads((here / file).read_text())["schedule"]["faults"]) == 1

    again = Told(capsys, "--replay", file)
    assert (again.code, again.err) == (1, "")
    assert f"FAILED  {TWICE}: the ledger has" in again.out
    assert "It went exactly as when the file was written." in again.out
    told = Told(capsys, "--replay", file, "--json")
    assert (told.code, json.loads(told.out)["exact"]) == (1, True)

    never = json.loads((here / file).read_text())
    never["schedule"]["faults"].append({"fault": "kill", "moment": "tool_began", "number": 1, "of": "pya"})
    (here / "never.json").write_text(json.dumps(never))
    assert (
        "NOTE    it did not come to this: the process is killed when the 1st call of pya"
        in Told(capsys, "--replay", "never.json").out
    )

    mended = json.loads((here / file).read_text())
    mended["team"] = str(STORM / "invoice_locked.txt")
    (here / "mended.json").write_text(json.dumps(mended))
    fine = Told(capsys, "--replay", "mended.json")
    assert (fine.code, fine.err) == (0, "")
    assert f"All holds now: {TWICE} did not, when the file was written." in fine.out


def test_the_session_of_a_failure_is_one_that_a_server_shows(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept, session = here / "kept", f"storm-{TWICE}"
    assert Told(capsys, str(STORM / "invoice.txt"), "--seeds", "10", "--keep", str(kept)).code == 1
    with serving(kept, "--session", session):
        whisperer = Whisperer(kept, capsys)
        (listed,) = whisperer.json("sessions")
        tasks = whisperer.json("--session", session, "tasks")
        log = whisperer.ok("--session", session, "logs", "ann", "--level", "debug")
    assert {task["agentId"] for task in tasks} == {"ann", "ben"}
    assert (listed["sessionId"], listed["title"]) == (session, f"storm: {TWICE}")
    assert '"tool": "pay"' in log


def test_a_schedule_and_a_session_that_are_kept_are_not_written_over(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = Told(capsys, str(STORM / "invoice.txt"), "--seeds", "10", "--keep", "kept", "-o", "found/here")
    assert (first.code, first.err) == (1, "")
    file = here / "found" / "here" / f"storm-invoice-{TWICE}.json"
    as_found = file.read_bytes()

    again = Told(capsys, str(STORM / "invoice.txt"), "--seeds", "10", "--keep", "kept", "-o", "found/here")
    assert (again.code, again.err) == (1, "")
    assert list(file.parent.iterdir()) == [file]  # it is the same schedule
    assert f"--session storm-{TWICE}-2" in again.out

    kept = b"// my own words\n" + as_found
    file.write_bytes(kept)
    other = Told(capsys, str(STORM / "invoice.txt"), "--seeds", "10", "--keep", "kept", "-o", "found/here")
    assert (other.code, other.err) == (1, "")
    numbered = file.with_stem(f"{file.stem}-2")
    assert (file.read_bytes(), numbered.read_bytes()) == (kept, as_found)
    assert f"--replay {numbered.relative_to(here)}" in other.out

    replayed = Told(capsys, "--replay", str(numbered), "--keep", "kept", "--json")
    assert (replayed.code, json.loads(replayed.out)["session"]) == (1, f"storm-{TWICE}-4")


@pytest.mark.parametrize("option", ["--output", "--keep"])
def test_a_folder_that_cannot_be_one_is_told_before_a_universe_is_run(
    here: Path, capsys: pytest.CaptureFixture[str], option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "file").write_text("no folder")
    monkeypatch.setattr(storming, "run_universe", lambda *_, **__: pytest.fail("a universe was run"))
    ran = Told(capsys, str(STORM / "invoice.txt"), option, "file")
    assert (ran.code, ran.out) == (1, "")
    assert "cannot be written to file: File exists. Give another folder." in ran.err


def test_a_data_folder_that_a_server_has_is_told_before_a_universe_is_run(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storming, "run_universe", lambda *_, **__: pytest.fail("a universe was run"))
    with serving(here / "kept"):
        ran = Told(capsys, str(STORM / "invoice.txt"), "--keep", "kept")
    assert (ran.code, ran.out) == (1, "")
    assert "Sessions cannot be kept in kept: " in ran.err


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_report_is_told_though_its_schedule_cannot_be_written(
    here: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Path:
        raise StormError("The schedule cannot be written: No space left on device.")

    monkeypatch.setattr(cli_storming, "write_found", full)
    ran = Told(capsys, str(STORM / "invoice.txt"), "--seeds", "10", *options)
    assert (ran.code, "No space left on device" in ran.err) == (1, True)
    assert TWICE in ran.out
    assert list(here.iterdir()) == []


def test_a_storm_in_which_all_holds_leaves_with_0_and_tells_programs_too(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = Told(capsys, str(STORM / "invoice_locked.txt"), "--seeds", "5", "--first", "100", "--json")
    assert (ran.code, ran.err) == (0, "")
    told = json.loads(ran.out)
    assert (told["ok"], told["universes"], told["failed"], told["findings"]) == (True, 5, 0, [])
    assert TWICE in told["invariants"]
    assert list(here.iterdir()) == []


INTERRUPTED = """
import os
import signal

from ai_whisperer.storm import invariant

talk = "agent ann\\nann: Hello."
looked = []

def answer(request):
    return "Hello."

@invariant
def nothing_is_said(log):
    with open("looked", "a+") as file:
        file.write("x")
        file.seek(0)
        looked = len(file.read())
    if looked in SIGNALS:
        os.kill(os.getpid(), signal.SIGINT)
    assert not log.answers("ann")
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_storm_that_is_interrupted_tells_and_keeps_what_it_has_found(
    here: Path, capsys: pytest.CaptureFixture[str], jobs: int
) -> None:
    if jobs == 1:
        (here / "team.py").write_text(INTERRUPTED.replace("SIGNALS", "{30}"))
    else:  # the others do not hear it
        (here / "team.py").write_text(INTERRUPTED.replace("os.getpid()", "os.getppid()").replace("SIGNALS", "{30}"))
    before = signal.getsignal(signal.SIGINT)
    ran = Told(capsys, "team.py", "--seeds", "10000", "--keep", "kept", "--jobs", str(jobs))
    assert ran.code == 130
    assert "Interrupted: this was found so far." in ran.out
    assert int(re.search(r"team.py: ([\d,]+) universe", ran.out)[1].replace(",", "")) < 2_000  # type: ignore[index]
    assert "FAILED  nothing_is_said: also without any fault" in ran.out
    assert "storm-team-nothing_is_said.json" in ran.out
    assert (here / "storm-team-nothing_is_said.json").exists()
    assert (here / "kept").exists()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_third_interruption_ends_it_at_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    once = "os.kill(os.getpid(), signal.SIGINT)"
    (here / "team.py").write_text(INTERRUPTED.replace(once, "; ".join([once] * 3)).replace("SIGNALS", "{30}"))
    ran = Told(capsys, "team.py", "--seeds", "10000")
    assert (ran.code, ran.out) == (130, "")
    assert (here / "looked").read_text() == "x" * 30


BROKEN_TOOL = """
from ai_whisperer import tool

talk = "agent ann\\nann: Hello."
BOOKED = {}

@tool
def book(room: str) -> str:
    "Book a room."
    return BOOKED[room]

def answer(request):
    from ai_whisperer.testing import call
    return ANSWER
"""


def test_a_tool_that_raises_is_told_as_what_it_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    always = "call('book', room='7')"
    (here / "team.py").write_text(BROKEN_TOOL.replace("ANSWER", always))
    ran = Told(capsys, "team.py", "--seeds", "5")
    assert ran.code == 1
    assert "no task is completed, though nothing goes wrong" in ran.err
    assert "A tool failed: book raised KeyError: '7' (team.py, line 10)." in ran.err
    assert "step" not in ran.err
    (here / "team.py").write_text(BROKEN_TOOL.replace("ANSWER", f"{always} if len(request.turns) == 1 else 'Done.'"))
    ran = Told(capsys, "team.py", "--seeds", "5")
    note = "NOTE    a tool failed, and its model was told: book raised KeyError: '7' (team.py, line 10): in 5 universes"
    assert (ran.code, note in ran.out) == (0, True), ran.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Give a file with a team, or --replay with a schedule"),
        (("none.txt",), "There is no team in none.txt: No such file or directory"),
        (("talk.txt", "--faults", "kils"), "'kils' is no kind of fault. Did you mean 'kills'?"),
        (("talk.txt",), "talk.txt, line 2: 'agnt' is nothing that a line can begin with. Did you mean 'agent'?"),
        (("talk.txt", "--faults", ""), "--faults names no kind of fault. There are models, tools"),
        (("--replay", "x.json", "--seeds", "5", "--faults", "kills"), "so --seeds, --faults would change nothing"),
        (("--replay", "talk.txt"), "talk.txt is no schedule of a storm: it is not JSON"),
    ],
)
def test_what_cannot_be_run_is_told(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    (here / "talk.txt").write_text("agent ann\nagnt ben\n")
    ran = Told(capsys, *arguments)
    assert ran.code in (1, 2)
    assert (ran.out, told in ran.err) == ("", True), ran.err

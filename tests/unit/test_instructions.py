"""The gate for instructions, with a stand-in for valgrind that tells a number for each length."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bench import instructions
from bench.instructions import HOT_PATHS, HotPath
from bench.probe import ProbeError

_STAND_IN = """#!{python} -IS
import json, sys
mails = json.loads(sys.argv[-1])["values"]["mails"]
print(f"==1== Collected : {{{each} * mails + 7_000}}", file=sys.stderr)
"""
_MAILS = HotPath(
    name="mail",
    function="bench.w1_messages:floor_accepts",
    values={"senders": 2},
    grows="mails",
    short=1,
    long=3,
    work=2,
)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the kept numbers, while one short path is counted and valgrind is a stand-in."""
    monkeypatch.setattr(instructions, "HOT_PATHS", (_MAILS,))
    monkeypatch.setattr(instructions, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr(instructions, "command", workload_that_does_nothing)
    monkeypatch.setenv("PATH", str(tmp_path))
    valgrind_that_counts(tmp_path, 1_000)
    return tmp_path / "kept.json"


def workload_that_does_nothing(function: str, folder: Path, values: Mapping[str, Any]) -> list[str]:
    del function, folder
    return [sys.executable, "-ISc", "", json.dumps(values)]


def valgrind_that_counts(folder: Path, each: int) -> None:
    program = folder / "valgrind"
    program.write_text(_STAND_IN.format(python=sys.executable, each=each))
    program.chmod(0o755)


def test_the_difference_of_two_lengths_is_divided_by_the_work_between_them(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert instructions.main(["--update"]) == 0
    assert json.loads(kept.read_text()) == {instructions.setup(): {"mail": 500}}
    assert "500" in capsys.readouterr().out


def test_a_path_that_grew_by_more_than_two_percent_fails_and_says_what_to_do(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    instructions.main(["--update"])
    valgrind_that_counts(kept.parent, 1_018)
    assert instructions.main([]) == 0
    valgrind_that_counts(kept.parent, 1_030)
    assert instructions.main([]) == 1
    told = capsys.readouterr().out
    assert "+3.0%" in told
    assert "make instructions UPDATE=1" in told


def test_a_path_that_takes_less_passes_and_asks_to_be_kept(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    instructions.main(["--update"])
    valgrind_that_counts(kept.parent, 900)
    assert instructions.main([]) == 0
    assert "Fewer instructions: mail." in capsys.readouterr().out


@pytest.mark.usefixtures("kept")
def test_where_nothing_is_kept_for_the_interpreter_nothing_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert instructions.main([]) == 0
    assert "Nothing is kept for mail" in capsys.readouterr().out


def test_numbers_of_other_interpreters_stay_when_new_ones_are_kept(kept: Path) -> None:
    kept.write_text('{"another": {"mail": 3}}')
    instructions.main(["--update"])
    assert json.loads(kept.read_text()) == {"another": {"mail": 3}, instructions.setup(): {"mail": 500}}


def test_without_valgrind_a_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert instructions.main([]) == 2
    assert "no `valgrind` here. Install it" in capsys.readouterr().err


def test_a_run_that_fails_is_told_and_compares_nothing(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = kept.parent / "valgrind"
    program.write_text(f"#!{sys.executable} -IS\nimport sys; sys.exit('no such tool')\n")
    assert instructions.main([]) == 2
    assert "no such tool" in capsys.readouterr().err


def test_output_without_a_number_is_refused() -> None:
    with pytest.raises(ProbeError, match="no number of instructions"):
        instructions.collected("==1== Events : Ir")


@pytest.mark.parametrize("path", HOT_PATHS, ids=lambda path: path.name)
def test_each_hot_path_is_a_workload_that_takes_its_values(path: HotPath) -> None:
    module, _, name = path.function.partition(":")
    signature = inspect.signature(getattr(import_module(module), name))
    signature.bind(Path(), **path.values_for(path.long)["values"])
    assert path.short < path.long

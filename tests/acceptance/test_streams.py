"""Standard streams that are closed, full, or have no text: each is told in a sentence, and none ends in a traceback."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.command_stage import LONG_SECONDS, WHISPERER, Ran, run


def in_shell(line: str, *, folder: Path) -> Ran:
    """Run a line of the shell in which `W` is the command."""
    ran = subprocess.run(
        ["bash", "-c", line.replace("W", shlex.join(WHISPERER), 1)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LONG_SECONDS,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("W config --json >&-", 0, ""),
        ("W config --json <&- >&- 2>&-", 0, ""),
        ("W tasks send ann - <&-", 1, "No server runs in the data folder"),
        ("W config > /dev/full", 1, "The operating system refused it: No space left on device."),
        ("mkdir x; cd x; rmdir ../x; W config", 1, "The current folder has been deleted."),
    ],
)
def test_streams_and_folders_that_are_gone_end_in_no_traceback(line: str, code: int, told: str, tmp_path: Path) -> None:
    if "/dev/full" in line and not os.path.exists("/dev/full"):
        pytest.skip("this system has no such device")
    ran = in_shell(line, folder=tmp_path)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert len(ran.err.splitlines()) == (1 if told else 0)


def test_an_input_that_is_no_text_is_told_in_a_sentence() -> None:
    ran = run("tasks", "send", "ann", "-", given=b"Gr\xfc\xdfe")
    assert (ran.code, ran.out) == (2, "")
    assert "The standard input is not UTF-8 text: invalid start byte, at byte 2." in ran.err


def test_json_stays_json_where_the_output_is_not_utf_8() -> None:
    ran = run("config", "--model", "Grüße 🎉", "--json", PYTHONIOENCODING="latin-1")
    values = {each["name"]: each["value"] for each in ran.json["settings"]}
    assert (ran.code, values["model"]) == (0, "Grüße 🎉")

"""The demo, as a newcomer runs it."""

import subprocess
import sys
from pathlib import Path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from ai_whisperer.cli.main import main; sys.exit(main())", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_demo_survives_its_kill_and_delivers_the_report(tmp_path: Path) -> None:
    shown = run("demo", "--data", str(tmp_path))
    assert shown.returncode == 0, shown.stderr
    assert "kill -9" in shown.stdout
    assert "8 comments, average rating 3.25: 4 good, 1 mixed, 3 bad." in shown.stdout
    assert "5 of 5 tasks completed, 9 model requests, 7 tool calls." in shown.stdout
    assert "0 of them were done again" in shown.stdout
    again = run("demo", "--data", str(tmp_path))
    assert again.returncode == 0
    assert "5 of 5 tasks completed" in again.stdout


def test_a_folder_that_cannot_be_used_is_told_in_one_line() -> None:
    shown = run("demo", "--data", "/proc/whisperer")
    assert shown.returncode == 1
    (line,) = shown.stderr.splitlines()
    assert line.startswith("whisperer: The data folder '/proc/whisperer' cannot be written")


def test_the_version_is_told() -> None:
    assert run("--version").stdout == "whisperer 0.1.0\n"

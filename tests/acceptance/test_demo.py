"""The demo, as a newcomer runs it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer.server.address import ADDRESS_FILE
from ai_whisperer.testing.model_server import ModelServer

KEYS = ("OPENAI", "ANTHROPIC", "GOOGLE", "GEMINI", "OPENROUTER", "OLLAMA", "WHISPERER")
PATIENCE_SECONDS = 60
WHISPERER = [sys.executable, "-c", "import sys; from ai_whisperer.cli.main import main; sys.exit(main())"]


def environment(**more: str) -> dict[str, str]:
    """Without keys and settings."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(KEYS)}
    return {**bare, "NO_PROXY": "*", "no_proxy": "*", **more}


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WHISPERER, *arguments],
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def shown(folder: Path) -> str:
    """What a whole demo prints."""
    ended = run("demo", "--once", "--data", str(folder), "--model", "scripted")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stderr == ""
    return ended.stdout


def test_the_first_line_says_which_model_plays(shown: str) -> None:
    assert shown.splitlines()[0].startswith("The model is scripted, the built-in one that plays fixed answers")


def test_the_server_is_killed_in_the_middle_and_nothing_is_lost_or_repeated(shown: str) -> None:
    assert shown.count("kill -9") == 1
    assert re.search(r"^(\d+) of \1 tasks completed,", shown, re.MULTILINE)
    assert re.search(r"\d\d steps were finished: 0 of them were done again, 0 tasks, mails and steps were lost.", shown)


def test_every_workflow_brings_its_result(shown: str) -> None:
    assert "8 comments, average rating 3.25: 4 good, 1 mixed, 3 bad. They like the search" in shown
    assert shown.count("All agents are well. I was told:") == 2
    assert "Passed: one module with count_words, longest_word, most_common_word." in shown
    assert "Debbie answered: Nobody is stuck." in shown
    assert "Nothing has come of it." not in shown


def test_it_is_short_enough_to_be_read(shown: str) -> None:
    assert len(shown.splitlines()) < 50


def test_run_again_on_its_folder_it_finds_everything_done(shown: str, folder: Path) -> None:
    again = run("demo", "--data", str(folder), "--json", "--model", "scripted")
    assert again.returncode == 0, again.stderr
    account = json.loads(again.stdout)
    assert f"{account['completed']} of {account['tasks']} tasks completed" in shown
    assert account["plugPulled"] is False
    assert account["results"]["switch"] in shown


def test_a_model_that_does_otherwise_is_told_of_as_it_was() -> None:
    async def scenario() -> tuple[int | None, str]:
        async with ModelServer(models=["my-model"]) as server:
            process = await asyncio.create_subprocess_exec(
                *WHISPERER,
                *("demo", "--once"),
                env=environment(OPENAI_BASE_URL=server.base_url),
                stdout=subprocess.PIPE,
            )
            printed, _ = await process.communicate()
            return process.returncode, printed.decode()

    code, printed = asyncio.run(scenario())
    assert printed.startswith("The model is openai-chat:my-model (OPENAI_BASE_URL is http://127.0.0.1:")
    assert printed.count("Nothing has come of it.") == 3
    assert code == 1


@pytest.fixture
def playing(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A demo that plays, with its server in another process."""
    command = [*WHISPERER, "demo", "--data", str(tmp_path), "--model", "scripted"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if "starts a task" in line:
                break
        yield process
        process.kill()


def server_of(folder: Path) -> int:
    return int(json.loads((folder / ADDRESS_FILE).read_bytes())["pid"])


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_demo_that_is_interrupted_takes_its_server_with_it(
    playing: subprocess.Popen[str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    server = server_of(tmp_path)
    playing.send_signal(number)
    assert playing.wait(PATIENCE_SECONDS) == code
    assert has_ended(server)
    assert not (tmp_path / ADDRESS_FILE).exists()


def test_the_server_of_a_demo_that_is_killed_leaves_by_itself(playing: subprocess.Popen[str], tmp_path: Path) -> None:
    server = server_of(tmp_path)
    playing.kill()
    playing.wait()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not has_ended(server):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_folder_that_cannot_be_used_is_told_in_one_line() -> None:
    ended = run("demo", "--once", "--data", "/proc/whisperer", "--model", "scripted")
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith("whisperer: The data folder '/proc/whisperer' cannot be written")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("nonsense", "There is no model 'nonsense'."), ("openrouter:x", "needs a key. Set OPENROUTER_API_KEY")],
)
def test_a_model_that_cannot_be_used_is_told_in_one_line(name: str, complaint: str) -> None:
    ended = run("demo", "--once", "--model", name)
    assert (ended.returncode, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    assert complaint in line


def test_the_version_is_told() -> None:
    assert run("--version").stdout == "whisperer 0.1.0\n"

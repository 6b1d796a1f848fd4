"""The demo, as a newcomer runs it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer.cli.commands.demo import way_back
from ai_whisperer.cli.main import main
from ai_whisperer.server.address import ADDRESS_FILE
from ai_whisperer.testing.model_server import ModelServer
from tests.acceptance.command_stage import LONG_SECONDS, WHISPERER, Process, run, running
from tests.acceptance.mcp_stage import is_alive


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def shown(folder: Path) -> str:
    """What a whole demo prints."""
    ended = run("demo", "--once", "--data", str(folder), "--model", "scripted")
    assert (ended.code, ended.err) == (0, ""), ended
    return ended.out


def test_the_first_line_says_which_model_plays(shown: str) -> None:
    assert shown.splitlines()[0].startswith("The model is scripted, the built-in one with fixed answers")


def test_the_server_is_killed_in_the_middle_and_nothing_is_lost_or_repeated(shown: str) -> None:
    assert shown.count("kill -9") == 1
    assert re.search(r"^(\d+) of \1 tasks completed,", shown, re.MULTILINE)
    assert re.search(r"\d\d steps were finished: 0 of them were done again, 0 tasks, mails and steps were lost.", shown)


def test_every_workflow_brings_its_result(shown: str) -> None:
    assert "8 comments, average rating 3.25: 4 good, 1 mixed, 3 bad. They like the search" in shown
    assert shown.count("All agents are well. I was told:") == 2
    assert "Passed: one module with count_words, longest_word, most_common_word." in shown
    assert "Debbie answered: Nobody is stuck." in shown
    assert "There is no result." not in shown


def test_at_its_end_it_says_that_the_server_has_left_and_how_to_see_the_agents(shown: str, folder: Path) -> None:
    assert shown.splitlines()[-1] == (
        "The demo has ended, and its server and its page with it. Look at the agents again: "
        f"whisperer serve --data {folder}"
    )


def test_a_demo_in_a_temporary_folder_says_how_its_server_can_be_kept() -> None:
    told = way_back(None)
    assert "In a terminal and without --once they stay" in told
    assert "--data FOLDER" in told


def test_it_is_short_enough_to_be_read(shown: str) -> None:
    assert len(shown.splitlines()) < 50


def test_run_again_on_its_folder_it_finds_everything_done(shown: str, folder: Path) -> None:
    again = run("demo", "--data", str(folder), "--json", "--model", "scripted")
    assert again.code == 0, again.err
    account = again.json
    assert f"{account['completed']} of {account['tasks']} tasks completed" in shown
    assert account["plugPulled"] is False
    assert account["results"]["switch"] in shown


def test_a_model_that_does_otherwise_is_told_of_as_it_was() -> None:
    async def scenario() -> tuple[int | None, str]:
        async with ModelServer(models=["my-model"]) as server:
            process = await asyncio.create_subprocess_exec(
                *WHISPERER,
                *("demo", "--once"),
                env={**os.environ, "OPENAI_BASE_URL": server.base_url},
                stdout=subprocess.PIPE,
            )
            async with asyncio.timeout(LONG_SECONDS):
                printed, _ = await process.communicate()
            return process.returncode, printed.decode()

    code, printed = asyncio.run(scenario())
    assert printed.startswith("The model is openai-chat:my-model (OPENAI_BASE_URL is http://127.0.0.1:")
    assert printed.count("There is no result.") == 3
    assert code == 1


@pytest.fixture
def playing(tmp_path: Path) -> Iterator[Process]:
    """A demo that plays, with its server in another process, which stays the same: its plug was pulled already."""
    with running("demo", "--data", str(tmp_path), "--model", "scripted", folder=tmp_path) as process:
        process.line_with("The server is back")
        yield process


def server_of(folder: Path) -> int:
    return int(json.loads((folder / ADDRESS_FILE).read_bytes())["pid"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_interrupted_takes_its_server_with_it(
    playing: Process, tmp_path: Path, number: signal.Signals
) -> None:
    server = server_of(tmp_path)
    playing.signal(number)
    assert playing.ended().code == 128 + number
    assert not is_alive(server)
    assert not (tmp_path / ADDRESS_FILE).exists()


def test_the_server_of_a_demo_that_is_killed_leaves_by_itself(playing: Process, tmp_path: Path) -> None:
    server = server_of(tmp_path)
    playing.signal(signal.SIGKILL)
    playing.ended()
    deadline = time.monotonic() + LONG_SECONDS
    while is_alive(server):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_whoever_asks_twice_has_the_demo_leave_at_once_and_nothing_stays(tmp_path: Path) -> None:
    temporary = {"TMPDIR": str(tmp_path)}
    with running("demo", "--model", "scripted", folder=tmp_path, environment=temporary) as demo:
        demo.line_with("started a task")
        (folder,) = tmp_path.glob("whisperer-demo-*")
        server = server_of(folder)
        os.kill(server, signal.SIGSTOP)  # it cannot leave cleanly
        demo.signal(signal.SIGINT)
        demo.error_with("A second signal ends it at once.")
        demo.signal(signal.SIGINT)
        assert demo.ended().code == 130
    assert not is_alive(server)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_dies_by_itself_ends_the_demo_with_a_sentence(playing: Process, tmp_path: Path) -> None:
    os.kill(server_of(tmp_path), signal.SIGKILL)
    ended = playing.ended()
    assert (ended.code, ended.err) == (1, "whisperer: The server of the demo has ended by itself.\n")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process can be set on Linux only")
def test_the_reason_that_its_server_tells_is_the_demos(playing: Process, tmp_path: Path) -> None:
    resource.prlimit(server_of(tmp_path), resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    run("agents", "create", "late", "--data", str(tmp_path))  # something to commit, should all else be done already
    ended = playing.ended()
    (line,) = ended.err.splitlines()
    assert (ended.code, line.startswith("whisperer: A commit failed")) == (1, True)


def test_a_reader_that_goes_away_ends_the_demo_without_a_word(tmp_path: Path) -> None:
    command = [*WHISPERER, "demo", "--once", "--data", str(tmp_path), "--model", "scripted"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        demo.stdout.readline()
        demo.stdout.close()
        try:
            assert demo.stderr is not None
            assert demo.stderr.read() == ""
            assert demo.wait(LONG_SECONDS) == 1
        finally:
            demo.kill()


def test_a_folder_that_cannot_be_used_is_told_in_one_line() -> None:
    ended = run("demo", "--once", "--data", "/proc/whisperer", "--model", "scripted")
    assert ended.code == 1
    (line,) = ended.err.splitlines()
    assert line.startswith("whisperer: The data folder '/proc/whisperer' cannot be written")


def test_a_port_that_is_taken_keeps_its_code() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = run("demo", "--json", "--port", port, "--model", "scripted")
    assert (ended.code, ended.error["code"]) == (1, "port")


def test_the_port_that_the_help_tells_is_the_one_that_is_taken() -> None:
    told = " ".join(run("demo", "--help").out.split())
    assert "a free one if unset" in told
    assert "8642" not in told


def test_the_port_of_a_server_is_not_the_demos(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with running("demo", "--model", "scripted", folder=tmp_path, environment={"WHISPERER_PORT": port}) as demo:
            demo.line_with("Page: ")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("nonsense", "There is no model 'nonsense'."), ("openrouter:x", "needs a key. Set OPENROUTER_API_KEY")],
)
def test_a_model_that_cannot_be_used_is_told_in_one_line(
    name: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--once", "--model", name]) == 1
    told = capsys.readouterr()
    (line,) = told.err.splitlines()
    assert (told.out, complaint in line) == ("", True)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "whisperer 0.1.0\n"

"""The command line where no server runs: settings, help, and how to get one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from ai_whisperer.cli.main import main
from ai_whisperer.server.address import ADDRESS_FILE, Address, find_address
from ai_whisperer.store.folder_lock import FolderLock, lock_folder
from tests.acceptance.command_stage import LONG_SECONDS, Whisperer, complete


def test_without_a_server_nothing_is_completed_and_nothing_said(tmp_path: Path) -> None:
    assert complete(f"whisperer --data {tmp_path} pause a") == ""
    assert complete("whisperer tas") == "tasks"


def test_without_a_server_it_is_told_how_to_start_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Whisperer(tmp_path, capsys)("agents")
    assert (ran.code, ran.out) == (1, "")
    assert "Start one there with `whisperer serve`" in ran.err


def test_a_server_that_was_killed_is_not_taken_for_another_process_of_its_number(tmp_path: Path) -> None:
    left = Address(url="http://127.0.0.1:1", token="", pid=os.getpid())
    (tmp_path / ADDRESS_FILE).write_bytes(msgspec.json.encode(left))
    assert find_address(tmp_path) is None
    lock = FolderLock(tmp_path)
    assert find_address(tmp_path) == left
    lock.release()


def test_the_address_of_a_server_that_was_killed_is_not_that_of_whoever_has_the_folder_now(tmp_path: Path) -> None:
    left = Address(url="http://127.0.0.1:1", token="", pid=os.getpid() + 1)
    (tmp_path / ADDRESS_FILE).write_bytes(msgspec.json.encode(left))
    lock = FolderLock(tmp_path)
    assert find_address(tmp_path) is None
    lock.release()


def test_whoever_opens_the_folder_removes_the_address_of_a_server_that_was_killed(tmp_path: Path) -> None:
    left = Address(url="http://127.0.0.1:1", token="", pid=os.getpid())
    (tmp_path / ADDRESS_FILE).write_bytes(msgspec.json.encode(left))
    lock = lock_folder(tmp_path)
    assert find_address(tmp_path) is None, "though it is of the same number, as in a container"
    lock.release()


def test_the_settings_are_shown_with_their_sources_and_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHISPERER_TOKEN", "top-secret-token")
    Path("whisperer.toml").write_text('model = "scripted"\n', encoding="utf-8")
    assert main(["config", "--port", "9000", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    values = {each["name"]: (each["value"], each["source"]) for each in shown["settings"]}
    assert shown["file"] == str(tmp_path / "whisperer.toml")
    assert values["port"] == (9000, "flag --port")
    assert values["token"] == ("[secret]", "environment WHISPERER_TOKEN")
    assert values["model"] == ("scripted", "whisperer.toml")
    assert values["host"] == ("127.0.0.1", "default")
    assert main(["config"]) == 0
    table = capsys.readouterr().out
    assert "top-secret-token" not in table
    assert any(line.split()[:3] == ["model", "scripted", "whisperer.toml"] for line in table.splitlines())


def test_an_unknown_setting_is_an_error_that_suggests_the_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("whisperer.toml").write_text("prot = 1\n", encoding="utf-8")
    assert main(["config"]) == 1
    assert "Did you mean port?" in capsys.readouterr().err


def test_help_is_plain_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "send", "-h"]) == 0
    told = capsys.readouterr().out
    assert "Give an agent a task" in told
    assert "--session TEXT" in told
    assert told.isascii()
    assert main([]) == 2
    assert "Usage: whisperer" in capsys.readouterr().out


def test_little_is_loaded_to_show_the_version_and_the_help() -> None:
    program = (
        "import sys\n"
        "from ai_whisperer.cli.main import main\n"
        "codes = [main(['--help']), main(['--version']), main(['config'])]\n"
        "heavy = ('uvicorn', 'starlette', 'pydantic_ai', 'websockets', 'httpx', 'yaml', 'apsw')\n"
        "print(codes, [name for name in heavy if name in sys.modules])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=LONG_SECONDS, check=True
    )
    assert ran.stdout.splitlines()[-1] == "[0, 0, 0] []"

"""What a server keeps in `.whisperer` is not committed to git by accident; what people write there is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ai_whisperer.cli.commands.page import DOOR
from tests.acceptance.command_stage import Whisperer, serving

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_the_token_and_the_data_stay_out_of_git_and_what_people_write_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / ".whisperer"
    for written in ("agents/poet.md", "tools/stock.py", "whisperer.toml"):
        (data / written).parent.mkdir(parents=True, exist_ok=True)
        (data / written).touch()
    git(tmp_path, "init", "--quiet")
    (data / DOOR).touch()  # it has the token in it
    with serving(data):
        whisperer = Whisperer(data, capsys)
        whisperer.ok("agents", "create", "ann")
        whisperer.ok("tasks", "send", "ann", "work", "--wait")
        kept = {str(path.relative_to(data)) for path in data.rglob("*") if path.is_file()}
        assert {"token", "server.json", "whisperer.db", "whisperer.db-wal", "whisperer.lock"} <= kept
        seen = set(git(data, "ls-files", "--others", "--exclude-standard").split())
        assert seen == {".gitignore", "agents/poet.md", "tools/stock.py", "whisperer.toml", "rules.yaml"}


def test_a_gitignore_of_the_user_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine")
    with serving(tmp_path):
        assert (tmp_path / ".gitignore").read_text() == "mine"

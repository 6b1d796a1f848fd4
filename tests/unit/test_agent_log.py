"""What is in the log of an agent, how a notification looks in it, and the file that it can be written to."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.core.agent_log import agents_of, checked_level, log_entry, reaches
from ai_whisperer.domain.levels import Level
from ai_whisperer.domain.notification import Notification
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.secrets import redactor
from ai_whisperer.server.log_file import LogFile
from tests.unit.log_stage import note, of_agent


def entry(told: Notification) -> dict[str, Any]:
    return log_entry(told, "ada", redactor())


def test_an_entry_says_when_what_happened_to_whom_and_why() -> None:
    told = of_agent(name="async.task.started", seq=7, kind="user_task")
    assert entry(told) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "session": "s",
        "agent": "ada",
        "event": "async.task.started",
        "text": "ada started a task (user task)",
        "seq": 7,
        "cause": "task:t",
        "params": {"agentId": "ada", "kind": "user_task"},
    }


@pytest.mark.parametrize("name", ["agent.unheard_of", "lock.waiting", "room.message", "async.task.error"])
def test_what_has_no_words_or_lacks_what_they_tell_is_told_by_its_name(name: str) -> None:
    assert entry(of_agent(name=name))["text"] == name


def test_a_notification_is_in_the_log_of_the_agent_that_it_is_about_and_a_mail_in_those_of_both_sides() -> None:
    assert agents_of(of_agent("ada", sender="bob")) == ["ada"]
    assert agents_of(note("mail.sent", sender="ada", recipient="bob")) == ["ada", "bob"]
    assert agents_of(note("mail.sent", sender="user", recipient="ada")) == ["ada"]
    assert agents_of(note("mail.sent", sender="ada", recipient="ada")) == ["ada"]
    for told in (
        note("room.created", roomId="r"),
        note("schedule.created", agentId=None),
        note("event.broadcast", sender="schedule:1"),
        note("event.broadcast", sender="user"),
        note("agent.created", agentId="../x"),
    ):
        assert agents_of(told) == []


def test_pieces_of_a_stream_are_in_no_log() -> None:
    assert agents_of(note("async.task.delta", seq=0, agentId="ada", text="x")) == []


@pytest.mark.parametrize(
    ("level", "events"),
    [
        ("debug", ["step.started", "mail.state_changed", "agent.started", "schedule.missed", "async.task.error"]),
        ("info", ["agent.started", "schedule.missed", "async.task.error"]),
        ("warning", ["schedule.missed", "async.task.error"]),
        ("error", ["async.task.error"]),
    ],
)
def test_the_level_says_what_is_left_out(level: Level, events: list[str]) -> None:
    names = ["step.started", "mail.state_changed", "agent.started", "schedule.missed", "async.task.error"]
    assert [name for name in names if reaches(name, level)] == events


def test_a_level_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidInputError, match=r"no level 'loud'\. Levels: debug, info, warning, error\."):
        checked_level("loud")


def test_long_texts_are_cut_and_their_length_is_told() -> None:
    assert entry(of_agent(text="z" * 2_048))["params"]["text"] == "z" * 2_048
    assert entry(of_agent(text="é" * 5_000))["params"]["text"] == "é" * 2_048 + "… [cut: 5,000 characters in all]"
    assert entry(of_agent(many=["y" * 2_000] * 100))["params"].keys() == {"cut"}  # all in all too long


def test_data_that_is_nested_too_deeply_is_left_out() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    assert entry(of_agent(data=deep))["params"] == {"cut": "nested too deeply"}


def test_secrets_are_not_logged_even_where_a_text_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    canary = "canary-0123456789"
    monkeypatch.setenv("SOME_TOKEN", canary)
    for text in (canary, f"{'x' * 2_020}{canary}{'x' * 2_000}"):
        told = of_agent(name="agent.paused", reason=text, headers={"Authorization": "short"})
        shown = str(entry(told))
        assert shown.count("[secret]") == 3  # in its words, too
        assert "canary" not in shown
        assert "short" not in shown


class Log:
    """A log file, and what was told when it could not be written."""

    def __init__(self, path: Path, *, max_bytes: int = 1_000, backups: int = 2) -> None:
        self.told: list[str] = []
        self.file = LogFile(path, max_bytes=max_bytes, backups=backups, on_failure=self.told.append)

    def write(self, *lines: str) -> None:
        for line in lines:
            self.file.handle(logging.makeLogRecord({"msg": line}))


def test_a_full_file_is_put_aside_and_only_so_many_are_kept(tmp_path: Path) -> None:
    log = Log(tmp_path / "logs" / "a.log")
    log.write(*(f"{number:0300}" for number in range(20)))
    log.file.close()
    files = sorted((tmp_path / "logs").iterdir())
    assert [file.name for file in files] == ["a.log", "a.log.1", "a.log.2"]
    assert all(file.stat().st_size <= 1_000 for file in files)
    assert int(files[0].read_text().split()[-1]) == 19


def test_with_no_backups_a_full_file_gives_way(tmp_path: Path) -> None:
    log = Log(tmp_path / "a.log", backups=0)
    log.write(*(f"{number:0300}" for number in range(20)))
    log.file.close()
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size <= 1_000
    assert int(file.read_text().split()[-1]) == 19


def test_a_line_longer_than_a_file_is_written_whole(tmp_path: Path) -> None:
    log = Log(tmp_path / "a.log", max_bytes=1, backups=5)
    log.write("first", "second", "third")
    log.file.close()
    assert [file.read_text() for file in sorted(tmp_path.iterdir())] == ["third\n", "second\n", "first\n"]


def test_only_the_owner_can_read_the_logs(tmp_path: Path) -> None:
    log = Log(tmp_path / "logs" / "a.log")
    log.write("x")
    log.file.close()
    assert (tmp_path / "logs").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "logs/a.log").stat().st_mode & 0o777 == 0o600


def test_a_log_that_is_removed_begins_again(tmp_path: Path) -> None:
    log = Log(tmp_path / "logs" / "a.log")
    log.write("1")
    (tmp_path / "logs" / "a.log").unlink()
    (tmp_path / "logs").rmdir()
    log.write("2")
    log.file.close()
    assert (tmp_path / "logs" / "a.log").read_text() == "2\n"


def test_a_folder_that_cannot_be_made_is_told_once_and_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    log = Log(tmp_path / "logs" / "a.log")
    log.write("1", "2")
    assert len(log.told) == 1
    assert "a.log' cannot be written" in log.told[0]
    os.unlink(tmp_path / "logs")
    log.write("3")
    log.file.close()
    assert (tmp_path / "logs" / "a.log").read_text() == "3\n"

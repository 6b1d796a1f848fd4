"""Agents' logs: what is written, where, and what happens when it cannot be."""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from ai_whisperer.domain.notifications.base import Level
from ai_whisperer.errors import StoreError
from ai_whisperer.server import agent_logs
from ai_whisperer.server.agent_logs import AgentLogs
from ai_whisperer.server.log_files import LogFiles, log_path
from tests.unit.log_stage import lines_in, log, logs_in, note, of_agent

OPEN_FILES = Path("/proc/self/fd")
HOSTILE = ["../../x", "/etc/passwd", "..", ".", "", "a/b", "a\\b", "ünï ✓", "%2E%2E", "~", "x" * 200, "é" * 100, "a\0b"]


def test_an_entry_says_when_who_what_and_why(tmp_path: Path) -> None:
    log(tmp_path, [note("async.task.started", seq=7, agentId="ada", taskId="t1", extra={"deep": [1, None]})])
    assert lines_in(tmp_path / "logs" / "s" / "ada.log") == [
        {
            "time": "2023-11-14T22:13:20.250Z",
            "level": "info",
            "session": "s",
            "agent": "ada",
            "event": "async.task.started",
            "seq": 7,
            "cause": "task:t",
            "params": {"agentId": "ada", "taskId": "t1", "extra": {"deep": [1, None]}},
        }
    ]


def test_each_agent_has_its_own_file_and_the_rest_is_the_sessions(tmp_path: Path) -> None:
    notes = [
        of_agent("ada"),
        of_agent("Bob-2.x"),
        note("room.created", roomId="r"),
        note("schedule.created", agentId=None),
        note("mail.sent", sender="ada", recipient="bob"),
        note("mail.sent", sender="user", recipient="ada"),
        note("mail.sent", sender="ada", recipient="user"),
        note("event.broadcast", sender="schedule:1"),
        note("event.broadcast", sender="user"),
        of_agent("ada", session="other"),
    ]
    log(tmp_path, notes)
    folder = tmp_path / "logs"
    seqs = {str(path.relative_to(folder)): [line["seq"] for line in lines_in(path)] for path in folder.rglob("*.log")}
    all_of = [each.seq for each in notes]
    assert seqs == {
        "s/ada.log": [all_of[at] for at in (0, 4, 5, 6)],
        "s/%42ob-2.x.log": [all_of[1]],
        "s/bob.log": [all_of[4]],
        "s/session.log": [all_of[at] for at in (2, 3, 7, 8)],
        "other/ada.log": [all_of[9]],
    }


@pytest.mark.parametrize(
    ("level", "events"),
    [
        ("debug", ["step.started", "mail.state_changed", "agent.started", "schedule.missed", "async.task.error"]),
        ("info", ["agent.started", "schedule.missed", "async.task.error"]),
        ("warning", ["schedule.missed", "async.task.error"]),
        ("error", ["async.task.error"]),
    ],
)
def test_the_level_says_what_is_left_out(tmp_path: Path, level: Level, events: list[str]) -> None:
    names = ["step.started", "mail.state_changed", "agent.started", "schedule.missed", "async.task.error"]
    log(tmp_path, [of_agent(name=name) for name in names], level=level)
    assert [line["event"] for line in lines_in(tmp_path / "logs/s/ada.log")] == events


def test_pieces_of_a_stream_are_not_logged(tmp_path: Path) -> None:
    log(tmp_path, [note("async.task.delta", seq=0, agentId="ada", text="x"), of_agent()], level="debug")
    assert len(lines_in(tmp_path / "logs/s/ada.log")) == 1


def test_long_texts_are_cut_and_their_length_is_told(tmp_path: Path) -> None:
    log(tmp_path, [of_agent(text="é" * 5_000, many=["y" * 2_000] * 100), of_agent(text="z" * 2_048)])
    first, second = lines_in(tmp_path / "logs/s/ada.log")
    assert first["params"].keys() == {"cut"}  # all in all too long
    assert second["params"]["text"] == "z" * 2_048
    log(tmp_path, [of_agent("eve", text="é" * 5_000)])
    (third,) = lines_in(tmp_path / "logs/s/eve.log")
    assert third["params"]["text"] == "é" * 2_048 + "… [cut: 5,000 characters in all]"


def test_data_that_is_nested_too_deeply_costs_only_itself(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    log(tmp_path, [of_agent(data=deep), of_agent()])
    first, second = lines_in(tmp_path / "logs/s/ada.log")
    assert first["params"] == {"cut": "nested too deeply"}
    assert "taskId" not in second["params"]


def test_secrets_are_not_logged_even_where_a_text_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = "canary-0123456789"
    monkeypatch.setenv("SOME_TOKEN", canary)
    texts = [canary, f"{'x' * 2_040}{canary}{'x' * 2_000}"]
    log(tmp_path, [of_agent(text=text, headers={"Authorization": "short"}) for text in texts])
    written = (tmp_path / "logs/s/ada.log").read_text()
    assert written.count("[secret]") == 4
    assert "canary" not in written
    assert "short" not in written


@pytest.mark.parametrize("session", HOSTILE)
def test_no_name_leaves_the_folder_of_logs(tmp_path: Path, session: str) -> None:
    data = tmp_path / "data"
    log(data, [note("room.created", session=session), note("agent.created", session=session, agentId="../x")])
    (file,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert file.parent.parent == data / "logs"
    assert file.name == "session.log"
    assert len(lines_in(file)) == 2


def test_different_names_have_different_files() -> None:
    names = [*HOSTILE, "%", "%25", "x" * 199, "é" * 99 + "e", "server.log", "SERVER.LOG.1", "default", "Default"]
    assert len({log_path(Path(), name, None) for name in names}) == len(names)


def test_an_agent_called_session_and_a_session_called_server_log_have_their_own(tmp_path: Path) -> None:
    log(tmp_path, [of_agent("session"), of_agent("Session"), note("room.created")])
    assert [line["event"] for line in lines_in(tmp_path / "logs/s/session.log")] == ["room.created"]
    assert {path.name for path in (tmp_path / "logs/s").iterdir()} == {"session.log", "%73ession.log", "%53ession.log"}
    assert log_path(tmp_path, "server.log", None).parent.name == "%73erver.log"
    assert log_path(tmp_path, "x", "sessions").name == "sessions.log"


def test_a_full_file_is_put_aside_and_only_so_many_are_kept(tmp_path: Path) -> None:
    for round_ in range(20):
        log(tmp_path, [of_agent(round=round_, text="x" * 300) for _ in range(2)], max_bytes=1_000, backups=2)
    files = sorted((tmp_path / "logs/s").iterdir())
    assert [file.name for file in files] == ["ada.log", "ada.log.1", "ada.log.2"]
    assert all(file.stat().st_size <= 1_000 for file in files)
    rounds = [line["params"]["round"] for file in files for line in lines_in(file) if "params" in line]
    assert rounds[0] == 19
    assert lines_in(files[0])[0]["event"] == "log.continued"


def test_with_no_backups_a_full_file_gives_way(tmp_path: Path) -> None:
    log(tmp_path, [of_agent(number=number, text="x" * 300) for number in range(10)], max_bytes=1_000, backups=3)
    log(tmp_path, [of_agent(number=number, text="x" * 300) for number in range(10)], max_bytes=1_000, backups=0)
    (file,) = (tmp_path / "logs/s").iterdir()
    assert lines_in(file)[-1]["params"]["number"] == 9


def test_a_line_longer_than_a_file_is_written_whole(tmp_path: Path) -> None:
    log(tmp_path, [of_agent(number=number, text="x" * 300) for number in range(3)], max_bytes=1, backups=5)
    numbers = [
        line["params"]["number"]
        for file in sorted((tmp_path / "logs/s").iterdir())
        for line in lines_in(file)
        if "params" in line
    ]
    assert numbers == [2, 1, 0]


def test_after_a_restart_the_log_goes_on_even_behind_a_torn_line(tmp_path: Path) -> None:
    log(tmp_path, [of_agent(number=1)])
    file = tmp_path / "logs/s/ada.log"
    with file.open("ab") as torn:
        torn.write(b'{"time": "20')
    log(tmp_path, [of_agent(number=2)])
    lines = file.read_bytes().splitlines()
    assert [msgspec.json.decode(line)["params"]["number"] for line in (lines[0], lines[2])] == [1, 2]
    assert len(lines) == 3


def test_only_the_owner_can_read_the_logs(tmp_path: Path) -> None:
    log(tmp_path, [of_agent()])
    assert (tmp_path / "logs").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "logs/s/ada.log").stat().st_mode & 0o777 == 0o600


def test_a_log_that_is_removed_begins_again(tmp_path: Path) -> None:
    files = LogFiles(max_bytes=1_000, backups=1)
    path = tmp_path / "logs" / "s" / "ada.log"
    assert files.append(path, [b"1\n"]) == (1, None)
    path.unlink()
    path.parent.rmdir()
    assert files.append(path, [b"2\n"]) == (1, None)
    files.close()
    assert path.read_bytes() == b"2\n"


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="this system does not tell which files are open")
def test_not_more_than_64_files_are_open(tmp_path: Path) -> None:
    def open_logs() -> int:
        links = [Path(os.path.realpath(each)) for each in OPEN_FILES.iterdir()]
        return sum(link.is_relative_to(tmp_path) for link in links)

    files = LogFiles(max_bytes=1_000, backups=1)
    for number in range(200):
        files.append(tmp_path / "logs" / "s" / f"{number}.log", [b"x\n"])
    assert open_logs() == 64
    files.close()
    assert open_logs() == 0


class StuckFiles(LogFiles):
    """A disk that holds the writer up each time until it is let go, and that fails at first."""

    reached = threading.Semaphore(0)
    gate = threading.Semaphore(0)
    failures: ClassVar[list[OSError]] = []

    def append(self, path: Path, lines: Sequence[bytes]) -> tuple[int, OSError | None]:
        self.reached.release()
        self.gate.acquire(timeout=30)
        return (0, self.failures.pop()) if self.failures else super().append(path, lines)


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> type[StuckFiles]:
    monkeypatch.setattr(StuckFiles, "reached", threading.Semaphore(0))
    monkeypatch.setattr(StuckFiles, "gate", threading.Semaphore(0))
    monkeypatch.setattr(StuckFiles, "failures", [])
    monkeypatch.setattr(agent_logs, "LogFiles", StuckFiles)
    monkeypatch.setattr(agent_logs, "_MAX_WAITING", 10)
    return StuckFiles


def test_behind_a_slow_disk_the_oldest_details_give_way_and_the_loss_is_told(
    tmp_path: Path, stuck: type[StuckFiles]
) -> None:
    with logs_in(tmp_path, level="debug") as logs:
        logs.write([of_agent(number=0)])
        assert stuck.reached.acquire(timeout=30)
        for number in range(1, 31):
            logs.write([of_agent(name="step.started" if number % 2 else "agent.started", number=number)])
        stuck.gate.release(10)
    lines = lines_in(tmp_path / "logs/s/ada.log")
    assert lines[1]["event"] == "log.lost"
    assert lines[1]["level"] == "warning"
    assert lines[1]["params"] == {"lines": 20}
    assert [line["params"]["number"] for line in lines if "number" in line["params"]] == [0, *range(12, 31, 2)]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_fails_is_reported_once_and_its_loss_is_told_when_it_is_back(
    tmp_path: Path, stuck: type[StuckFiles], caplog: pytest.LogCaptureFixture, code: int
) -> None:
    stuck.failures.extend(OSError(code, os.strerror(code)) for _ in range(2))
    with logs_in(tmp_path) as logs:
        for notes in ([of_agent(number=0), of_agent(number=1)], [of_agent(number=2)]):
            logs.write(notes)
            assert stuck.reached.acquire(timeout=30)
            stuck.gate.release()
        logs.write([of_agent(number=3)])
        stuck.gate.release(10)
    (record,) = [each for each in caplog.records if each.name.startswith("ai_whisperer")]
    assert record.levelno == logging.WARNING
    assert os.strerror(code) in record.getMessage()
    lines = lines_in(tmp_path / "logs/s/ada.log")
    assert [line["params"] for line in lines] == [{"lines": 3}, {"agentId": "ada", "number": 3}]


def test_a_folder_that_cannot_be_made_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "logs").write_text("in the way")
    log(tmp_path, [of_agent(), of_agent("bob")])
    assert caplog.text.count("cannot be written") == 1


def test_what_comes_after_the_end_is_not_taken(tmp_path: Path) -> None:
    logs = AgentLogs(tmp_path)
    logs.write([of_agent()])
    logs.close()
    logs.write([of_agent()])
    logs.close()
    assert len(lines_in(tmp_path / "logs/s/ada.log")) == 1
    assert "whisperer-agent-logs" not in {thread.name for thread in threading.enumerate()}


def test_every_note_is_written_once_and_in_order_under_load(tmp_path: Path) -> None:
    notes = [of_agent(f"a{number % 100}", number=number) for number in range(3_000)]
    with logs_in(tmp_path) as logs:
        for start in range(0, 3_000, 7):
            logs.write(notes[start : start + 7])
    for agent in range(100):
        numbers = [line["params"]["number"] for line in lines_in(tmp_path / f"logs/s/a{agent}.log")]
        assert numbers == list(range(agent, 3_000, 100))


def seqs_in(file: Path) -> list[int]:
    return [line["seq"] for line in lines_in(file) if "seq" in line]


def test_a_log_goes_on_where_it_ended_when_the_process_died_without_a_line_twice(tmp_path: Path) -> None:
    notes = [of_agent(("ada", "bob")[seq % 2], seq=seq) for seq in range(1, 31)]
    log(tmp_path, notes[:10])
    with logs_in(tmp_path) as logs:
        after = logs.resume("s", last_seq=20)
        assert after < 10
        logs.write(notes[after:20])
        logs.write(notes[20:])
    assert seqs_in(tmp_path / "logs/s/ada.log") == list(range(2, 31, 2))
    assert seqs_in(tmp_path / "logs/s/bob.log") == list(range(1, 31, 2))


def test_what_a_batch_that_was_cut_short_wrote_to_some_files_only_is_written_to_the_others(tmp_path: Path) -> None:
    notes = [of_agent(("ada", "bob")[seq % 2], seq=seq) for seq in range(1, 21)]
    log(tmp_path, [each for each in notes if each.params["agentId"] == "ada" or each.seq < 10])
    with logs_in(tmp_path) as logs:
        logs.write(notes[logs.resume("s", last_seq=20) :])
    assert seqs_in(tmp_path / "logs/s/ada.log") == list(range(2, 21, 2))
    assert seqs_in(tmp_path / "logs/s/bob.log") == list(range(1, 21, 2))


def test_a_session_that_is_opened_again_at_once_finds_the_lines_that_were_on_their_way(tmp_path: Path) -> None:
    notes = [of_agent(seq=seq) for seq in range(1, 6)]
    with logs_in(tmp_path) as logs:
        for _ in range(3):
            logs.write(notes[logs.resume("s", last_seq=5) :])
    assert seqs_in(tmp_path / "logs/s/ada.log") == [1, 2, 3, 4, 5]


def test_of_a_long_session_without_logs_only_the_last_lines_are_caught_up(tmp_path: Path) -> None:
    with logs_in(tmp_path) as logs:
        assert (logs.resume("s", last_seq=7), logs.resume("s", last_seq=1_000_000)) == (0, 998_000)


def test_the_end_of_a_log_that_was_put_aside_counts(tmp_path: Path) -> None:
    log(tmp_path, [of_agent(seq=seq, padding="x" * 400) for seq in range(1, 6)], max_bytes=600)
    with logs_in(tmp_path, max_bytes=600) as logs:
        logs.resume("s", last_seq=6)
        logs.write([of_agent(seq=seq, padding="x" * 400) for seq in range(1, 7)])
    folder = tmp_path / "logs/s"
    assert [seqs_in(folder / f"ada.log{end}") for end in ("", ".1", ".2", ".3")] == [[6], [5], [4], [3]]


def test_lines_of_another_life_of_the_session_do_not_count(tmp_path: Path) -> None:
    log(tmp_path, [of_agent(seq=500)])
    with logs_in(tmp_path) as logs:
        assert logs.resume("s", last_seq=2) == 0
        logs.write([of_agent(seq=seq) for seq in (1, 2)])
    assert seqs_in(tmp_path / "logs/s/ada.log") == [500, 1, 2]


def test_the_logs_of_a_session_that_is_gone_are_removed_with_what_was_on_its_way(tmp_path: Path) -> None:
    with logs_in(tmp_path) as logs:
        logs.write([of_agent(seq=1), of_agent(session="other", seq=1)])
        logs.resume("s", last_seq=1)
        logs.write([of_agent(seq=2)])
        logs.remove("s")
        assert not (tmp_path / "logs/s").exists()
        logs.remove("s")
        logs.write([of_agent("eve", seq=1)])
    assert [path.name for path in (tmp_path / "logs/s").iterdir()] == ["eve.log"]
    assert seqs_in(tmp_path / "logs/other/ada.log") == [1]


def test_logs_that_cannot_be_removed_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(LogFiles, "remove", refuse)
    with logs_in(tmp_path) as logs, pytest.raises(StoreError, match=r"cannot be removed \(Permission denied"):
        logs.remove("s")

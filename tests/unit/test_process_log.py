"""The log of the process: lines of JSON for programs, one line for people, no secret in either."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.server import process_log
from ai_whisperer.server.log_file import LogFile
from ai_whisperer.server.process_log import ProcessLog, setup_logging
from tests.unit.log_stage import lines_in

OURS = logging.getLogger("ai_whisperer.runtime.somewhere")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ProcessLog]:
    log = setup_logging(tmp_path)
    yield log
    log.close()


def written(log: ProcessLog, tmp_path: Path) -> list[dict[str, Any]]:
    log.flush()
    return lines_in(tmp_path / "logs/server.log")


def fail(logger: logging.Logger, words: str) -> None:
    try:
        int(words)
    except ValueError:
        logger.exception("it failed:\n%s", "here")


def test_a_record_is_a_line_of_json(log: ProcessLog, tmp_path: Path) -> None:
    OURS.info("agent %s is there", "ada", extra={"request_id": "r1"})
    (line,) = written(log, tmp_path)
    assert line.pop("time").endswith("Z")
    assert line == {"level": "info", "logger": OURS.name, "message": "agent ada is there", "request_id": "r1"}


def test_the_server_and_the_event_loop_are_logged_and_other_libraries_only_when_they_warn(
    log: ProcessLog, tmp_path: Path
) -> None:
    for name in ("uvicorn.error", "asyncio", "httpx"):
        logging.getLogger(name).info("info of %s", name)
        logging.getLogger(name).warning("warning of %s", name)
    messages = [line["message"] for line in written(log, tmp_path)]
    assert [each for each in messages if each.startswith("info")] == ["info of uvicorn.error", "info of asyncio"]
    assert "warning of httpx" in messages


def test_on_stderr_a_warning_is_one_line_without_a_traceback(
    log: ProcessLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    OURS.info("quiet")
    fail(OURS, "several\nlines")
    assert capsys.readouterr().err == (
        "whisperer: error: it failed: here (ValueError: invalid literal for int() with base 10: 'several\\nlines')\n"
    )
    assert "Traceback" in written(log, tmp_path)[1]["error"]


def test_at_the_level_debug_stderr_has_the_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = setup_logging(tmp_path, level="debug")
    OURS.debug("detail")
    fail(OURS, "why")
    log.close()
    assert "Traceback" in capsys.readouterr().err
    assert lines_in(tmp_path / "logs/server.log")[0]["message"] == "detail"


def test_no_secret_is_logged(
    log: ProcessLog, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "canary-0123456789")
    logging.getLogger("uvicorn.error").info('"%s" %d', "GET /ws?token=abc", 101)
    fail(OURS, "not with canary-0123456789")
    OURS.warning("nor %r", {"Authorization": "Bearer xyzxyz"})
    log.flush()
    told = (tmp_path / "logs/server.log").read_text() + capsys.readouterr().err
    assert told.count("[secret]") >= 5
    assert [secret for secret in ("canary", "token=abc", "xyzxyz") if secret in told] == []


def test_a_record_that_makes_no_sense_harms_nobody(
    log: ProcessLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    senseless = logging.makeLogRecord({"name": "x", "msg": "%d", "args": ("no number",), "levelno": logging.ERROR})
    half = logging.makeLogRecord(
        {"name": OURS.name, "msg": "lone \ud800 surrogate", "levelno": logging.WARNING, "levelname": "WARNING"}
    )
    for handler in log._handlers:  # not over the logger, since pytest cannot tell of what it captures there
        handler.handle(senseless)
        handler.handle(half)
    messages = [line["message"] for line in written(log, tmp_path)]
    assert messages == ["a record that cannot be told", "lone \ufffd surrogate"]
    assert capsys.readouterr().err == "whisperer: warning: lone \ufffd surrogate\n"


def test_the_file_is_put_aside_when_it_is_full(tmp_path: Path) -> None:
    log = setup_logging(tmp_path, max_bytes=1_000, backups=1)
    for number in range(40):
        OURS.info("number %d of several", number)
    log.close()
    files = sorted((tmp_path / "logs").iterdir())
    assert [file.name for file in files] == ["server.log", "server.log.1"]
    assert lines_in(files[0])[-1]["message"] == "number 39 of several"
    assert files[0].stat().st_mode & 0o777 == 0o600


def test_a_log_that_cannot_be_written_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs").write_text("in the way")
    log = setup_logging(tmp_path)
    OURS.info("one")
    OURS.warning("two")
    log.close()
    told = capsys.readouterr().err
    assert told.count("server.log' cannot be written") == 1
    assert "whisperer: warning: two\n" in told


class StuckDisk:
    """A disk that writes nothing until it is told to move."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.moves = threading.Event()


@pytest.fixture
def stuck_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[StuckDisk]:
    disk = StuckDisk()
    handle = LogFile.handle

    def wait_and_handle(file: LogFile, record: logging.LogRecord) -> bool:
        disk.asked.set()
        disk.moves.wait(20)
        return bool(handle(file, record))

    monkeypatch.setattr(LogFile, "handle", wait_and_handle)
    yield disk
    disk.moves.set()


def test_whoever_logs_does_not_wait_for_the_disk_and_closing_writes_all(
    log: ProcessLog, tmp_path: Path, stuck_disk: StuckDisk
) -> None:
    for number in range(100):
        OURS.info("number %d", number)
    assert not (tmp_path / "logs/server.log").exists()
    stuck_disk.moves.set()
    log.close()
    assert [line["message"] for line in lines_in(tmp_path / "logs/server.log")] == [f"number {n}" for n in range(100)]


def test_what_a_disk_that_is_too_slow_costs_is_told(
    log: ProcessLog, tmp_path: Path, stuck_disk: StuckDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_log, "_MAX_WAITING", 10)
    OURS.info("number 0")
    assert stuck_disk.asked.wait(20), "the thread has this one in its hands, and takes no other"
    for number in range(1, 100):
        OURS.info("number %d", number)
    stuck_disk.moves.set()
    log.flush()
    OURS.info("last")
    *kept, told, last = (line["message"] for line in written(log, tmp_path))
    assert kept == [f"number {number}" for number in range(11)]
    assert (told, last) == ("89 lines are missing: the disk was too slow", "last")


def test_closing_leaves_logging_as_it_was(tmp_path: Path) -> None:
    def state() -> list[object]:
        root = logging.getLogger()
        return [
            list(root.handlers),
            root.level,
            *(logging.getLogger(name).level for name in ("ai_whisperer", "uvicorn")),
        ]

    before = state()
    log = setup_logging(tmp_path)
    assert state() != before
    log.close()
    assert state() == before

"""The log of the process: lines of JSON for programs, one line for people, no secret in either."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer.server.process_log import ProcessLog, setup_logging
from tests.unit.log_stage import lines_in

OURS = logging.getLogger("ai_whisperer.runtime.somewhere")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ProcessLog]:
    log = setup_logging(tmp_path)
    yield log
    log.close()


def fail(logger: logging.Logger, words: str) -> None:
    try:
        int(words)
    except ValueError:
        logger.exception("it failed:\n%s", "here")


@pytest.mark.usefixtures("log")
def test_a_record_is_a_line_of_json(tmp_path: Path) -> None:
    OURS.info("agent %s is there", "ada", extra={"request_id": "r1"})
    (line,) = lines_in(tmp_path / "logs/server.log")
    assert line.pop("time").endswith("Z")
    assert line == {"level": "info", "logger": OURS.name, "message": "agent ada is there", "request_id": "r1"}


@pytest.mark.usefixtures("log")
def test_the_server_and_the_event_loop_are_logged_and_other_libraries_only_when_they_warn(tmp_path: Path) -> None:
    for name in ("uvicorn.error", "asyncio", "httpx"):
        logging.getLogger(name).info("info of %s", name)
        logging.getLogger(name).warning("warning of %s", name)
    messages = [line["message"] for line in lines_in(tmp_path / "logs/server.log")]
    assert [each for each in messages if each.startswith("info")] == ["info of uvicorn.error", "info of asyncio"]
    assert "warning of httpx" in messages


@pytest.mark.usefixtures("log")
def test_on_stderr_a_warning_is_one_line_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    OURS.info("quiet")
    fail(OURS, "several\nlines")
    assert capsys.readouterr().err == (
        "whisperer: error: it failed: here (ValueError: invalid literal for int() with base 10: 'several\\nlines')\n"
    )
    assert "Traceback" in lines_in(tmp_path / "logs/server.log")[1]["error"]


def test_at_the_level_debug_stderr_has_the_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = setup_logging(tmp_path, level="debug")
    OURS.debug("detail")
    fail(OURS, "why")
    log.close()
    assert "Traceback" in capsys.readouterr().err
    assert lines_in(tmp_path / "logs/server.log")[0]["message"] == "detail"


@pytest.mark.usefixtures("log")
def test_no_secret_is_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "canary-0123456789")
    logging.getLogger("uvicorn.error").info('"%s" %d', "GET /ws?token=abc", 101)
    fail(OURS, "not with canary-0123456789")
    OURS.warning("nor %r", {"Authorization": "Bearer xyzxyz"})
    written = (tmp_path / "logs/server.log").read_text() + capsys.readouterr().err
    assert written.count("[secret]") >= 5
    assert [secret for secret in ("canary", "token=abc", "xyzxyz") if secret in written] == []


def test_a_record_that_makes_no_sense_harms_nobody(
    log: ProcessLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    senseless = logging.makeLogRecord({"name": "x", "msg": "%d", "args": ("no number",), "levelno": logging.ERROR})
    for handler in log._handlers:
        handler.handle(senseless)
    OURS.warning("lone \ud800 surrogate")
    messages = [line["message"] for line in lines_in(tmp_path / "logs/server.log")]
    assert messages == ["a record that cannot be told", "lone ? surrogate"]
    assert capsys.readouterr().err == "whisperer: warning: lone ? surrogate\n"


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

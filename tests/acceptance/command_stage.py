"""A real server for the tests of the command line, and ways to run commands against it."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ai_whisperer.cli.main import main

PATIENCE_SECONDS = 60.0
"""So long a test waits for something that comes at once unless something is wrong."""

LONG_SECONDS = 100.0
"""So long it waits for a command that has much to do."""

WHISPERER = (sys.executable, "-W", "error", "-m", "ai_whisperer")

RULES = r"""
rules:
  - {prompt_match: write to me, turn: 0, tools: [{name: send_mail, arguments: {
      to_agent: user, subject: "Report [bold]now[/bold]", body: "All is \e[31mwell\e[0m."}}]}
  - {prompt_match: take the printer, turn: 0, tools: [
      {name: acquire_lock, arguments: {name: printer, ttl_seconds: 60}}]}
  - {after_tool: acquire_lock, latency_seconds: 60, text: never}
  - {prompt_match: look into the cellar, turn: 0, tools: [{name: read_file, arguments: {
      path: "the cellar/stairs/stairs/stairs/stairs/stairs/stairs/stairs/stairs/stairs/stairs/stairs/stairs/stairs/
      stairs/stairs/stairs/stairs/stairs/stairs/stairs/stairs/stairs/stairs/stairs/stairs/stairs/stairs/the end"}}]}
  - {prompt_match: fail, failure: refused}
  - {prompt_match: eternally, latency_seconds: 60, text: never}
  - {prompt_match: say nasty things, text: "[red]red[/red] \e[2J\u009b5m\u202e and [link=x]y"}
  - {prompt_match: stream, text: "one two three four five six seven", chunk_characters: 4}
  - {prompt_match: two steps, turn: 0, latency_seconds: 1.5,
     tools: [{name: report_progress, arguments: {percent: 50, note: half}}]}
  - {prompt_match: greet the room, text: "Hello from the room"}
  - {text: "Done: {last}"}
"""


class Ran(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        """The error that was told in JSON."""
        told: dict[str, str] = json.loads(self.err)["error"]
        return told


def run(*arguments: str, given: bytes = b"", **environment: str) -> Ran:
    """Run a command in a process of its own to its end."""
    ran = subprocess.run(
        [*WHISPERER, *arguments],
        env={**os.environ, **environment},
        input=given,
        capture_output=True,
        timeout=LONG_SECONDS,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


def complete(line: str) -> str:
    """What a shell is told when somebody asks how the line goes on."""
    words = line.split(" ")
    ran = run(_WHISPERER_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1))
    assert (ran.code, ran.err) == (0, "")
    return ran.out.strip()


class Whisperer:
    """Runs commands in this process, for the server of one data folder."""

    def __init__(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.data = data
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Ran:
        self._capsys.readouterr()
        code = main(["--data", str(self.data), *arguments])
        captured = self._capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    def ok(self, *arguments: str) -> str:
        """Run a command that must succeed without a word on stderr; returns what it printed."""
        ran = self(*arguments)
        assert (ran.code, ran.err) == (0, ""), ran
        return ran.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    @contextmanager
    def watching(self) -> Iterator[Process]:
        """All that has happened and happens, as lines of JSON."""
        with running("watch", "--json", "--after", "0", "--data", str(self.data), folder=self.data) as process:
            yield process


class Process:
    """A command in a process of its own, whose lines can be awaited."""

    def __init__(self, *arguments: str, folder: Path, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [*WHISPERER, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, **(environment or {})},
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._errors: list[str] = []
        self._errors_told: queue.Queue[str] = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def line(self) -> str:
        """The next line on stdout; empty if there are no more."""
        return self._lines.get(timeout=PATIENCE_SECONDS)

    def line_with(self, words: str) -> str:
        """The next line on stdout that has these words."""
        while words not in (line := self.line()):
            assert line, f"the output ended without '{words}': {self.errors}"
        return line

    def error_with(self, words: str) -> None:
        """Wait until these words were told on stderr."""
        while words not in self._errors_told.get(timeout=PATIENCE_SECONDS):
            pass

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> Ran:
        """Wait for its end; returns what it told that nobody awaited."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        code = self.process.wait(timeout=PATIENCE_SECONDS)
        for reader in self._readers:
            reader.join(PATIENCE_SECONDS)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return Ran(code, "".join(list(self._lines.queue)), self.errors)

    @property
    def errors(self) -> str:
        return "".join(self._errors)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._errors.append(line)
            self._errors_told.put(line)


@contextmanager
def running(*arguments: str, folder: Path, environment: dict[str, str] | None = None) -> Iterator[Process]:
    """A command in a process of its own, which is gone afterwards."""
    process = Process(*arguments, folder=folder, environment=environment)
    try:
        yield process
    finally:
        process.process.kill()
        process.ended()


@contextmanager
def serving(data: Path, *arguments: str, answers: str = RULES) -> Iterator[Process]:
    """`whisperer serve` that takes requests. Its data folder is also its project."""
    data.mkdir(exist_ok=True)
    rules = data / "rules.yaml"
    rules.write_text(answers, encoding="utf-8")
    flags = ("--port", "0", "--data", str(data), "--model", f"scripted:{rules}")
    with running("serve", *flags, *arguments, folder=data) as process:
        ready = process.line()
        assert re.fullmatch(r"ready http://127\.0\.0\.1:\d+/\?token=\S+\n", ready), (ready, process.errors)
        yield process

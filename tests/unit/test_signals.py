"""Being asked to leave, and being given the time for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.cli.main import main
from ai_whisperer.cli.signals import LAST_SECONDS, Watchman
from ai_whisperer.errors import StoreFailedError
from ai_whisperer.server import held_session, process_log, serving
from ai_whisperer.server.address import Address
from ai_whisperer.store.sqlite import committers
from ai_whisperer.tools import process_groups
from ai_whisperer.tools.mcp import connection, process

HEARER = """
import asyncio, os, signal, sys
from ai_whisperer.cli.output import Output
from ai_whisperer.cli.signals import until_asked_to_leave

async def main():
    signal.signal(signal.SIGUSR1, lambda *_: print("its own handler", flush=True))
    with until_asked_to_leave(Output(as_json=True), "") as leaving:
        os.kill(os.getpid(), signal.SIGUSR1)
        os.write(leaving.watchman.descriptor, bytes([200, 63]))
        os.kill(os.getpid(), signal.SIGTERM)
        print((await leaving.asked()).name, flush=True)

asyncio.run(main())
"""


def test_only_signals_that_ask_to_leave_are_taken_for_that() -> None:
    heard = subprocess.run([sys.executable, "-c", HEARER], check=False, capture_output=True, text=True, timeout=60)
    assert (heard.stdout.split("\n"), heard.returncode) == (["its own handler", "SIGTERM", ""], 0), heard.stderr


def test_whoever_leaves_has_the_time_for_all_that_is_waited_for() -> None:
    waits = [
        connection._CLOSE_SECONDS,
        3 * process._GRACE_SECONDS + process_groups._SECONDS_TO_END,
        serving.LAST_REQUESTS_SECONDS,
        held_session.LOG_SECONDS,
        committers.LAST_COMMIT_SECONDS,
        process_log._MAX_FLUSH_SECONDS,
    ]
    assert sum(waits) < LAST_SECONDS


def test_the_time_runs_from_the_failure_on_even_if_the_trial_of_the_sandbox_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []

    class FailingServer:
        address = Address(url="http://127.0.0.1:1", token="", pid=1)
        ended_by = StoreFailedError("The disk is gone.")

        async def try_sandbox(self) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                happened.append("the trial has ended")

        async def failure(self) -> BaseException:
            return self.ended_by

        def warn(self, _: str) -> None: ...

        def trouble(self) -> None: ...

        def steps_under_way(self) -> Any:
            return list

    @asynccontextmanager
    async def running(*_: Any, **__: Any) -> AsyncIterator[FailingServer]:
        yield FailingServer()

    monkeypatch.setattr(serving, "running", running)
    monkeypatch.setattr(Watchman, "begin", lambda _: happened.append("the time runs"))
    assert main(["serve", "--data", str(tmp_path), "--model", "scripted"]) == 1
    assert happened == ["the time runs", "the trial has ended"]

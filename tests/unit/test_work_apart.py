"""What a process of its own does for a server, and how it is held to its bounds."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.forks import CompareJob, Comparison, JobDone, JobFailed, JobOutcome
from ai_whisperer.errors import DuplicateIdError, WhispererError
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.server import apart as beside
from ai_whisperer.server.apart import Apart
from ai_whisperer.server.forking import _taken_in
from ai_whisperer.settings import Settings

SECRET = "a value that only the server knows"  # noqa: S105 - it is one for this test alone


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with a session that says a secret."""

    async def work() -> None:
        async with AsyncAgentSessionManager(
            tmp_path / "data", model_factory=lambda _: FunctionModel(lambda _: f"It is {SECRET}."), templates=()
        ) as manager:
            await manager.create_agent("ann")
            await manager.run_task("ann", "Tell it.")

    asyncio.run(work())
    return tmp_path / "data"


def done(job: CompareJob, *, patch: str = "") -> JobOutcome:
    """What the process says of a job when its module was patched so."""
    code = f"from ai_whisperer.replay.recording import apart\n{patch}\napart.main()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write(msgspec.json.encode(job) + b"\n")
        process.stdin.flush()
        told = process.stdout.readline()
        process.wait(timeout=60)
    outcome: JobOutcome = msgspec.json.decode(told, type=JobOutcome)
    return outcome


def failed(outcome: JobOutcome) -> str:
    assert isinstance(outcome, JobFailed), outcome
    return outcome.message


def test_what_the_server_redacts_is_redacted_in_a_comparison(data: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code = "apart._compared = lambda job: (_ for _ in ()).throw(apart.RecordingError(job.first))"
    assert failed(done(CompareJob(folder="", first=SECRET, second="", secrets=(SECRET,)), patch=code)) == "[secret]"

    code = (
        "real = apart.compare\n"
        "def compare(one, two):\n"
        "    return real(one, apart.Recording(header=two.header))\n"
        "apart.compare = compare"
    )
    job = CompareJob(folder=str(data), first="default", second="default", secrets=(SECRET,))
    outcome = done(job, patch=code)
    assert isinstance(outcome, JobDone)
    assert isinstance(outcome.comparison, Comparison)
    assert [each.text_a for each in outcome.comparison.partings] == ["It is [secret]."]
    assert SECRET not in json.dumps(msgspec.to_builtins(outcome))


def test_whoever_takes_too_long_or_too_much_says_so() -> None:
    job = CompareJob(folder="", first="", second="")
    endless = "apart._MOST_SECONDS = 1\ndef _compared(job):\n    while True: pass\napart._compared = _compared"
    assert "minutes of the processor, which is too much" in failed(done(job, patch=endless))
    hungry = "apart._compared = lambda job: bytearray(64 << 30)"
    assert "2 GiB of memory, which is too much" in failed(done(job, patch=hungry))


def test_whoever_waits_for_something_for_too_long_is_ended(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    monkeypatch.setattr(beside, "_LONGEST_SECONDS", 0.0)

    async def main() -> None:
        jobs = Apart()
        with pytest.raises(WhispererError, match="it was ended, and nothing was changed"):
            await jobs.do(CompareJob(folder=str(data), first="default", second="default"))
        assert not jobs._processes

    asyncio.run(main())


def test_whoever_nobody_waits_for_leaves_nothing_behind(data: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    (place / "whisperer-disk-x").mkdir(parents=True)
    code = "import time\nfrom ai_whisperer.replay.recording import apart\napart._compared = time.sleep\napart.main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code.replace("time.sleep\n", "lambda _: time.sleep(600)\n")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    job = CompareJob(folder=str(data), first="default", second="default", place=os.fspath(place))
    process.communicate(msgspec.json.encode(job) + b"\n", timeout=60)
    assert process.returncode == 1
    assert not place.exists()


def test_forks_are_all_there_or_none_and_begin_when_all_are() -> None:
    async def main() -> None:
        did: list[str] = []

        class Host:
            async def import_session(self, _: str, __: str, *, session_id: str, data: Path) -> None:  # noqa: ARG002
                if session_id == "fork-3" and len(did) == 2:
                    raise DuplicateIdError("There is one.")
                did.append(session_id)

            async def delete(self, _: str, session_id: str) -> None:
                did.append(f"no {session_id}")

            async def take_up(self, _: str, session_ids: list[str]) -> None:
                did.append(f"begin {len(session_ids)}")

        caller: Any = SimpleNamespace(host=Host(), principal="ann", settings=Settings(data=Path("/data")))
        with pytest.raises(DuplicateIdError):
            await _taken_in(caller, "fork.zip", ["fork-1", "fork-2", "fork-3"])
        assert did == ["fork-1", "fork-2", "no fork-1", "no fork-2"]
        did.clear()
        await _taken_in(caller, "fork.zip", ["fork-1", "fork-2"])
        assert did == ["fork-1", "fork-2", "begin 2"]

    asyncio.run(main())

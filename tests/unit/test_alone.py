"""Nothing outlives the command that runs the tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux gives orphans to another process than the first"
)

_PROGRAM = "from tests import alone; alone.lingering_seconds = {}; import sys; sys.exit(alone.run(sys.argv[1:]))"
_QUICK = _PROGRAM.format(0.1)
_PATIENT = _PROGRAM.format(60)
_KILLED_WITH_A_SERVER = """
import asyncio, os, signal
from pathlib import Path
from ai_whisperer.mcp_config import McpServerConfig
from ai_whisperer.tools.mcp.process import start_process

async def main():
    process = await start_process("it", McpServerConfig(command="sleep", args=("307",)), {})
    print(process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
_ORPHAN = "(setsid sleep {name} & echo $!) ; {end}"


def ran(script: str, program: str = _QUICK) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, "sh", "-c", script]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


def is_there(pid: str) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(("end", "code"), [("true", 1), ("exit 5", 5), ("kill -9 $$", 137)])
def test_what_a_command_leaves_running_is_named_and_ended(end: str, code: int) -> None:
    told = ran(_ORPHAN.format(name="304", end=end))
    assert told.returncode == code
    pid = told.stdout.strip()
    test = "tests/unit/test_alone.py::test_what_a_command_leaves_running_is_named_and_ended"
    assert re.search(rf"^Left running, and ended now: .*sleep 304.* \(process {pid}, started by {test}", told.stderr)
    assert not is_there(pid)


def test_an_mcp_server_whose_runtime_was_killed_is_named_and_ended() -> None:
    command = [sys.executable, "-c", _QUICK, sys.executable, "-c", _KILLED_WITH_A_SERVER]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert told.returncode == 128 + signal.SIGKILL
    pid = told.stdout.strip()
    assert f"Left running, and ended now: sleep 307 (process {pid}" in told.stderr
    assert not is_there(pid)


@pytest.mark.parametrize(("script", "code"), [("true", 0), ("exit 5", 5), ("(setsid sleep 0.01 &) ; true", 0)])
def test_a_command_that_leaves_nothing_ends_as_it_ends(script: str, code: int) -> None:
    told = ran(script, _PATIENT)
    assert (told.returncode, told.stderr) == (code, "")


def test_a_command_that_is_told_to_end_leaves_nothing_either() -> None:
    script = _ORPHAN.format(name="305", end="exec sleep 306")
    command = [sys.executable, "-c", _QUICK, "sh", "-c", script]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        pid = running.stdout.readline().strip()
        assert is_there(pid)
        os.kill(running.pid, signal.SIGTERM)
        assert running.wait(60) == 128 + signal.SIGTERM
        assert not is_there(pid)

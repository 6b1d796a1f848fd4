"""Which event loop a server runs on."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from ai_whisperer.cli.doctor.findings import Level
from ai_whisperer.cli.doctor.machine import check_event_loop
from ai_whisperer.errors import SettingsError
from ai_whisperer.server.event_loop import name_of, run
from ai_whisperer.settings import Settings

PROGRAM = """
import asyncio, sys
from ai_whisperer.server.event_loop import run

async def main():
    print(type(asyncio.get_running_loop()).__module__)

run(main(), sys.argv[1])
"""
"""For a process of its own: uvloop keeps a pipe for as long as a process lives."""


async def module_of_loop() -> str:
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


@pytest.fixture
def without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)


def test_whoever_wants_uvloop_gets_it() -> None:
    pytest.importorskip("uvloop")
    assert name_of("uvloop").startswith("uvloop ")
    ran = subprocess.run([sys.executable, "-c", PROGRAM, "uvloop"], check=True, capture_output=True, text=True)
    assert ran.stdout == "uvloop\n"


def test_servers_run_on_the_event_loop_of_python_unless_somebody_wants_another() -> None:
    usual = Settings().event_loop
    assert run(module_of_loop(), usual) == "asyncio"
    assert check_event_loop(usual).found == "asyncio"


@pytest.mark.usefixtures("without_uvloop")
def test_whoever_names_uvloop_without_having_it_is_told_how_to_get_it() -> None:
    with pytest.raises(SettingsError, match="pip install uvloop"):
        run(module_of_loop(), "uvloop")
    finding = check_event_loop("uvloop")
    assert finding.level is Level.PROBLEM
    assert "pip install uvloop" in finding.advice


def test_a_program_that_closes_its_output_and_lives_on_is_noticed() -> None:
    async def main() -> None:
        pipe = asyncio.subprocess.PIPE
        program = "import os, sys; os.close(1); sys.stdin.read()"
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdin=pipe, stdout=pipe)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(30):
                assert await process.stdout.read() == b""
        finally:
            process.stdin.close()
            await process.wait()

    run(main(), Settings().event_loop)

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
from ai_whisperer.settings import EventLoop

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


@pytest.mark.parametrize("event_loop", ["auto", "uvloop"])
def test_where_uvloop_is_installed_servers_run_on_it(event_loop: EventLoop) -> None:
    pytest.importorskip("uvloop")
    assert name_of(event_loop).startswith("uvloop ")
    ran = subprocess.run([sys.executable, "-c", PROGRAM, event_loop], check=True, capture_output=True, text=True)
    assert ran.stdout == "uvloop\n"


def test_whoever_wants_the_event_loop_of_python_gets_it() -> None:
    assert run(module_of_loop(), "asyncio") == "asyncio"
    assert name_of("asyncio") == "asyncio"


@pytest.mark.usefixtures("without_uvloop")
def test_without_uvloop_servers_run_on_that_of_python() -> None:
    assert run(module_of_loop(), "auto") == "asyncio"
    assert check_event_loop("auto").found == "asyncio"


@pytest.mark.usefixtures("without_uvloop")
def test_whoever_names_uvloop_without_having_it_is_told_how_to_get_it() -> None:
    with pytest.raises(SettingsError, match="pip install uvloop"):
        run(module_of_loop(), "uvloop")
    finding = check_event_loop("uvloop")
    assert finding.level is Level.PROBLEM
    assert "pip install uvloop" in finding.advice

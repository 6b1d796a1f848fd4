"""The rules for all tests: who leaves a process or a socket behind fails, and nobody else; reasons to skip are told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is left is looked for in /proc")

_ALL = """
import asyncio, gc, socket, subprocess, pytest

kept = []

{tests}
"""
_ONE = """
def test_{name}():
    {deed}
    {end}

def test_after_{name}():
    gc.collect()
"""
LEAKS = {
    "process": "child = subprocess.Popen(['sleep', '300'])",
    "kept_process": "kept.append(subprocess.Popen(['sleep', '301']))",
    "sockets": "pair = socket.socketpair()",
    "circle": "pair = [socket.socket()]; pair.append(pair)",
    "kept_socket": "kept.append(socket.create_server(('127.0.0.1', 0)))",
    "pipe": "child = subprocess.Popen(['true'], stdout=subprocess.PIPE); child.wait()",
    "loop": "loop = asyncio.new_event_loop(); loop.kept = loop",
}
CLEAN = {
    "nothing": "pass",
    "process": "subprocess.run(['true'])",
    "sockets": "socket.create_server(('127.0.0.1', 0)).close()",
    "loop": "asyncio.run(asyncio.sleep(0))",
}


def ran(folder: Path, text: str) -> str:
    """What pytest tells about such a file."""
    (folder / "test_some.py").write_text(text)
    (folder / "conftest.py").write_text("from tests import leaks\nleaks.lingering_seconds = 0.1\n")
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-rA", "--tb=short"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    told = subprocess.run([*command, "."], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return told.stdout + told.stderr


def ran_all(folder: Path, deeds: dict[str, str], end: str) -> tuple[str, set[str]]:
    """Run a test for each deed, and one after it; returns what was told, and who was blamed for a leak."""
    tests = "".join(_ONE.format(name=name, deed=deed, end=end) for name, deed in deeds.items())
    told = ran(folder, _ALL.format(tests=tests))
    blamed = re.findall(r"^(?:ERROR|FAILED) test_some.py::test_(\w+) - (?!ValueError)", told, re.MULTILINE)
    assert told.count("PASSED test_some.py::test_after_") == len(deeds), told
    return told, set(blamed)


@pytest.mark.parametrize("end", ["pass", "pytest.skip('because')", "raise ValueError('wrong')"])
def test_a_leak_is_found_at_the_test_that_made_it_however_that_ended(tmp_path: Path, end: str) -> None:
    told, blamed = ran_all(tmp_path, LEAKS, end)
    assert blamed == set(LEAKS), told
    assert re.search(r"This test left behind, still running or open: process \d+ \(sleep 301\)\.", told)
    assert re.search(r"still running or open: socket:\[\d+\] at \('127.0.0.1', \d+\)\.", told)


def test_who_leaves_nothing_is_not_blamed(tmp_path: Path) -> None:
    told, blamed = ran_all(tmp_path, CLEAN, "pass")
    assert blamed == set()
    assert f"{2 * len(CLEAN)} passed" in told


_SHARING = """
import socket, subprocess, pytest

@pytest.fixture(scope="{scope}")
def shared():
    with socket.create_server(("127.0.0.1", 0)) as listening, subprocess.Popen(["sleep", "302"]) as child:
        yield listening
        {last}

def test_before(): pass
def test_one(shared): pass
def test_other(shared): {deed}
def test_without(): pass
"""


@pytest.mark.parametrize("scope", ["module", "session"])
def test_what_tests_share_is_left_until_it_ends(tmp_path: Path, scope: str) -> None:
    told = ran(tmp_path, _SHARING.format(scope=scope, deed="pass", last="child.kill()"))
    assert "4 passed" in told
    assert "ERROR" not in told


def test_a_socket_that_is_left_beside_shared_ones_is_found_when_these_end(tmp_path: Path) -> None:
    told = ran(
        tmp_path, _SHARING.format(scope="module", deed="global kept; kept = socket.socket()", last="child.kill()")
    )
    assert "ERROR test_some.py::test_without" in told
    assert "The tests of this file left behind, still running or open: socket:[" in told


_SKIPPING = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_some(number): pytest.skip("there is no moon")

@pytest.mark.skip(reason="there is no sun")
def test_other(): pass
"""


def test_the_report_tells_each_reason_to_skip_with_the_number_of_tests(tmp_path: Path) -> None:
    told = ran(tmp_path, _SKIPPING)
    assert "   3  there is no moon\n   1  there is no sun\n" in told
    assert "why tests were skipped" not in ran(tmp_path, "def test_all(): pass\n")

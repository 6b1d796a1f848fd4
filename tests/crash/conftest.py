"""The witness and the points of a run that nobody kills, for all tests; the figures at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

import pytest

from .harness import Run, Witness

_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Witness]:
    with Witness(tmp_path_factory.mktemp("witness")) as running:
        yield running


@pytest.fixture(scope="session")
def points(witness: Witness, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, int]:
    """How often each point is reached in a run that nobody kills, in which nothing may be wrong."""
    run = Run(witness, tmp_path_factory.mktemp("unharmed"))
    asyncio.run(run.finish())
    assert not run.findings, run.told
    assert run.summary is not None
    return run.summary.points


@pytest.fixture
def report(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Takes a line for the end of the test report."""
    return pytestconfig.stash.setdefault(_FIGURES, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    figures = config.stash.get(_FIGURES, [])
    if figures:
        terminalreporter.section("kill -9")
        for line in figures:
            terminalreporter.line(line)

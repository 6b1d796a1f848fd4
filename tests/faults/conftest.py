"""The process that starts servers, and the calls that a server without a fault makes; the figures at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from .harness import Case, Zygote

_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    running = Zygote()
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="session")
def calls(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, int]:
    """How often each call is made in a server without a fault, in which nothing may be wrong."""
    case = Case(zygote, tmp_path_factory.mktemp("unharmed")).play()
    assert not case.findings, case.told
    assert case.exit_code == 0
    assert len(case.acknowledged) > 20
    return case.counts


@pytest.fixture
def report(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Takes a line for the end of the test report."""
    return pytestconfig.stash.setdefault(_FIGURES, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    figures = config.stash.get(_FIGURES, [])
    if figures:
        terminalreporter.section("faults of the disk")
        for line in figures:
            terminalreporter.line(line)

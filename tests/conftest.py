"""No test leaves anything behind: who does fails, and not who comes next. The report tells why tests were skipped."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import Any

import hypothesis
import pytest

from tests import planted, postgresql
from tests.leaks import NOTHING, Held, collect_what_came_since, end, held, left_since

_SHARED = pytest.StashKey[dict[str, tuple[str, Held]]]()
"""What was set up for more than one test and has to be ended: the scope of each fixture, and what it held at first."""
_LEFT = pytest.StashKey[list[str]]()
"""What is to be said of leaks when the test that is being torn down has ended."""
_HOLDING_NOTHING = ("nowhere", "_nothing_is_left_by_the_file")

hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")  # no test fails because others use the machine


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    if fixturedef.scope == "function" or fixturedef.argname in _HOLDING_NOTHING:
        return (yield)
    before = held()
    try:
        return (yield)
    finally:
        more = held().beyond(before)
        if more or inspect.isgeneratorfunction(fixturedef.func):
            request.config.stash.setdefault(_SHARED, {})[fixturedef.argname] = (fixturedef.scope, more)


def pytest_fixture_post_finalizer(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    if fixturedef.scope != "function":
        request.config.stash.get(_SHARED, {}).pop(fixturedef.argname, None)


@pytest.fixture(scope="package")
def postgresql_server() -> Iterator[postgresql.Server]:
    """A PostgreSQL for all tests of this process."""
    pytest.importorskip("asyncpg", reason="asyncpg is not installed")
    with ExitStack() as stack:
        try:
            server = stack.enter_context(postgresql.running_server())
        except postgresql.NoPostgresqlError as error:
            pytest.skip(str(error))
        yield server


@pytest.fixture
def database(postgresql_server: postgresql.Server) -> Iterator[str]:
    """The address of a database with the tables and nothing in them."""
    with postgresql_server.database() as address:
        yield address


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left_by_the_file(request: pytest.FixtureRequest) -> Iterator[None]:
    before = held()
    yield
    collect_what_came_since(before)
    shared = request.config.stash.get(_SHARED, {}).values()
    lasting = _all(what for scope, what in shared if scope in ("session", "package"))
    _note(request.config, "The tests of this file", left_since(before, except_for=lasting))


@pytest.fixture(autouse=True)
def _nothing_is_left_by_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a server that several tests share opens for one of them is looked at when that server ends."""
    before = held()
    yield
    collect_what_came_since(before)
    shared = request.config.stash.get(_SHARED, {})
    if shared.keys().isdisjoint(request.fixturenames):
        _note(request.config, "This test", left_since(before, except_for=_all(what for _, what in shared.values())))


@pytest.fixture
def caught(request: pytest.FixtureRequest) -> planted.Caught:
    """Takes how a planted bug showed, for the table of `make mutants`."""
    return planted.catcher(request)


def pytest_runtest_setup(item: pytest.Item) -> None:
    planted.note_mark(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Say what was left only when pytest has seen what Python warned of: an error before would leave that to others."""
    told = item.config.stash[_LEFT] = []
    yield
    if told:
        pytest.fail("\n".join(told), pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Each reason once, with the number of tests."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(each.longrepr[2].removeprefix("Skipped: ") for each in skipped)
    if reasons:
        terminalreporter.section("why tests were skipped")
        for reason, number in reasons.most_common():
            terminalreporter.line(f"{number:>4}  {reason}")
    planted.tell(terminalreporter)


def _all(some: Iterator[Held]) -> Held:
    found = NOTHING
    for each in some:
        found = Held({**found.processes, **each.processes}, {**found.channels, **each.channels})
    return found


def _note(config: pytest.Config, who: str, left: Held) -> None:
    if left:
        advice = "End it in a 'finally' or a fixture."
        config.stash[_LEFT].append(f"{who} left behind, still running or open: {left}. {advice}")
        end(left)

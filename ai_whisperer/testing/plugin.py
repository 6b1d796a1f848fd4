"""The pytest plugin: the fixture `team`, and the markers `team` and `recording`.

Nothing else of the package is loaded before a test uses the fixture.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ai_whisperer.testing.playback import Playback
    from ai_whisperer.testing.team import Team

_SEEDED = "team_seed"
_SHOWN_EVENTS = 60
_TEAM = pytest.StashKey["Team"]()
_PASSED = pytest.StashKey[bool]()
_WRITERS = pytest.StashKey[dict[Path, str]]()
_SETTINGS = ("mode", "ignore", "scrub")
_MODES = ("none", "once", "new", "all")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("whisperer", "teams of AI Whisperer").addoption(
        "--recordings",
        choices=_MODES,
        help="What tests with the marker `recording` ask for real: none, nothing (what is not recorded fails); once, "
        "all of a recording that is not there yet; new, what is missing or has changed; all, everything again. It goes "
        "before the mode of the marker.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "team(seed=0, seeds=1, **settings): settings of the fixture `team`; with seeds=20 the test runs with 20 seeds, "
        "each another order of what happens at the same time.",
    )
    config.addinivalue_line(
        "markers",
        "recording(path, mode='none', ignore=(), scrub=None): models and tools of the fixture `team` answer from the "
        "recording beside the test file; see --recordings for the modes.",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with as many seeds as its marker says."""
    if _SEEDED not in metafunc.fixturenames:
        return
    settings = _settings_of(metafunc.definition)
    first, seeds = settings.get("seed", 0), settings.get("seeds", 1)
    if _wrong_with(settings) is None and seeds != 1:
        metafunc.parametrize(_SEEDED, range(first, first + seeds), ids=lambda seed: f"seed{seed}")


@pytest.fixture
def team_seed(request: pytest.FixtureRequest) -> int:
    """The seed of the fixture `team`."""
    seed: int = _settings_of(request.node).get("seed", 0)
    return seed


@pytest.fixture
def team(request: pytest.FixtureRequest, team_seed: int) -> Iterator[Team]:
    """A team of agents in virtual time, on a simulated disk: see `ai_whisperer.testing.team.Team`."""
    settings = _settings_of(request.node)
    wrong = _wrong_with(settings)
    if inspect.iscoroutinefunction(inspect.unwrap(request.function)):
        wrong = (
            f"The fixture `team` runs an event loop of its own, on virtual time, so {request.node.name} cannot be "
            "`async def`. Write `def`, and give the team what is to be awaited: team.run(main(team.session))."
        )
    if wrong is not None:
        pytest.fail(wrong, pytrace=False)
    from ai_whisperer.errors import InvalidInputError
    from ai_whisperer.testing.team import Team

    settings = {"folder": request.path.parent, **settings, "seed": team_seed}
    settings.pop("seeds", None)
    playback = _playback_of(request)
    try:
        made = Team(**settings, recording=playback)
    except InvalidInputError as error:
        wrong = error.message
    if wrong is not None:
        pytest.fail(f"The marker `team` of {request.node.name}: {wrong}", pytrace=False)
    request.node.stash[_TEAM] = made
    try:
        yield made
    finally:
        _close(made, keep=request.node.stash.get(_PASSED, False))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that says what a model answers when none was asked for that."""
    yield
    made = item.stash.get(_TEAM, None)
    if made is None:
        return
    wrong = None
    try:
        made.check_all_was_asked_for()
    except AssertionError as error:
        wrong = str(error)
    if wrong is not None:
        pytest.fail(wrong, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell what the team did when its test fails."""
    report = yield
    if call.when == "call" and report.passed:
        item.stash[_PASSED] = True
    made = item.stash.get(_TEAM, None) if report.failed else None
    if made is not None:
        from ai_whisperer.testing.story import story_of

        told = story_of(made, most=_SHOWN_EVENTS)
        if told:
            report.sections.append(("what the team did", told))
    return report


def _close(team: Team, *, keep: bool) -> None:
    from ai_whisperer.errors import RecordingError

    wrong = None
    try:
        team.close(keep=keep)
    except RecordingError as error:
        wrong = error.message
    if wrong is not None:
        pytest.fail(wrong, pytrace=False)


def _playback_of(request: pytest.FixtureRequest) -> Playback | None:
    """The recording that the nearest marker names."""
    marker = request.node.get_closest_marker("recording")
    if marker is None:
        return None
    from ai_whisperer.errors import InvalidInputError
    from ai_whisperer.testing.playback import Playback

    try:
        path, settings = _recording_in(*marker.args, **marker.kwargs)
        mode = settings.pop("mode", "none")
        writers = request.config.stash.setdefault(_WRITERS, {})
        return Playback(
            request.path.parent / path,
            request.config.getoption("--recordings") or mode,
            writers=writers,
            test=request.node.name,
            **settings,
        )
    except (InvalidInputError, TypeError) as error:
        wrong = str(error)
    pytest.fail(f"The marker `recording` of {request.node.name}: {wrong}", pytrace=False)


def _recording_in(
    path: str | os.PathLike[str] = "", *more: object, **settings: Any
) -> tuple[str | os.PathLike[str], dict[str, Any]]:
    from ai_whisperer.choices import nearest

    if not isinstance(path, str | os.PathLike) or not path:
        raise TypeError(f"it takes the path of a recording, such as 'team.wrec', not {path!r}")
    if more:
        raise TypeError(f"it takes one path, and the rest by name, such as mode='once': not {more[0]!r}")
    for name in settings:
        if name not in _SETTINGS:
            near = nearest(name, _SETTINGS)
            meant = "" if near is None else f" Did you mean '{near}'?"
            raise TypeError(f"it has no '{name}'.{meant} There are: {', '.join(_SETTINGS)}.")
    return path, settings


def _settings_of(node: pytest.Item | pytest.Collector) -> dict[str, Any]:
    """What the markers say; the nearest counts."""
    settings: dict[str, Any] = {}
    for marker in node.iter_markers("team"):
        settings = {**marker.kwargs, **settings}
        if marker.args:
            settings[""] = marker.args[0]
    return settings


def _wrong_with(settings: dict[str, Any]) -> str | None:
    """What a marker says that cannot be, in words."""
    if "" in settings:
        return "The marker `team` takes settings by name: @pytest.mark.team(seeds=20)."
    if "recording" in settings:
        return (
            "The marker `team` has no recording; there is a marker for that: "
            f"@pytest.mark.recording({settings['recording']!r})."
        )
    for name, least in (("seed", 0), ("seeds", 1)):
        value = settings.get(name, least)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            return f"{name} of the marker `team` must be a whole number from {least} on, not {value!r}."
    return None

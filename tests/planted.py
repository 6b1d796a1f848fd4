"""Planted bugs: each test that is marked as `planted` puts a bug into the product and fails unless a harness sees it.

`make mutants` runs all of them and prints a table: each bug, the harness, how it showed, after how many tries.
Elsewhere they are tests like all others, and the search for a rare one begins where it showed before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
import pytest

IS_WHOLE_SEARCH = bool(os.environ.get("WHISPERER_TEST_MUTANTS"))
"""Whether searches begin at the beginning, and those are made too that take long: `make mutants`."""
PAGE = Path(__file__).parents[1] / "docs" / "proofs.md"
BEGIN, END = "<!-- mutants -->", "<!-- end of mutants -->"

_LONGEST = 90
_IDS = re.compile(r"\b[0-9a-f]{24}\b")
_VALUES = re.compile(r"\([^()]{20,}\)")


class Caught(Protocol):
    """Takes how a planted bug showed: what the harness said, and which try it was, counted from 1."""

    def __call__(self, by: str = "", *, after: int = 1) -> None: ...


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table."""

    name: str
    harness: str
    outcome: Literal["passed", "failed", "skipped"]
    by: str = ""
    after: int = 1
    unit: str = "run"

    @property
    def tries(self) -> str:
        if self.outcome != "passed":
            return "not tried" if self.outcome == "skipped" else "NOT CAUGHT"
        return f"{self.after} {self.unit if self.after == 1 else _several(self.unit)}"


def searched(count: int, *, shows_at: int = 0) -> Sequence[int]:
    """The seeds below a number in the order in which they are tried."""
    first = 0 if IS_WHOLE_SEARCH else shows_at
    return (*range(first, count), *range(first))


def search(seeds: Iterable[int], failure_of: Callable[[int], str | None], caught: Caught) -> str | None:
    """What the first of the seeds says that shows the bug; that is noted."""
    for tries, seed in enumerate(seeds, start=1):
        if (failure := failure_of(seed)) is not None:
            caught(failure, after=tries)
            return failure
    return None


class SignedSearch:
    """Takes for the bug only what has its sign: a harness that fails in another way has not caught it."""

    def __init__(self, sign: str, failure_of: Callable[[int], str | None]) -> None:
        self._sign = sign
        self._failure_of = failure_of
        self._others: set[str] = set()

    def failure_of(self, seed: int) -> str | None:
        failure = self._failure_of(seed)
        if failure is not None and self._sign not in failure:
            self._others.add(failure[:200])
            return None
        return failure

    @property
    def told(self) -> str:
        """What was looked for, and what else there was."""
        return f"by {self._sign!r}; other signs: {sorted(self._others) or 'none'}"


def note_mark(item: pytest.Item) -> None:
    """Have the report of the test say which bug it is, also if it comes from another process."""
    mark = item.get_closest_marker("planted")
    if mark is not None:
        given = getattr(item, "callspec", None)
        name = mark.kwargs.get("name") or (given.id if given is not None else item.name.removeprefix("test_"))
        known = {"name": _readable(name), "harness": mark.args[0], "unit": mark.kwargs.get("unit", "run")}
        item.user_properties.append(("planted", known))


def catcher(request: pytest.FixtureRequest) -> Caught:
    def caught(by: str = "", *, after: int = 1) -> None:
        request.node.user_properties.append(("caught", {"by": by, "after": after}))

    return caught


def mutants(terminal: pytest.TerminalReporter) -> list[Mutant]:
    """What the reports say, one line for each bug, in the order of the harnesses."""
    found: dict[tuple[str, str], Mutant] = {}
    for outcome in ("passed", "skipped", "failed", "error"):  # the last one counts
        for report in terminal.stats.get(outcome, []):
            properties: dict[str, dict[str, Any]] = dict(getattr(report, "user_properties", ()))
            if "planted" in properties:
                state = "failed" if outcome == "error" else outcome
                mutant = msgspec.convert(
                    {**properties["planted"], **properties.get("caught", {}), "outcome": state}, Mutant
                )
                found[mutant.harness, mutant.name] = mutant
    return sorted(found.values(), key=lambda mutant: (mutant.harness, mutant.name))


def table(lines: Sequence[Mutant]) -> str:
    """The lines in Markdown, and what they come to."""
    rows = ["| planted bug | harness | caught by | after |", "|---|---|---|---|"]
    rows += [f"| `{each.name}` | {each.harness} | {_short(each.by)} | {each.tries} |" for each in lines]
    counts = {state: sum(each.outcome == state for each in lines) for state in ("passed", "failed", "skipped")}
    told = f"{len(lines)} planted bugs: {counts['passed']} caught, {counts['failed']} not caught"
    return "\n".join([*rows, "", f"{told}, {counts['skipped']} not tried here."])


def tell(terminal: pytest.TerminalReporter) -> None:
    """Print the table at the end, and with `WHISPERER_TEST_MUTANTS=write` put it into the docs, if it is whole."""
    lines = mutants(terminal)
    if not IS_WHOLE_SEARCH or not lines:
        return
    terminal.section("planted bugs")
    terminal.line(table(lines))
    if os.environ["WHISPERER_TEST_MUTANTS"] == "write" and all(each.outcome == "passed" for each in lines):
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table(lines)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def _readable(name: str) -> str:
    return name.strip("-_").replace("_", " ").replace("-", " ")


def _several(unit: str) -> str:
    return f"{unit[:-1]}ies" if unit.endswith("y") else f"{unit}s"


def _short(text: str) -> str:
    """One line, as it was said, without ids, values and names of folders, which are others each time."""
    if not text:
        return ""
    text = _VALUES.sub("(…)", _IDS.sub("…", text))
    line = " ".join(text.split()).partition(": ")[2] if text.startswith(("AssertionError: ", "Store")) else text
    words = " ".join("…" if word.strip("'").startswith("/") else word for word in line.split()).replace("|", "/")
    words = words.replace("`", "'")
    return f"`{words if len(words) <= _LONGEST else f'{words[: _LONGEST - 1]}…'}`"

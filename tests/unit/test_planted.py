"""The table of planted bugs, and the search for the seed that shows one."""

from __future__ import annotations

import pytest

from tests import planted
from tests.planted import BEGIN, END, PAGE, Mutant, SignedSearch, search, searched, table


def test_the_search_for_a_rare_bug_begins_where_it_showed_and_at_the_beginning_for_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planted, "IS_WHOLE_SEARCH", False)
    assert searched(5, shows_at=3) == (3, 4, 0, 1, 2)
    monkeypatch.setattr(planted, "IS_WHOLE_SEARCH", True)
    assert searched(5, shows_at=3) == (0, 1, 2, 3, 4)


def test_a_search_notes_what_was_said_and_after_how_many_tries() -> None:
    noted: list[tuple[str, int]] = []

    def caught(by: str = "", *, after: int = 1) -> None:
        noted.append((by, after))

    assert search((7, 8, 9), lambda seed: "it is lost" if seed == 8 else None, caught) == "it is lost"
    assert search((7, 9), lambda seed: "it is lost" if seed == 8 else None, caught) is None
    assert noted == [("it is lost", 2)]


def test_the_table_says_of_each_bug_who_caught_it_and_of_one_that_nobody_caught() -> None:
    lines = [
        Mutant(name="lose mail", harness="lives", outcome="passed", by="AssertionError: a | b", after=3, unit="seed"),
        Mutant(name="lose all", harness="lives", outcome="failed", unit="seed"),
        Mutant(name="no server", harness="nodes", outcome="skipped"),
    ]
    told = table(lines).splitlines()
    assert told[2:5] == [
        "| `lose mail` | lives | `a / b` | 3 seeds |",
        "| `lose all` | lives |  | NOT CAUGHT |",
        "| `no server` | nodes |  | not tried |",
    ]
    assert told[-1] == "3 planted bugs: 1 caught, 1 not caught, 1 not tried here."


def test_a_bug_is_caught_by_its_sign_alone_and_other_signs_are_told() -> None:
    failures = {1: "a test is wrong", 3: "AssertionError: mail 7 is lost"}
    found = SignedSearch("is lost", failures.get)
    assert search(range(5), found.failure_of, lambda *_, **__: None) == failures[3]
    assert found.told == "by 'is lost'; other signs: ['a test is wrong']"
    assert search(range(3), found.failure_of, lambda *_, **__: None) is None


def test_the_page_has_no_planted_bug_that_nobody_caught_and_its_sum_is_that_of_its_rows() -> None:
    shown = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert "NOT CAUGHT" not in shown
    assert "not tried |" not in shown
    rows = [line for line in shown.splitlines() if line.startswith("| `")]
    assert len({tuple(row.split(" | ")[:2]) for row in rows}) == len(rows) > 100
    assert f"{len(rows)} planted bugs: {len(rows)} caught, 0 not caught, 0 not tried here." in shown


def test_folders_that_are_others_each_time_are_not_in_the_table() -> None:
    line = Mutant(name="b", harness="h", outcome="passed", by="StoreLostError: The database in '/tmp/x/data' has lost")
    assert "| `The database in … has lost` |" in table([line])

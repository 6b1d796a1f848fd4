"""Tables for terminals and for pipes."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ai_whisperer.cli.commands.tasks import retried_in_words
from ai_whisperer.cli.output import Column, Output, plain_table, rich_table
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.tasks import RetriedTasks

NASTY = "[red]red[/red] \x1b[2J :smile:\nnext line"
COLUMNS = (
    Column[tuple[str, str]]("NAME", lambda each: each[0], whole=True),
    Column[tuple[str, str]]("COUNT", lambda each: str(len(each[1])), right=True, style=lambda _: "green"),
    Column[tuple[str, str]]("TEXT", lambda each: each[1]),
)


def rendered(text: str, *, width: int) -> str:
    console = Console(file=io.StringIO(), force_terminal=True, width=width, markup=False, emoji=False, highlight=False)
    with console.capture() as capture:
        console.print(rich_table([("a-name-that-people-copy", text)], COLUMNS))
    return capture.get()


def test_a_table_for_a_terminal_shows_text_as_text() -> None:
    shown = rendered(NASTY, width=120)
    assert "[red]red[/red] \\x1b[2J :smile: next line" in shown
    assert "\x1b[2J" not in shown
    assert "\x1b[32m" in shown


def test_a_narrow_terminal_cuts_words_but_no_names() -> None:
    shown = rendered("many words " * 50, width=40)
    assert "a-name-that-people-copy" in shown
    assert "…" in shown
    assert len(shown.splitlines()) == 5


def test_a_table_for_a_pipe_is_a_line_for_each_record() -> None:
    table = plain_table([("x", NASTY), ("longer", "")], COLUMNS)
    assert table.splitlines() == [
        "NAME    COUNT  TEXT",
        "x          37  [red]red[/red] \\x1b[2J :smile: next line",
        "longer      0  -",
    ]


def test_a_long_cell_does_not_make_the_other_lines_of_a_table_for_a_pipe_long() -> None:
    table = plain_table([("x", "one"), ("name/" * 20, "two")], COLUMNS)
    assert [len(line) for line in table.splitlines()] == [45, 44, 112]
    assert table.splitlines()[2].startswith("name/" * 20 + "  ")


def test_a_table_that_a_limit_may_have_cut_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    two = [("a", ""), ("b", "")]
    Output(as_json=False).table(two, COLUMNS, empty="", limit=3)
    Output(as_json=True).table(two, COLUMNS, empty="", limit=2)
    assert capsys.readouterr().err == ""
    Output(as_json=False).table(two, COLUMNS, empty="", limit=2)
    assert capsys.readouterr().err == "No more than 2 are shown; --limit shows more.\n"


@pytest.mark.parametrize("at", [float("inf"), float("nan"), 1e300, -1e300])
def test_a_time_that_is_none_is_shown_as_the_number_it_is(at: float) -> None:
    assert moment(at) == f"{at:g}"


@pytest.mark.parametrize(
    ("retried", "not_retried", "told"),
    [
        (0, 0, "No task has failed."),
        (1, 0, "1 failed task was retried."),
        (3, 0, "3 failed tasks were retried."),
        (1, 2, "1 failed task was retried; 2 could not be."),
        (0, 1, "0 failed tasks were retried; 1 could not be."),
    ],
)
def test_how_many_failed_tasks_were_retried_is_said_in_words(retried: int, not_retried: int, told: str) -> None:
    outcome = RetriedTasks(retried=retried, not_retried=not_retried, task_ids=(), reasons={})
    assert retried_in_words(outcome) == told

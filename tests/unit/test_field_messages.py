"""What is said of fields that people wrote: which one is wrong, what is near, and what it takes."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
import typer

from ai_whisperer.choices import valid_values
from ai_whisperer.cli.arguments import seconds_of
from ai_whisperer.cli.main import main
from ai_whisperer.core.budgets import deadline_after
from ai_whisperer.core.definitions import definition_from
from ai_whisperer.core.limits import limits_from
from ai_whisperer.core.schedules import schedule_from
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.errors import DefinitionError, InvalidInputError, ScheduleError, SettingsError
from ai_whisperer.setting_sources import load_settings
from ai_whisperer.templates.parsing import parse_template


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"limts": {}}, "unknown field `limts`. Did you mean `limits`? Known fields: name,"),
        ({"limits": {"max_queue": 4}}, "`limits.max_queue`. Did you mean `max_queue_length`? Known fields: max_con"),
        ({"folders": {"a": "wirte"}}, '`folders.a` must be one of read, write, not "wirte". Did you mean write?'),
        ({"context": {"compact": "never"}}, '`context.compact` must be one of auto, off, not "never".'),
        ({"limits": {"max_step": 4}}, "`limits.max_step`. Did you mean `max_steps_per_task`?"),
        ({"tools": "a, b"}, '`tools` must be a list, not text. Write ["a", "b"].'),
        ({"limits": {"max_steps_per_task": "7"}}, "must be a whole number, not text. Write 7, without quotes."),
        ({"retry": {"stall_seconds": "soon"}}, "`retry.stall_seconds` must be a number, not text."),
        ({"description": 5}, "`description` must be text, not a whole number. Put it in quotes."),
        ({"schedule": "daily"}, "`schedule` must be a list, not text."),
    ],
)
def test_a_definition_is_told_of_as_well_as_a_template(config: dict[str, Any], told: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        definition_from(config)
    assert told in str(caught.value)


def test_a_schedule_and_a_timeout_say_what_they_take() -> None:
    with pytest.raises(
        ScheduleError, match=r"`interval_seconds` must be a number, not text\. Write 60, without quotes\."
    ):
        schedule_from(prompt="x", interval_seconds="60")
    with pytest.raises(InvalidInputError, match=r"a number of seconds such as 60, .*, not '60'\."):
        deadline_after("60", now=0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("90", 90),
        ("0.5", 0.5),
        ("1h", 3600),
        ("1.5 Min", 90),
        ("2 seconds", 2),
        ("20days", 1728000),
        ("1h30m", 5400),
        ("1 h, 30 min", 5400),
    ],
)
def test_a_length_of_time_is_written_in_seconds_or_with_units(written: str, seconds: float) -> None:
    assert seconds_of(written) == seconds


@pytest.mark.parametrize("written", ["500ms", "5 months", "soon", "nan", "inf", "", "h", "1h2", "1 2 h"])
def test_what_is_no_length_of_time_is_refused_with_how_to_write_one(written: str) -> None:
    with pytest.raises(typer.BadParameter) as caught:
        seconds_of(written)
    assert "1h 30min" in caught.value.message


@pytest.mark.parametrize("written", ["0", "-5", "0.0001"])
def test_a_timeout_in_which_nothing_can_happen_is_refused(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "Do it.", "--timeout", written]) == 2
    assert f"{written} seconds are too few. Write 0.001 or more." in capsys.readouterr().err


def test_a_limit_that_must_be_whole_says_so() -> None:
    with pytest.raises(DefinitionError, match=r"limits\.max_tokens must be a whole number, not 1\.5\."):
        limits_from({"max_tokens": 1.5}, SessionLimits)
    with pytest.raises(DefinitionError, match=r"limits\.max_cost_usd must be a number, not 'much'\."):
        limits_from({"max_cost_usd": "much"}, SessionLimits)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("[limits]\nmax_quue_length = 4\n", "there is no 'max_quue_length'. Did you mean max_queue_length? There are:"),
        ('[folders]\nshared = "x"\n', "every session has a folder 'shared' already. Give this one another name."),
    ],
)
def test_a_wrong_name_in_a_table_of_settings_is_named(tmp_path: Path, table: str, told: str) -> None:
    (tmp_path / "whisperer.toml").write_text(table)
    with pytest.raises(SettingsError) as caught:
        load_settings({}, environment={}, folder=tmp_path)
    assert told in str(caught.value)


def test_approve_may_be_text_with_commas() -> None:
    written = parse_template("---\nname: a\ntools: pay, send\napprove: pay, send\n---\nBe careful.")
    assert written.definition.approve == ("pay", "send")


class Kind(StrEnum):
    NEAR = "near"
    FAR = "far"


class Inner(msgspec.Struct, rename="camel"):
    this_kind: Kind = Kind.NEAR


class Outer(msgspec.Struct):
    one: Kind | None = None
    several: tuple[Annotated[Kind, msgspec.Meta(description="x")], ...] = ()
    named: dict[str, Kind] = {}
    inner: Inner | None = None
    word: Literal["a", "b"] = "a"
    number: int = 0


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"one": "x"}, " Valid values: near, far."),
        ({"several": ["near", "x"]}, " Valid values: near, far."),
        ({"named": {"k": "x"}}, " Valid values: near, far."),
        ({"inner": {"thisKind": "x"}}, " Valid values: near, far."),
        ({"one": 5}, " Valid values: near, far."),
        ({"word": "c"}, " Valid values: a, b."),
        ({"number": "x"}, ""),
        ({"inner": []}, ""),
        ([], ""),
    ],
)
def test_a_complaint_about_a_choice_is_followed_by_the_values_that_there_are(written: Any, told: str) -> None:
    with pytest.raises(msgspec.ValidationError) as complaint:
        msgspec.json.decode(msgspec.json.encode(written), type=Outer)
    assert valid_values(complaint.value, Outer) == told

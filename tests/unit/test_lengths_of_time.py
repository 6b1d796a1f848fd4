"""Lengths of time as people write them: one notation for options, ages and settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai_whisperer.cli.arguments import seconds_of
from ai_whisperer.core.retention import age_in_seconds
from ai_whisperer.errors import InvalidInputError, SettingsError
from ai_whisperer.setting_sources import load_settings

LENGTHS = {
    "0s": 0,
    "1.5h": 5_400,
    "15m": 900,
    "15min": 900,
    "1h 30min": 5_400,
    "12H": 43_200,
    "30 days": 30 * 86_400,
    "8w": 56 * 86_400,
    "1 week, 2 days": 9 * 86_400,
}
NO_AGES = ("", "soon", "30", "-1d", "30 moons", "1month", "3y", "inf", "nan", "1e3", "d", "9" * 400 + "s")


@pytest.mark.parametrize(("text", "seconds"), LENGTHS.items())
def test_options_ages_and_the_setting_take_the_same_notation(text: str, seconds: float, tmp_path: Path) -> None:
    assert seconds_of(text) == seconds
    assert age_in_seconds(text) == seconds
    loaded = load_settings({}, folder=tmp_path, environment={"WHISPERER_PRUNE_OLDER_THAN": text})
    assert loaded.values.prune_older_than == text


@pytest.mark.parametrize("text", NO_AGES)
def test_what_is_no_age_is_refused_by_prune_and_by_the_setting(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        age_in_seconds(text)
    (tmp_path / "whisperer.toml").write_text(f'prune_older_than = "{text}"\n')
    with pytest.raises(SettingsError):
        load_settings({}, folder=tmp_path, environment={})


def test_an_age_without_a_unit_is_not_taken_for_seconds() -> None:
    with pytest.raises(InvalidInputError, match=r"Did you mean 30d\?"):
        age_in_seconds("30")

"""Names of sessions and agents as names of folders: none leads anywhere else, and no two are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_whisperer.core.file_names import file_name
from ai_whisperer.runtime.workplaces import work_of

ODD = [".", "..", "...", "", "/", "a/b", "../x", "%2E%2E", "%2e.", "\\", "a\0b", "Ä", "x" * 200, "日" * 200, "~", " "]


@pytest.mark.parametrize("name", ODD)
def test_the_work_of_a_session_lies_right_below_the_folder_for_work(name: str, tmp_path: Path) -> None:
    folder = work_of(tmp_path, name)
    assert folder.resolve().parent == (tmp_path / "work").resolve()
    folder.mkdir(parents=True)


def test_odd_names_do_not_meet() -> None:
    assert len({file_name(name) for name in ODD}) == len(ODD)


@given(st.text(), st.text())
def test_two_names_never_become_one(one: str, other: str) -> None:
    assert (file_name(one) == file_name(other)) == (one == other)


@given(st.text())
def test_no_name_leads_anywhere_else(name: str) -> None:
    made = file_name(name)
    assert made not in ("", ".", "..")
    assert len(Path(made).parts) == 1
    assert len(made.encode()) <= 255

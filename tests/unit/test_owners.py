"""Whose files they are for programs that do not run as the user whom they belong to."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from ai_whisperer.sandbox import owners
from ai_whisperer.sandbox.privileges import JOB_USER

EVERYBODY = "         0          0 4294967295\n"


def mapped(owner: int, known: str = EVERYBODY) -> dict[int, int]:
    """By the first of each range: whom it is shown as."""
    lines = [tuple(map(int, line.split())) for line in "".join(owners._shown_as_own(owner, known)).splitlines()]
    starts = sorted((inside, inside + count) for inside, _, count in lines)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(starts)), "ranges overlap"
    outside = sorted((shown, shown + count) for _, shown, count in lines)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(outside)), "shown twice"
    return {inside: shown for inside, shown, _ in lines}


@pytest.mark.parametrize("owner", [0, 1, 1000, JOB_USER - 1, JOB_USER + 1, 4_000_000])
def test_the_owner_is_shown_as_the_user_of_programs_and_others_as_themselves(owner: int) -> None:
    found = mapped(owner)
    assert found.pop(owner) == JOB_USER
    assert all(inside == shown for inside, shown in found.items())
    assert JOB_USER not in found


def test_who_is_not_known_in_this_container_is_left_out() -> None:
    assert mapped(0, "0 100000 65536\n") == {0: JOB_USER, 1: 1, JOB_USER + 1: JOB_USER + 1}


def test_what_root_made_is_handed_over_but_no_file_that_has_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    monkeypatch.setattr(os, "chown", lambda name, *_, **__: given.append(name))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_text("x")
    (tmp_path / "linked").write_text("x")
    os.link(tmp_path / "linked", tmp_path / "also-linked")
    (tmp_path / "link").symlink_to("/etc/passwd")
    owners.hand_over(str(tmp_path))
    assert sorted(given) == [".", ".", "file", "link"]

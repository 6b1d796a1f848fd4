"""Names of sessions and agents as names of folders: none leads anywhere else, and no two are the same."""

from __future__ import annotations

import asyncio
import os
import unicodedata
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.core.file_names import file_name, file_name_before, renamed
from ai_whisperer.core.limits import DEFAULTS
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.runtime.agents.folders import Folders, remove_work_of, work_of
from ai_whisperer.store.sqlite import SqliteStore
from ai_whisperer.tools.workplace import OWN

ALIKE = [
    ("A", "a"),
    ("Debbie", "debbie"),
    ("STRASSE", "straße"),
    ("\u00e9", "e\u0301"),
    ("\u212b", "\u00c5"),
    ("x", "x."),
    ("x", "x "),
    ("x...", "x"),
    ("I", "\u0131"),
    ("X" * 200, "x" * 200),
    ("X" * 140, "x" * 140),
    ("%41", "A"),
    ("%61", "a"),
]
"""Names that one file system or another takes for the same."""

DEVICES = ["con", "CON", "nul.txt", "aux", "Prn", "com1", "lpt9.log", "COM1.tar.gz"]
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


def as_a_file_system_sees_it(name: str) -> str:
    """The name on a file system that tells as little apart as any does."""
    return unicodedata.normalize("NFKC", name).casefold().rstrip(". ")


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_names_that_are_alike_do_not_share_a_folder(one: str, other: str) -> None:
    assert as_a_file_system_sees_it(file_name(one)) != as_a_file_system_sees_it(file_name(other))


@given(st.text(), st.text())
@example("A", "a")
def test_two_names_never_become_one_on_any_file_system(one: str, other: str) -> None:
    is_one = as_a_file_system_sees_it(file_name(one)) == as_a_file_system_sees_it(file_name(other))
    assert is_one == (one == other)


@given(st.text(alphabet="aAbB.xX%", max_size=6), st.text(alphabet="aAbB.xX%", max_size=6))
def test_two_short_names_never_become_one_on_any_file_system(one: str, other: str) -> None:
    is_one = as_a_file_system_sees_it(file_name(one)) == as_a_file_system_sees_it(file_name(other))
    assert is_one == (one == other)


@pytest.mark.parametrize("name", DEVICES)
def test_no_folder_is_called_like_a_device(name: str) -> None:
    stem = file_name(name).partition(".")[0].lower()
    assert stem not in ("con", "prn", "aux", "nul", "com1", "lpt9")


@pytest.mark.parametrize("name", ["worker", "team-1", "a.b", "x" * 150, "x" * 151, "default", "Ä".lower()])
def test_usual_names_are_what_they_were(name: str) -> None:
    assert file_name(name) == file_name_before(name)


@given(st.text(max_size=60))
@example("A")
@example("a.")
@example("con")
def test_a_name_of_before_is_found_again_and_one_of_now_stays(name: str) -> None:
    before, now = file_name_before(name), file_name(name)
    assert renamed([before]) == ({} if before == now else {before: now})
    assert renamed([now]) == {}


def test_folders_of_an_earlier_version_are_found_with_all_that_is_in_them(tmp_path: Path) -> None:
    for session, agent in (("Team", "Ada"), ("team", "ada"), ("Team", "con"), ("Team", "bob")):
        own = tmp_path / "work" / session / "agents" / agent
        own.mkdir(parents=True)
        (own / "notes.txt").write_text(f"{session} {agent}")
    for session, agent in (("Team", "Ada"), ("team", "ada"), ("Team", "con"), ("Team", "bob")):
        places = Folders(tmp_path, session, {})
        for _ in range(2):
            places.take_over()
            own = places.of(agent, AgentDefinition(), DEFAULTS).folders[OWN].path
            assert (own / "notes.txt").read_text() == f"{session} {agent}"
    assert sorted(each.name for each in (tmp_path / "work").iterdir()) == ["%54eam", "team"]


def test_what_is_there_under_both_names_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("A", "%41"):
        (tmp_path / "work" / name).mkdir(parents=True)
        (tmp_path / "work" / name / name).touch()
    Folders(tmp_path, "A", {}).take_over()
    assert (tmp_path / "work" / "A" / "A").exists()
    assert (tmp_path / "work" / "%41" / "%41").exists()
    assert "could not be renamed" in caplog.text


def test_folders_that_cannot_be_read_keep_no_session_from_opening(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise PermissionError(13, "Permission denied")

    async def open_and_close() -> None:
        manager = AsyncAgentSessionManager(store=SqliteStore.in_memory(), session_id="A", work=tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(os, "listdir", refuse)
            patch.setattr(Path, "rename", refuse)
            await manager.open()
        await manager.close()

    asyncio.run(open_and_close())
    assert f"{tmp_path / 'work'} could not be read (Permission denied)" in caplog.text
    assert "could not be put aside" in caplog.text


def test_the_folder_of_an_earlier_version_goes_with_its_session(tmp_path: Path) -> None:
    for name in ("A", "a"):
        (tmp_path / "work" / name / "agents" / "Ada").mkdir(parents=True)
    remove_work_of(tmp_path, "A")
    assert [each.name for each in (tmp_path / "work").iterdir()] == ["a"]

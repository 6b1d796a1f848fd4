from __future__ import annotations

import os
from pathlib import Path

import pytest

from ai_whisperer.errors import InvalidInputError, NotFoundError, TemplateError, UnknownTemplateError
from ai_whisperer.templates import library as shelves
from ai_whisperer.templates.drafts import Draft
from ai_whisperer.templates.folders import Listing, TemplateFolder, TemplateKind, look_into
from ai_whisperer.templates.library import BUILTIN, TemplateLibrary, library_of
from ai_whisperer.templates.parsing import Template, template_of
from tests.unit.template_files import BUILTIN_NAMES, write


@pytest.fixture
def library(tmp_path: Path) -> TemplateLibrary:
    return TemplateLibrary.standard(tmp_path / "project", tmp_path / "home")


def test_the_project_comes_before_claude_code_before_the_user_before_the_built_in(
    library: TemplateLibrary, tmp_path: Path
) -> None:
    def kind() -> TemplateKind:
        return next(entry.kind for entry in library.list() if entry.name == "writer")

    assert kind() is TemplateKind.BUILTIN
    write(tmp_path / "home" / "agents", "writer", "description: user")
    assert kind() is TemplateKind.USER
    write(tmp_path / "project" / ".claude" / "agents", "writer", "description: claude")
    assert kind() is TemplateKind.CLAUDE
    write(tmp_path / "project" / ".whisperer" / "agents", "writer", "description: project")
    assert kind() is TemplateKind.PROJECT
    assert library.get("writer").definition.description == "project"
    assert library.names() == BUILTIN_NAMES


def test_the_current_folder_and_the_home_are_taken_when_none_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WHISPERER_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(tmp_path / ".whisperer" / "agents", "one")
    write(tmp_path / "home" / ".whisperer" / "agents", "two")
    write(tmp_path / "other" / "agents", "three")
    assert {"one", "two"} < set(TemplateLibrary.standard().names())
    monkeypatch.setenv("WHISPERER_HOME", str(tmp_path / "other"))
    assert {"one", "three"} < set(TemplateLibrary.standard().names())
    assert "two" not in TemplateLibrary.standard().names()


def test_a_process_without_a_current_folder_still_has_templates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert "alice" in TemplateLibrary.standard(user=tmp_path).names()


def test_folders_can_be_given_instead_and_the_built_in_ones_follow(tmp_path: Path) -> None:
    write(tmp_path / "a", "writer", "description: mine")
    write(tmp_path / "b", "extra")
    both: list[str | Path] = [tmp_path / "a", str(tmp_path / "b")]
    for given in (tmp_path / "a", str(tmp_path / "a"), both):
        library = library_of(given)
        assert library.get("writer").definition.description == "mine"
        assert "debbie" in library.names()
    assert "extra" in library.names()
    assert library_of([]).names() == BUILTIN_NAMES
    assert library_of(library) is library


def test_folders_within_a_folder_are_looked_at_too(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "deeper", "diver")
    assert TemplateLibrary([tmp_path]).names() == ["diver"]


def test_only_visible_markdown_files_count(tmp_path: Path) -> None:
    write(tmp_path, "shown")
    write(tmp_path / ".git", "hidden")
    (tmp_path / ".shown.md").write_text("not a template")
    (tmp_path / "notes.txt").write_text("not a template")
    assert [entry.name for entry in TemplateLibrary([tmp_path]).list()] == ["shown"]


def test_case_and_spacing_do_not_matter(tmp_path: Path) -> None:
    write(tmp_path, "code-reviewer")
    library = TemplateLibrary([tmp_path])
    for name in ("code-reviewer", "Code Reviewer", " code_reviewer "):
        assert library.get(name).name == "code-reviewer"


def test_an_unknown_name_is_refused_with_the_names_and_the_nearest() -> None:
    with pytest.raises(UnknownTemplateError, match=r"'reviever'. Did you mean 'reviewer'\? .*alice, an"):
        library_of([]).get("reviever")
    with pytest.raises(NotFoundError, match=r"no template 'zzz'\. Templates: "):
        library_of([]).get("zzz")
    assert library_of([]).find("zzz") is None


def test_a_name_is_text() -> None:
    with pytest.raises(InvalidInputError, match="by text, not by int"):
        library_of([]).get(5)  # type: ignore[arg-type]


def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    library = TemplateLibrary([tmp_path])
    assert library.names() == []
    path = write(tmp_path, "a", "description: first")
    assert library.get("a").definition.description == "first"
    write(tmp_path, "a", "description: second")
    assert library.get("a").definition.description == "second"
    path.unlink()
    assert library.find("a") is None


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a")
    library = TemplateLibrary([tmp_path])
    first = library.get("a")
    monkeypatch.setattr("ai_whisperer.templates.folders.open", None, raising=False)
    assert library.get("a") is first


@pytest.fixture
def broken(tmp_path: Path) -> TemplateLibrary:
    folder = tmp_path / "agents"
    write(folder, "good")
    write(folder, "alice", "modle: x")
    (folder / "other.md").write_text("---\nname: claimed\nlimits: 5\n---\n")
    (folder / "notes.md").write_text("no fields here")
    (folder / "latin.md").write_bytes(b"---\nname: latin\ndescription: caf\xe9\n---\n")
    (folder / "huge.md").write_text("---\nname: huge\n---\n" + "x" * (1 << 20))
    (folder / "loop.md").symlink_to(folder / "loop.md")
    (folder / "gone.md").symlink_to(folder / "nowhere")
    (folder / "folder.md").mkdir()
    os.mkfifo(folder / "pipe.md")
    return TemplateLibrary([folder, BUILTIN])


def test_they_are_listed_with_their_errors_and_hide_no_others(broken: TemplateLibrary) -> None:
    assert [name for name in broken.names() if name not in BUILTIN_NAMES] == ["good"]
    errors = {entry.name: entry.error for entry in broken.list() if entry.error}
    assert set(errors) == {
        "alice", "claimed", "notes", "latin", "huge", "loop", "gone", "folder", "pipe"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("alice", "alice.md, line 3: unknown field `modle`"),
        ("claimed", "other.md, line 3: `limits` must have fields"),
        ("notes", "notes.md, line 1: a template begins"),
        ("latin", "latin.md, line 3: .*not UTF-8"),
        ("huge", "huge.md: .*more than 1,048,576 bytes"),
        ("loop", "loop.md: cannot be read .*symbolic links"),
        ("gone", "gone.md: cannot be read .*No such file"),
        ("folder", "folder.md: .*not a file"),
        ("pipe", "pipe.md: .*not a file"),
    ],
)
def test_asking_for_one_raises_its_error_again_and_again(broken: TemplateLibrary, name: str, why: str) -> None:
    for _ in range(2):
        with pytest.raises(TemplateError, match=why):
            broken.get(name)


def test_of_two_with_one_name_in_a_folder_the_first_counts(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nname: twin\ndescription: first\n---\n")
    (tmp_path / "b.md").write_text("---\nname: Twin\n---\n")
    library = TemplateLibrary([tmp_path])
    assert library.get("twin").definition.description == "first"
    assert [bool(entry.error and "Rename one" in entry.error) for entry in library.list()] == [False, True]


def test_links_between_folders_that_go_round_are_followed_once(tmp_path: Path) -> None:
    write(tmp_path / "agents", "a")
    (tmp_path / "agents" / "again").symlink_to(tmp_path / "agents")
    (tmp_path / "agents" / "itself").symlink_to(tmp_path / "agents" / "itself")
    assert [(entry.name, entry.error) for entry in TemplateLibrary([tmp_path / "agents"]).list()] == [("a", None)]


def test_a_folder_that_cannot_be_looked_at_is_told_of_and_hides_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    scan = os.scandir

    def refuse(path: str) -> object:
        if path == str(locked):
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    library = library_of(locked)
    assert library.names() == BUILTIN_NAMES
    assert "Permission denied" in str(library.list()[0].error)
    assert library.find("bob") is None
    with pytest.raises(UnknownTemplateError, match=r"Not all folders could be .*locked: cannot be read"):
        library.get("bob")


def test_a_file_in_the_place_of_a_folder_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "agents").write_text("")
    assert "Not a directory" in str(TemplateLibrary([tmp_path / "agents"]).list()[0].error)


def test_a_name_that_is_nobodys_costs_one_look_however_many_templates_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        write(tmp_path, f"t{number}", f"aliases: [other{number}, more{number}]")
    templates = library_of([tmp_path])
    assert templates.addressed("nobody") is None
    looked: list[TemplateFolder] = []
    made: list[object] = []

    def look(folder: TemplateFolder) -> Listing:
        looked.append(folder)
        return look_into(folder)

    def make(chain: tuple[Draft, ...]) -> Template:
        made.append(chain)
        return template_of(chain)

    monkeypatch.setattr(shelves, "look_into", look)
    monkeypatch.setattr(shelves, "template_of", make)
    assert templates.addressed("nobody") is None
    assert (len(looked), len(made)) == (len(templates.folders), 0)


def test_a_further_name_counts_at_once_and_no_longer_when_it_is_gone(tmp_path: Path) -> None:
    templates = library_of([tmp_path])
    assert templates.addressed("Robbie the robot") is None
    path = write(tmp_path, "robbie", "aliases: [Robbie the robot]")
    found = templates.addressed("robbie THE robot")
    assert found is not None
    assert (found[0].name, found[1]) == ("robbie", "robbie")
    path.unlink()
    assert templates.addressed("Robbie the robot") is None


@pytest.mark.parametrize("name", ["", " ", "_", "-", "\u00a0", "\t-_"])
def test_the_empty_name_means_no_template(tmp_path: Path, name: str) -> None:
    write(tmp_path, "quiet", 'aliases: ["-"]')
    assert library_of([tmp_path]).addressed(name) is None

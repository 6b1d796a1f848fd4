from pathlib import Path

import pytest

from ai_whisperer.errors import TemplateError
from ai_whisperer.templates.drafts import draft_of, extended
from ai_whisperer.templates.front_matter import split
from ai_whisperer.templates.library import TemplateLibrary, library_of, load_template
from tests.unit.template_files import write


def test_the_fields_of_the_parent_are_taken_unless_the_child_has_them(tmp_path: Path) -> None:
    write(
        tmp_path,
        "base",
        "display_name: The Base\naliases: b\ndescription: base\nmodel: scripted\ntools: check_mail, send_mail\n"
        "limits: {max_concurrent_tasks: 2, max_queue_length: 5}\nsettings: {temperature: 0, top_p: 1}",
        "Be good.",
    )
    write(
        tmp_path,
        "child",
        "extends: base\ndescription: child\ntools: reply_mail\nlimits: {max_queue_length: 9}\n"
        "settings: {temperature: 1}",
        "Be quick.",
    )
    definition = TemplateLibrary([tmp_path]).get("child").definition
    assert (definition.description, definition.model, definition.tools) == ("child", "scripted", ("reply_mail",))
    assert (definition.limits.max_concurrent_tasks, definition.limits.max_queue_length) == (2, 9)
    assert definition.settings == {"temperature": 1, "top_p": 1}
    assert definition.prompt == "Be good.\n\nBe quick."
    assert (definition.name, definition.aliases) == ("", ())


def test_a_prompt_that_only_one_of_them_has_stands_alone(tmp_path: Path) -> None:
    write(tmp_path, "silent")
    write(tmp_path, "speaker", "extends: silent", "Speak.")
    write(tmp_path, "heir", "extends: speaker")
    library = TemplateLibrary([tmp_path])
    assert library.get("speaker").definition.prompt == library.get("heir").definition.prompt == "Speak."


def test_a_template_can_extend_the_one_that_it_overrides(tmp_path: Path) -> None:
    write(tmp_path / "a", "debbie", "extends: Debbie\nmodel: scripted", "Be kind.")
    write(tmp_path / "b", "debbie", "extends: debbie\nlimits: {max_concurrent_tasks: 7}")
    debbie = library_of([tmp_path / "a", tmp_path / "b"]).get("debbie").definition
    assert (debbie.model, debbie.limits.max_concurrent_tasks) == ("scripted", 7)
    assert debbie.prompt.startswith("You are Debbie")
    assert debbie.prompt.endswith("Be kind.")
    assert debbie.schedule[0].interval_seconds == 1800


def test_a_changed_parent_counts_at_once(tmp_path: Path) -> None:
    write(tmp_path, "base", "description: old")
    write(tmp_path, "child", "extends: base")
    library = TemplateLibrary([tmp_path])
    assert library.get("child").definition.description == "old"
    write(tmp_path, "base", "description: newer")
    assert library.get("child").definition.description == "newer"


def test_a_circle_is_refused_with_the_file_the_line_and_the_chain(tmp_path: Path) -> None:
    write(tmp_path, "a", "extends: b")
    write(tmp_path, "b", "extends: c")
    write(tmp_path, "c", "description: x\nextends: a")
    library = TemplateLibrary([tmp_path])
    with pytest.raises(TemplateError, match=r"c\.md, line 4: .* forms a cycle: a → b → c → a\."):
        library.get("a")
    assert [bool(entry.error) for entry in library.list()] == [True, True, True]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (
            "extends: bass",
            r"a\.md, line 3: .* no template 'bass' to extend \(a → bass\)\. Did you mean 'base'",
        ),
        ("extends: a", r"a\.md, line 3: there is no other template 'a' further down[^?]*remove `extends`\.$"),
        ("extends: aa", r"a\.md, line 3: there is no template 'aa' to extend \(a → aa\)\.$"),
        ("extends: middle", r"middle\.md, line 3: there is no template 'lost' to extend \(a → middle → lost\)"),
        ("extends: bad", r"a\.md, line 3: .*cannot be used \(a → bad\): .*bad\.md, line 3: unknown field `x`"),
        ("extends: base\nlimits: {max_queue_length: 0}", r"a\.md, line 4: limits.max_queue_length"),
        ("extends: zero", r"zero\.md, line 5: limits.max_mail_bytes"),
    ],
)
def test_what_cannot_be_extended_is_refused(tmp_path: Path, fields: str, why: str) -> None:
    write(tmp_path, "base")
    write(tmp_path, "middle", "extends: lost")
    write(tmp_path, "bad", "x: y")
    write(tmp_path, "zero", "limits:\n  max_queue_length: 5\n  max_mail_bytes: 0")
    write(tmp_path, "a", fields)
    with pytest.raises(TemplateError, match=why):
        TemplateLibrary([tmp_path]).get("a")


def test_a_file_by_itself_extends_what_is_beside_it_or_built_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agents = tmp_path / ".whisperer" / "agents"
    write(agents, "base", "model: scripted\nextends: coder")
    path = write(agents, "coder", "extends: coder", "Python only.")
    child = write(agents, "child", "extends: base")
    assert load_template(path).definition.prompt.endswith("Python only.")
    assert load_template(child.relative_to(tmp_path)).definition.prompt.startswith("You are a coder")
    assert load_template(write(tmp_path / "x", "y", "extends: writer")).definition.prompt.startswith("You are the")


def test_a_list_that_is_replaced_takes_its_lines_with_it() -> None:
    parent, child = (
        draft_of(split(f"---\nname: {name}\nschedule:\n- {field}\n---\n", name), name)
        for name, field in (("parent", "cron: x"), ("child", "interval_seconds: 5"))
    )
    whole = extended(parent, child)
    assert whole.spot(("schedule", 0, "interval_seconds")) == ("child", 4)
    assert whole.spot(("schedule", 0, "cron")) == ("child", 4)

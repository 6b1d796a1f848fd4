"""Whatever stands in a file: it is a template, or it is refused with a `TemplateError`."""

from __future__ import annotations

import contextlib

from hypothesis import example, given
from hypothesis import strategies as st

from ai_whisperer.errors import TemplateError
from ai_whisperer.templates.claude import claude_draft
from ai_whisperer.templates.front_matter import split
from ai_whisperer.templates.parsing import parse_template, template_of

KEYS = st.sampled_from(
    [
        "name",
        "description",
        "tools",
        "model",
        "limits",
        "schedule",
        "settings",
        "extends",
        "maxTurns",
        "disallowedTools",
    ]
)
VALUES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["a", "[x, y]", "{a: 1}", "|\n  text", "&a [*a]", "!!set {a}", "2024-13-01", "{? [a] : b}", "0x", "1e999",
         "\n- cron: x", "\n  max_steps_per_task: 0", "<<: {a: b}", "!!binary x", "'", '"\\ud800"', "{1: 2}"]
    ),
)  # fmt: skip
HEADERS = st.lists(st.builds("{}: {}".format, KEYS, VALUES) | st.text(max_size=20), max_size=6).map("\n".join)


@given(header=HEADERS, body=st.text(max_size=20))
@example(header='name: a\nsettings: {x: "\\ud800"}', body="")
def test_a_template_is_read_or_refused(header: str, body: str) -> None:
    with contextlib.suppress(TemplateError):
        assert parse_template(f"---\n{header}\n---\n{body}").name


@given(header=HEADERS, body=st.text(max_size=20))
@example(header='name: "\\ud800"', body="")
def test_a_file_for_claude_code_is_read_whatever_its_fields_are(header: str, body: str) -> None:
    try:
        parts = split(f"---\n{header}\n---\n{body}", "a.md")
    except TemplateError:
        return
    assert template_of((claude_draft(parts, "a.md", file_name="a"),)).name

from pathlib import Path

import pytest

from ai_whisperer.errors import TemplateError
from ai_whisperer.templates.parsing import load_template, parse_template

GOOD = """---
name: analyzer
description: Looks at numbers
model: openai-chat:some-model
tools: check_mail, send_mail
limits:
  max_concurrent_tasks: 3
---
You look at numbers.

Be exact.
"""


def test_a_template_gives_the_name_the_definition_and_the_prompt() -> None:
    template = parse_template(GOOD)
    definition = template.definition
    assert template.name == "analyzer"
    assert (definition.description, definition.model) == ("Looks at numbers", "openai-chat:some-model")
    assert definition.tools == ("check_mail", "send_mail")
    assert definition.limits.max_concurrent_tasks == 3
    assert definition.prompt == "You look at numbers.\n\nBe exact."


def test_without_a_body_the_default_prompt_is_used() -> None:
    assert parse_template("---\nname: a\n---\n").definition.prompt.startswith("You are a helpful agent")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("", 1, "begins with a line '---'"),
        ("name: a", 1, "begins with a line '---'"),
        ("---\nname: a\n", 2, "second line '---'"),
        ("---\nname: a\ntools: [x\n---\n", 3, "expected"),
        ("---\n- a\n---\n", 2, "lines like 'name: analyzer'"),
        ("---\ndescription: x\n---\n", 2, "needs a name"),
        ("---\ndescription: x\nname: two words\n---\n", 3, "cannot name an agent"),
        ("---\nname: 5\n---\n", 2, "needs a name"),
        ("---\nname: a\nmodle: x\n---\n", 3, "unknown field `modle`"),
        ("---\nname: a\nmodel: x\nshade: blue\n---\n", 4, "unknown field `shade`"),
        ("---\nname: a\n\nlimits:\n  max_steps_per_task: 0\n---\n", 4, "limits.max_steps_per_task"),
        ("---\nname: a\nmodel: [1]\n---\n", 3, r"\$\.model"),
    ],
)
def test_a_malformed_template_is_refused_with_the_line(text: str, line: int, why: str) -> None:
    with pytest.raises(TemplateError, match=rf"file.md, line {line}: .*{why}"):
        parse_template(text, source="file.md")


def test_a_template_may_have_a_schedule_and_a_bad_one_is_refused_with_the_line() -> None:
    text = """---
name: reporter
model: scripted
schedule:
  - cron: "{cron}"
    zone: Europe/Berlin
    prompt: Write the report.
    missed: skip
---
You write reports.
"""
    entry = parse_template(text.format(cron="0 9 * * MON-FRI")).definition.schedule[0]
    assert (entry.zone, entry.prompt, entry.missed) == ("Europe/Berlin", "Write the report.", "skip")
    with pytest.raises(TemplateError, match=r"line 4: schedule\[0\]\.cron .*the hour field '99'"):
        parse_template(text.format(cron="0 99 * * *"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match=r"nowhere\.md: cannot be read"):
        load_template(tmp_path / "nowhere.md")
    (tmp_path / "binary.md").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TemplateError, match="encoding"):
        load_template(tmp_path / "binary.md")
    (tmp_path / "good.md").write_text(GOOD)
    assert load_template(tmp_path / "good.md").name == "analyzer"

from pathlib import Path

import pytest

from ai_whisperer.domain.schedules import MissedRuns
from ai_whisperer.errors import TemplateError
from ai_whisperer.templates.library import load_template
from ai_whisperer.templates.parsing import parse_template

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


def test_the_name_that_is_shown_can_differ_from_the_name() -> None:
    template = parse_template("---\nname: ann\ndisplay_name: Ann Smith\naliases: smith, a\n---\n")
    assert (template.name, template.definition.name) == ("ann", "Ann Smith")
    assert template.definition.aliases == ("smith", "a")


@pytest.mark.parametrize("tools", ["check_mail,  send_mail,", "[check_mail, send_mail]", "\n- check_mail\n- send_mail"])
def test_tools_can_be_a_list_or_text_with_commas(tools: str) -> None:
    assert parse_template(f"---\nname: a\ntools: {tools}\n---\n").definition.tools == ("check_mail", "send_mail")


def test_several_models_are_a_list() -> None:
    definition = parse_template("---\nname: a\nmodel: [openai-chat:x, inherit]\n---\n").definition
    assert definition.models == ("openai-chat:x", "inherit")


def test_an_empty_list_of_tools_grants_none() -> None:
    assert parse_template("---\nname: a\ntools: []\n---\n").definition.tools == ()


def test_one_schedule_needs_no_list() -> None:
    one = parse_template("---\nname: a\nschedule:\n  interval_seconds: 1800\n  prompt: Look.\n---\n")
    listed = parse_template("---\nname: a\nschedule:\n- interval_seconds: 1800\n  prompt: Look.\n---\n")
    assert one.definition.schedule == listed.definition.schedule
    assert (one.definition.schedule[0].interval_seconds, one.definition.schedule[0].prompt) == (1800, "Look.")


def test_every_field_of_a_definition_can_be_stated() -> None:
    template = parse_template(
        "---\nname: a\nsettings: {temperature: 0.5}\nsubscribes: data_ready, alert\nretry: {max_attempts: 2}\n"
        "supervision: {max_restarts: 0}\nschedule: {cron: '0 9 * * *', zone: Europe/Vienna, event: go, missed: all}\n"
        "color: blue\n---\n"
    )
    definition = template.definition
    assert definition.settings == {"temperature": 0.5}
    assert definition.subscribes == ("data_ready", "alert")
    assert (definition.retry.max_attempts, definition.supervision.max_restarts) == (2, 0)
    assert (definition.schedule[0].zone, definition.schedule[0].missed) == ("Europe/Vienna", MissedRuns.ALL)
    assert template.ignored_fields == ("color",)


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("", 1, "begins with a line '---'"),
        ("name: a", 1, "begins with a line '---'"),
        ("---\nname: a\n", 2, "second line '---'"),
        ("---\nname: a\n  ---\n", 3, "second line '---'"),
        ("---\nname: a\ntools: [x\n---\n", 3, "expected"),
        ("---\nname: a\ndescription: b: c\n---\n", 3, "in quotes"),
        ("---\n- a\n---\n", 2, "lines like 'name: analyzer'"),
        ("---\nname: a\n5: b\n---\n", 3, "lines like 'name: analyzer'"),
        ("---\nname: a\n? [b]\n: c\n---\n", 3, "lines like 'name: analyzer'"),
        ("---\n---\n", 2, "needs a name"),
        ("---\ndescription: x\n---\n", 2, "needs a name"),
        ("---\ndescription: x\nname: two words\n---\n", 3, "cannot name an agent"),
        ("---\ndescription: x\nname: user\n---\n", 3, "the person's own address"),
        ("---\nname: 5\n---\n", 2, "`name` must be text, not 5"),
        ("---\nname:\n---\n", 2, "`name` must be text, not empty"),
        ("---\nname: a\ndisplay_name: 1\n---\n", 3, "`display_name` must be text"),
        ("---\nname: a\nextends: [b]\n---\n", 3, "`extends` must be text"),
        ("---\nname: a\nextends: b\n---\n", 3, "load_template or a library"),
        ("---\nname: a\nmodle: x\n---\n", 3, "unknown field `modle`. Did you mean `model`.*Known fields: name, "),
        ("---\nname: a\nmodel: x\nshade: blue\n---\n", 4, r"unknown field `shade`\. Known"),
        ("---\nname: a\nmodel: x\nmodel: y\n---\n", 4, "`model` is there already, on line 3"),
        ("---\nname: a\nlimits:\n  max_steps_per_task: 0\n---\n", 4, "limits.max_steps_per_task must be at least 1"),
        ("---\nname: a\nlimits:\n  max_mail_bytes: 9\n  max_mail_bytes: 9\n---\n", 5, "already, on line 4"),
        ("---\nname: a\nlimits:\n\n  max_mail_byte: 9\n---\n", 5, "Did you mean `max_mail_bytes`"),
        (
            "---\nname: a\nlimits:\n  max_mail_bytes: many\n---\n",
            4,
            "`limits.max_mail_bytes` must be a whole number, not text",
        ),
        ("---\nname: a\nlimits: 5\n---\n", 3, "`limits` must have fields of its own"),
        ("---\nname: a\nretry:\n  # often\n  max_attempts: 0\n---\n", 5, "retry.max_attempts"),
        ("---\nname: a\nmodel: [1]\n---\n", 3, r"`model\[0\]` must be text, not a whole number"),
        ("---\nname: a\nmodel: {a: b}\n---\n", 3, "`model` must be "),
        ("---\nname: a\nmodel: [scripted, scripted]\n---\n", 3, r"model\[1\] is 'scripted' again"),
        ("---\nname: a\nmodel: ''\n---\n", 3, "model must not be empty"),
        ("---\nname: a\ndescription: yes\n---\n", 3, "in quotes"),
        ("---\nname: a\ntools:\n---\n", 3, "`tools` is empty"),
        (
            "---\nname: a\ntools:\n- x\n- 5\n---\n",
            5,
            r"`tools\[1\]` must be text, not a whole number. Put it in quotes",
        ),
        ("---\nname: a\nschedule: daily\n---\n", 3, "`schedule` must be a list, not text.$"),
        ("---\nname: a\nschedule:\n  cron: x\n  promt: y\n---\n", 5, r"`schedule\[0\].promt`. Did you mean `prompt`"),
        ("---\nname: a\nschedule:\n- cron: x\n- cron: 5\n---\n", 5, r"`schedule\[1\].cron`"),
        ("---\nname: a\nschedule:\n- cron: x\n  missed: never\n---\n", 5, r"`schedule\[0\].missed` must be one of"),
        ("---\nname: a\nprompt: x\n---\ny\n", 3, "there twice"),
        ("---\nname: a\nsettings: &x {a: 1}\nlimits: *x\n---\n", 3, "anchors and aliases"),
        ("---\nname: a\ndescription: \x07\n---\n", 3, "Remove the character"),
        ('---\nname: a\nsettings: {"\\ud800": 1}\n---\n', 3, "not text"),
        ('---\nname: a\ntools:\n- x\n- "\\ud800"\n---\n', 5, "not text"),
        ("---\nname: a\ntools: !!python/name:os.system x\n---\n", 3, "could not determine a constructor"),
        ("---\nname: a\nsettings:\n  x: 2024-99-99\n---\n", 4, "'2024-99-99' cannot be read .*in quotes"),
        ("---\nname: a\nsettings: " + "[" * 5000 + "\n---\n", 2, "cannot be read as YAML"),
        ("---\nname: a\ndescription: " + "x" * 70_000 + "\n---\n", 4, "at most 65,536"),
    ],
)
def test_a_malformed_template_is_refused_with_the_line(text: str, line: int, why: str) -> None:
    with pytest.raises(TemplateError, match=rf"file.md, line {line}: .*{why}"):
        parse_template(text, source="file.md")


def test_windows_line_ends_do_not_matter() -> None:
    windows = parse_template(GOOD.replace("\n", "\r\n"))
    assert windows == parse_template(GOOD)
    with pytest.raises(TemplateError, match="line 3"):
        parse_template("---\r\nname: a\r\nmodel: [1]\r\n---\r\n")


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    with pytest.raises(TemplateError, match="line 4"):
        parse_template("---\nname: a\ndescription: 'one\u2028two\x85three'\nmodel: [1]\n---\n")


def test_the_prompt_is_kept_to_the_letter() -> None:
    body = "One\u2028line\x0c.\n\n---\n\n    code: x\n\nEnd"
    assert parse_template(f"---\nname: a\n---\n\n{body}\n").definition.prompt == body


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
    with pytest.raises(TemplateError, match=r"line 5: schedule\[0\]\.cron .*the hour field '99'"):
        parse_template(text.format(cron="0 99 * * *"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match=r"nowhere\.md: cannot be read"):
        load_template(tmp_path / "nowhere.md")
    (tmp_path / "binary.md").write_bytes(b"---\n\xff\xfe\x00")
    with pytest.raises(TemplateError, match=r"binary.md, line 2: .*encoding"):
        load_template(tmp_path / "binary.md")
    (tmp_path / "good.md").write_text(GOOD)
    assert load_template(tmp_path / "good.md").name == "analyzer"


def test_a_template_may_have_an_output_schema_and_a_bad_one_names_the_field(tmp_path: Path) -> None:
    written = "---\nname: guide\noutput_schema:\n  type: {kind}\n  required: [city]\n---\nSay which city.\n"
    (tmp_path / "guide.md").write_text(written.format(kind="object"))
    assert load_template(tmp_path / "guide.md").definition.output_schema == {"type": "object", "required": ["city"]}
    (tmp_path / "guide.md").write_text(written.format(kind="objekt"))
    with pytest.raises(TemplateError, match="output_schema"):
        load_template(tmp_path / "guide.md")

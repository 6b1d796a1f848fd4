"""Files written for Claude Code load unchanged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ai_whisperer.domain.definition import DEFAULT_PROMPT
from ai_whisperer.errors import TemplateError
from ai_whisperer.models.catalog import check_name
from ai_whisperer.templates.claude import denied_names, granted_names, unusable_model
from ai_whisperer.templates.folders import TemplateKind
from ai_whisperer.templates.library import TemplateLibrary, load_template
from ai_whisperer.templates.parsing import Template
from tests.unit.template_files import write

FILES = Path(__file__).parent / "claude_agents"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(FILES, tmp_path / ".claude" / "agents")
    return tmp_path


@pytest.fixture
def library(project: Path) -> TemplateLibrary:
    return TemplateLibrary.standard(project, project / "home")


def test_every_file_can_be_used(library: TemplateLibrary) -> None:
    entries = [entry for entry in library.list() if entry.kind is TemplateKind.CLAUDE]
    assert [entry.name for entry in entries if entry.error] == []
    assert [entry.name for entry in entries] == [
        "code-reviewer", "custom-keys", "escaped", "everything", "examples-below", "grosster-ubersetzer", "nameless",
        "no-prompt", "plain", "quotes",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "begins", "ends"),
    [
        ("plain", "Tidies up imports. Use proactively", "after every change."),
        ("code-reviewer", "Use this agent after a change was made: it", "review it.</commentary></example>"),
        ("examples-below", "Use this agent when tests fail. Examples:\n\n<example>\nContext:", "tab\n</example>"),
        ("escaped", r"Use it for schemas.\n\nExamples:\n- <example>", r"'Add a table'\n  </example>"),
        ("everything", "Uses every field.\n\nIn two", "paragraphs."),
        ("Größter Übersetzer", 'Translates "short" texts: into', "German"),
        ("quotes", 'Use when the user says "fix it": it finds', "the cause"),
        ("nameless", "@mentions and `code` at the start", "100% unquoted"),
        ("no-prompt", "[draft] has", "no prompt yet"),
    ],
)
def test_a_description_may_be_written_as_claude_code_lets_one(
    library: TemplateLibrary, name: str, begins: str, ends: str
) -> None:
    found = library.get("grosster-ubersetzer" if name.startswith("G") else name).definition.description
    assert found.startswith(begins)
    assert found.endswith(ends)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("description: [draft]", "[draft]"),
        ("description: 2024-01-01", "2024-01-01"),
        ("description:\nContext: a\nuser: b", "Context: a\nuser: b"),
        ("description: >\n  folded\n  text", "folded text"),
        ("description:", ""),
        ("model: opus", ""),
    ],
)
def test_a_description_is_text_whatever_yaml_makes_of_it(
    project: Path, library: TemplateLibrary, written: str, meant: str
) -> None:
    (project / ".claude" / "agents" / "plain.md").write_text(f"---\nname: plain\n{written}\n---\n")
    assert library.get("plain").definition.description == meant


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("plain", "inherit"),
        ("code-reviewer", "inherit"),
        ("escaped", "inherit"),
        ("quotes", "inherit"),
        ("examples-below", "inherit"),
        ("everything", "anthropic:claude-sonnet-4-5"),
    ],
)
def test_a_short_model_name_means_the_default_and_a_full_one_the_provider(
    library: TemplateLibrary, name: str, model: str
) -> None:
    assert library.get(name).definition.model == model


def test_a_model_without_a_key_gives_way_to_that_of_the_session_which_is_said_once(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    write(project / ".whisperer" / "agents", "own", "model: anthropic:claude-sonnet-4-5")
    write(project / ".whisperer" / "agents", "child", "extends: everything")
    folders = TemplateLibrary.standard(project, project / "home").folders
    library = TemplateLibrary(folders, check_model=check_name)
    assert library.list()
    assert caplog.records == [], "it is not used yet"
    found = [library.get("everything") for _ in range(2)][1]
    assert found.definition.model == "inherit"
    assert found.ignored_fields[-1] == (
        "model: claude-sonnet-4-5 (the session's model is used: ANTHROPIC_API_KEY is not set)"
    )
    assert [record.getMessage() for record in caplog.records] == [f"{found.source}: {found.ignored_fields[-1]}"]
    assert library.get("child").definition.model == "inherit"
    assert library.get("own").definition.model == "anthropic:claude-sonnet-4-5"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    assert library.get("everything").definition.model == "anthropic:claude-sonnet-4-5"


@pytest.mark.parametrize("variable", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"])
def test_a_model_can_be_used_wherever_its_provider_can_be_reached(variable: str) -> None:
    model = "anthropic:claude-sonnet-4-5"
    assert unusable_model(model, {variable: "given"}) is None
    assert unusable_model(model, {variable: " "}) is not None


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("plain", None),
        ("code-reviewer", ("Read", "Grep", "Glob", "Bash(git diff:*, git log:*)")),
        ("examples-below", ("Read", "Write")),
        ("escaped", ("mcp__postgres__query", "mcp__github__*", "Task", "TodoWrite")),
        ("everything", ("Read", "Edit", "Agent(worker, helper)")),
        ("custom-keys", None),
        ("grosster-ubersetzer", None),
        ("no-prompt", ()),
    ],
)
def test_its_tools_are_kept_apart(library: TemplateLibrary, name: str, tools: tuple[str, ...] | None) -> None:
    template = library.get(name)
    assert template.outside_tools == tools
    assert template.definition.tools is None


def test_the_prompt_is_the_text_below(library: TemplateLibrary) -> None:
    reviewer = library.get("code-reviewer").definition.prompt
    assert reviewer.startswith("You are a senior reviewer.\n\n1. Run")
    assert reviewer.endswith("---\n\nBe brief.")
    assert library.get("no-prompt").definition.prompt == DEFAULT_PROMPT


def test_what_means_nothing_here_is_ignored_and_told(library: TemplateLibrary) -> None:
    assert library.get("everything").ignored_fields == (
        "permissionMode", "mcpServers", "hooks", "skills", "memory", "background", "effort", "isolation", "color",
        "initialPrompt", "tools: Agent(worker, helper)",
    )  # fmt: skip
    custom = library.get("custom-keys")
    assert custom.ignored_fields == ("version", "category", "tags", "limits", "schedule")
    assert custom.definition.schedule == ()


def test_a_tool_that_is_granted_for_some_calls_only_is_told_as_not_granted(library: TemplateLibrary) -> None:
    assert library.get("code-reviewer").ignored_fields == (
        "color", "model: sonnet", "tools: Bash(git diff:*, git log:*)",
    )  # fmt: skip
    assert "run_command" not in granted_names(library.get("code-reviewer").outside_tools or ())


def test_its_tools_have_names_of_ours() -> None:
    given = ("Read", "Write", "Edit", "MultiEdit", "LS", "Glob", "Grep", "Bash", "WebFetch", "Task", "bash", " Bash")
    assert granted_names(given) - set(given) == {
        "read_file", "write_file", "edit_file", "list_directory", "search_files", "run_command", "fetch_url",
        "delegate_task",
    }  # fmt: skip
    assert granted_names(["Agent"]) == {"Agent", "delegate_task"}
    assert denied_names(["Bash(rm:*)", "Read", "Task"]) >= {"run_command", "read_file", "delegate_task"}


def test_turns_become_steps(library: TemplateLibrary) -> None:
    assert library.get("everything").definition.limits.max_steps_per_task == 24
    assert library.get("quotes").definition.limits.max_steps_per_task is None


def test_denied_tools_are_kept(library: TemplateLibrary) -> None:
    assert library.get("everything").denied_tools == ("Write", "WebFetch")
    assert library.get("nameless").denied_tools == ("Bash",)


def test_a_name_that_no_agent_can_have_is_shown_but_changed(library: TemplateLibrary) -> None:
    template = library.get("grosster ubersetzer")
    assert (template.name, template.definition.name) == ("grosster-ubersetzer", "Größter Übersetzer")


def test_a_name_that_cannot_be_changed_into_one_gives_way_to_that_of_the_file(
    project: Path, library: TemplateLibrary
) -> None:
    for file_name in ("odd", "!!"):
        path = project / ".claude" / "agents" / f"{file_name}.md"
        path.write_text("---\ndescription: x\nname: 審査\n---\n")
    assert library.get("odd").definition.name == "審査"
    with pytest.raises(TemplateError, match=r"!!\.md, line 3: .*no letter or digit"):
        library.get("!!")


def test_a_file_by_itself_is_read_by_the_rules_of_its_folder(project: Path) -> None:
    agents = project / ".claude" / "agents"
    assert load_template(agents / "team" / "nameless.md").name == "nameless"
    with pytest.raises(TemplateError, match=r"README\.md, line 1: a template begins"):
        load_template(agents / "README.md")
    shutil.copy(agents / "code-reviewer.md", project)
    with pytest.raises(TemplateError, match=r"code-reviewer\.md, line 3: .*in quotes"):
        load_template(project / "code-reviewer.md")


def test_a_template_can_extend_one_and_add_what_is_missing(project: Path, library: TemplateLibrary) -> None:
    own = project / ".whisperer" / "agents"
    write(own, "night-reviewer", "extends: code-reviewer\nschedule: {cron: '0 3 * * *', prompt: Review.}", "At night.")
    write(own, "code-reviewer", "extends: code-reviewer\ntools: check_mail")
    night = library.get("night-reviewer")
    assert night.definition.schedule[0].cron == "0 3 * * *"
    assert night.definition.prompt.endswith("Be brief.\n\nAt night.")
    assert (library.get("code-reviewer").outside_tools, night.outside_tools) == (None, None)
    (own / "code-reviewer.md").unlink()
    assert kept_tools(library.get("night-reviewer")) == ["Read", "Grep", "Glob", "Bash(git diff:*, git log:*)"]


def kept_tools(template: Template) -> list[str]:
    assert template.definition.tools is None
    return list(template.outside_tools or ())

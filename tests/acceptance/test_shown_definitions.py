"""What commands show of definitions: of agents, of templates, and of files that were written for Claude Code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer.cli.fleet import facts_of
from ai_whisperer.core.definitions import definition_from
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.tools.registry import COORDINATION_TOOLS
from tests.acceptance.command_stage import Whisperer, serving

SHOWN_ELSEWHERE = {"name", "description", "prompt"}
STATED = {
    "model": "scripted",
    "settings": {"temperature": 0.25},
    "cut_answers": "final",
    "context": {"window": 8000},
    "tools": ["read_file", "check_mail"],
    "folders": {"shared": "read"},
    "working_folder": "shared",
    "network": ["example.org"],
    "approve": ["read_file"],
    "aliases": ["reader"],
    "limits": {"max_steps_per_task": 7},
    "retry": {"max_attempts": 2},
    "supervision": {"max_restarts": 1},
    "subscribes": ["alert"],
    "schedule": [{"cron": "0 9 * * *", "prompt": "Look around."}],
    "output_schema": {"type": "object"},
}
CLAUDE = """---
name: visitor
description: From elsewhere
tools: Read, Task, WebSearch, Bash(git diff:*), mcp__github__search
model: sonnet
color: red
---
You read.
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("served")
    agents = folder / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "visitor.md").write_text(CLAUDE)
    with serving(folder):
        yield folder


def facts(shown: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in shown.partition("\n\n")[0].splitlines())
    return {name: value.strip() for name, _, value in pairs}


def test_every_field_of_a_definition_is_shown() -> None:
    assert set(STATED) == set(AgentDefinition.__struct_fields__) - SHOWN_ELSEWHERE
    told = dict(facts_of(definition_from(STATED)))
    assert [name for name in STATED if not told.get(name)] == []


def test_an_agent_is_shown_with_all_that_its_definition_states(whisperer: Whisperer) -> None:
    whisperer.ok("agents", "create", "ann", "--config", json.dumps(STATED))
    shown = facts(whisperer.ok("agents", "show", "ann"))
    assert {name: shown[name] for name in ("approve", "limits", "settings", "retry", "schedule")} == {
        "approve": "read_file",
        "limits": "max_steps_per_task=7",
        "settings": "temperature=0.25",
        "retry": "max_attempts=2",
        "schedule": "0 9 * * * (UTC): Look around.",
    }


def test_a_file_for_claude_code_is_shown_with_what_it_grants_and_what_is_ignored(whisperer: Whisperer) -> None:
    shown = facts(whisperer.ok("templates", "show", "visitor"))
    assert set(shown["tools"].split(", ")) == {"read_file", *COORDINATION_TOOLS}
    ignored = "color, model: sonnet, tools: Bash(git diff:*), tools: WebSearch, tools: mcp__github__search"
    assert shown["ignored"] == ignored
    assert whisperer.json("templates", "show", "visitor")["ignored"] == [
        "color", "model: sonnet", "tools: Bash(git diff:*)", "tools: WebSearch",
        "tools: mcp__github__search",
    ]  # fmt: skip
    created = whisperer("agents", "create", "visitor")
    assert created.code == 0
    assert f"these mean nothing here: {ignored}." in created.err
    assert facts(whisperer.ok("agents", "show", "visitor"))["tools"] == shown["tools"]


def test_a_template_that_grants_all_tools_does_not_say_that_it_grants_those_of_the_machine(
    whisperer: Whisperer,
) -> None:
    shown = facts(whisperer.ok("templates", "show", "coder"))
    assert shown["tools"] != "all"
    assert "ignored" not in shown

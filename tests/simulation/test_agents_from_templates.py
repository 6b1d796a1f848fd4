from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from ai_whisperer import AgentDefinition, AsyncAgentSessionManager, TemplateLibrary
from ai_whisperer.domain.definition import DEFAULT_PROMPT
from ai_whisperer.errors import (
    DefinitionError,
    DuplicateIdError,
    InvalidInputError,
    StateError,
    TemplateError,
    UnknownTemplateError,
)
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.templates.parsing import parse_template
from ai_whisperer.tools.registry import COORDINATION_TOOLS
from tests.simulation.stage import opened, play, play_over_crash


def definition_of(manager: AsyncAgentSessionManager, agent: str) -> AgentDefinition:
    return manager.active_sessions[agent].record.definition


async def look_up(word: str) -> str:
    """Look a word up."""
    return word


async def delete_all() -> str:
    """Delete everything."""
    return "gone"


def test_an_agent_that_is_called_like_a_template_is_made_of_it() -> None:
    asked: list[ModelRequest] = []

    def say(request: ModelRequest) -> str:
        asked.append(request)
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("debbie")
        await manager.run_task("Debbie the debugger", "What is wrong?")
        await manager.send_mail("d", "Hello", "You are there?")
        assert "You are Debbie" in asked[0].system
        assert definition_of(manager, "debbie").schedule[0].interval_seconds == 1800

    play(scenario, say)


def test_an_agent_that_nothing_is_said_about_gets_a_sensible_default() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("bob")
        assert definition_of(manager, "bob") == AgentDefinition()
        assert definition_of(manager, "bob").prompt == DEFAULT_PROMPT

    play(scenario)


def test_a_config_without_a_template_is_the_whole_definition_and_reads_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        monkeypatch.setattr(TemplateLibrary, "find", None)
        await manager.create_agent("debbie", {"description": "mine"})
        assert definition_of(manager, "debbie") == AgentDefinition(description="mine")

    play(scenario)


def test_several_agents_are_made_of_one_template_without_its_names() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("coder1", "coder2", "coder3"):
            await manager.create_agent(name, template="Coder")
            assert definition_of(manager, name).prompt.startswith("You are a coder")
        for name in ("watch1", "watch2"):
            await manager.create_agent(name, template="debbie")
            assert (definition_of(manager, name).name, definition_of(manager, name).aliases) == ("", ())

    play(scenario)


def test_a_config_overrides_the_fields_of_its_template() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("debbie", {"limits": {"max_queue_length": 5}, "aliases": ["deb"]}, template="debbie")
        mixed = definition_of(manager, "debbie")
        assert (mixed.limits.max_queue_length, mixed.limits.max_concurrent_tasks) == (5, 2)
        assert (mixed.aliases, mixed.name) == (("deb",), "Debbie")
        assert mixed.prompt.startswith("You are Debbie")
        await manager.create_agent("other", AgentDefinition(prompt="Be other.", schedule=()), template="debbie")
        other = definition_of(manager, "other")
        assert (other.prompt, len(other.schedule)) == ("Be other.", 1)

    play(scenario)


def test_names_of_a_template_that_are_taken_are_left_out() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("d")
        await manager.create_agent("debbie")
        assert definition_of(manager, "debbie").aliases == ("debbie the debugger",)
        with pytest.raises(DuplicateIdError, match="'d' already means 'd'"):
            await manager.create_agent("x", {"aliases": ["d"]}, template="debbie")

    play(scenario)


def test_the_whole_built_in_team_can_work_in_one_session() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for entry in manager.list_templates():
            await manager.start_agent(entry.name)
        answers = await asyncio.gather(*(manager.run_task(name, "Go") for name in manager.active_sessions))
        assert len(answers) == 12

    play(scenario)


def test_what_is_not_a_template_is_refused_and_changes_nothing() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(UnknownTemplateError, match="Did you mean 'coder'"):
            await manager.create_agent("x", template="codr")
        with pytest.raises(InvalidInputError, match="a template's name or a Template, not int"):
            await manager.create_agent("x", template=cast(Any, 5))
        with pytest.raises(DefinitionError, match="unknown field `modle`"):
            await manager.create_agent("x", {"modle": "y"}, template="coder")
        with pytest.raises(DefinitionError, match="a mapping of fields, not str"):
            await manager.create_agent("x", cast(Any, "y"), template="coder")
        with pytest.raises(DefinitionError, match="nobody has provided: nope"):
            await manager.create_agent("x", template=parse_template("---\nname: x\ntools: nope\n---\n"))
        assert manager.active_sessions == {}

    play(scenario)


def test_a_broken_file_stops_only_the_agents_that_it_is_for(tmp_path: Path) -> None:
    (tmp_path / "alice.md").write_text("---\nname: alice\nmodle: x\n---\n")

    async def main() -> None:
        async with AsyncAgentSessionManager(templates=tmp_path) as manager:
            with pytest.raises(TemplateError, match=r"alice\.md, line 3"):
                await manager.create_agent("alice")
            assert manager.active_sessions == {}
            await manager.create_agent("alice", {"description": "fine"})
            await manager.create_agent("bob")
            await manager.create_agent("coder")

    asyncio.run(main())


def test_an_agent_keeps_its_definition_when_the_template_changes() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("helper", template=parse_template("---\nname: helper\naliases: h\n---\nHelp."))
        await asyncio.sleep(100)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert (definition_of(manager, "helper").prompt, definition_of(manager, "helper").aliases) == ("Help.", ("h",))

    play_over_crash(before, after, crash_after_seconds=10)


def test_a_stopped_agent_is_started_with_its_template_as_it_is_now(tmp_path: Path) -> None:
    file = tmp_path / "helper.md"

    async def main() -> None:
        file.write_text("---\nname: helper\naliases: h\n---\nHelp.")
        async with AsyncAgentSessionManager(templates=tmp_path) as manager:
            await manager.create_agent("helper")
            file.write_text("---\nname: helper\naliases: [h, hand]\n---\nHelp more.")
            with pytest.raises(StateError, match="Stop it first"):
                await manager.start_agent("helper", template="helper")
            await manager.stop_agent("helper")
            await manager.start_agent("h", {"description": "Helps"}, template="helper")
            now = definition_of(manager, manager.get_agent_status("hand").agent_id)
            assert (now.prompt, now.aliases, now.description) == ("Help more.", ("h", "hand"), "Helps")
            await manager.start_agent("other", template="helper")
            assert definition_of(manager, "other").prompt == "Help more."

    asyncio.run(main())


def test_the_standard_library_looks_into_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = tmp_path / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "db-expert.md").write_text(
        "---\nname: db-expert\ndescription: Knows: all\ntools: WebFetch\n---\nYou know.\n"
    )
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with AsyncAgentSessionManager() as manager:
            await manager.create_agent("db-expert", template="db-expert")
            assert definition_of(manager, "db-expert").description == "Knows: all"
            assert await manager.run_task("DB Expert", "Hello")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        ("", {"look_up", "delete_all"}),
        ("tools: Task, Bash(ls:*), WebFetch(domain:example.com), webfetch", set()),
        ("tools: WebFetch, look_up", {"fetch_url", "look_up"}),
        ("tools: fetch_url", {"fetch_url"}),
        ("tools: WebFetch, look_up\ndisallowedTools: WebFetch(domain:a.example)", {"look_up"}),
        ("tools: '*'", {"look_up", "delete_all"}),
        ("tools: TodoWrite, look_up", {"look_up"}),
        ("disallowedTools: delete_all, Write", {"look_up"}),
        ("disallowedTools: Write", {"look_up", "delete_all"}),
        ("tools: look_up, delete_all\ndisallowedTools: delete_all", {"look_up"}),
    ],
)
def test_a_file_for_claude_code_gets_the_coordination_tools_and_of_the_others_what_it_grants(
    tmp_path: Path, fields: str, more: set[str]
) -> None:
    agents = tmp_path / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "a.md").write_text(f"---\nname: worker\ndescription: Works\n{fields}\n---\nWork.\n")
    offered: list[set[str]] = []

    def say(request: ModelRequest) -> str:
        offered.append({spec.name for spec in request.tools})
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        template = TemplateLibrary([agents]).get("worker")
        await manager.create_agent("worker", template=template, tools=[delete_all])
        await manager.run_task("worker", "Go")
        assert offered == [set(COORDINATION_TOOLS) | more]

    play(scenario, say, tools=[look_up])


def test_a_manager_that_is_not_open_lists_templates_too() -> None:
    names = [entry.name for entry in opened(None, lambda _: "done").list_templates()]
    assert "patricia" in names

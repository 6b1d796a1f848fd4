"""A model that there cannot be is refused when an agent is made, not when its first task fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.errors import DefinitionError, ModelNameError, TemplateError
from ai_whisperer.models.scripted import ScriptedModel


def play(scenario: Callable[[AsyncAgentSessionManager], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with AsyncAgentSessionManager(**options) as manager:
            await scenario(manager)

    asyncio.run(main())


@pytest.mark.parametrize("model", ["gpt-5", "nobody:x", " ", "openai-chat:", "openai-chat: ", " scripted", "scripted:"])
def test_a_name_that_means_no_model_is_refused_with_those_that_there_are(model: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(DefinitionError, match=r"^model.*`?scripted"):
            await manager.create_agent("alice", {"model": model})
        assert manager.list_agents() == []
        await manager.create_agent("alice", {"model": "scripted"}, auto_start=False)
        with pytest.raises(DefinitionError, match=r"^model"):
            await manager.start_agent("alice", {"model": model})
        assert manager.active_sessions["alice"].record.definition.model == "scripted"

    play(scenario)


def test_the_message_names_the_known_prefixes_and_the_nearest() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(
            DefinitionError, match=r"Near known prefixes: anthropic\. Prefixes: alibaba, anthropic, azure"
        ):
            await manager.create_agent("alice", {"model": "antropic:claude"})

    play(scenario)


@pytest.mark.parametrize("model", ["inherit", "scripted", "scripted:later.yaml", "ollama:qwen3:4b", "vllm:own/model"])
def test_a_name_that_may_mean_a_model_is_taken_whatever_is_installed_here(model: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"model": model})

    play(scenario)


def test_a_session_is_not_opened_with_a_model_that_there_is_not() -> None:
    with pytest.raises(ModelNameError, match="There is no model 'gpt-5'"):
        AsyncAgentSessionManager(model="gpt-5")


def test_of_models_of_ones_own_any_name_may_be_meant(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text("---\nname: one\nmodel: mine\n---\n")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"model": "mine"})
        await manager.create_agent("one")
        assert await manager.run_task("one", "go")
        assert [entry.error for entry in manager.list_templates() if entry.name == "one"] == [None]

    play(scenario, model_factory=lambda _: ScriptedModel(), templates=tmp_path)


def test_a_template_with_a_model_that_there_is_not_is_listed_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "base.md").write_text("---\nname: base\nmodel: gpt-5\n---\n")
    (tmp_path / "child.md").write_text("---\nname: child\nextends: base\n---\n")
    (tmp_path / "better.md").write_text("---\nname: better\nextends: base\nmodel: scripted\n---\n")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        errors = {entry.name: entry.error for entry in manager.list_templates()}
        assert errors["better"] is None
        for name in ("base", "child"):
            assert "base.md, line 3: model: There is no model 'gpt-5'" in str(errors[name])
            with pytest.raises(TemplateError, match="There is no model 'gpt-5'"):
                await manager.create_agent(name)

    play(scenario, templates=tmp_path)

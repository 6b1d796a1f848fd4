"""An agent has the tools that it is granted and no other, however it asks for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, TemplateLibrary, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.mcp import McpState
from ai_whisperer.domain.tasks import StepState
from ai_whisperer.errors import DefinitionError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.tools.machine import MACHINE_TOOLS
from ai_whisperer.tools.registry import COORDINATION_TOOLS
from tests.simulation.stage import call, play, round_of
from tests.unit.template_files import write

FETCH = {"url": "http://127.0.0.1:9/"}


class Witness:
    """A tool that tells whether it ever ran, and a model that asks for a tool by whatever name."""

    def __init__(self, name: str = "fetch_url", **arguments: Any) -> None:
        self.runs = 0
        self.offered: list[set[str]] = []
        self._wanted = call(name, **arguments)

        @tool(name="danger")
        async def danger() -> str:
            """Do harm."""
            self.runs += 1
            return "done"

        self.tool = danger

    def say(self, request: ModelRequest) -> Answer | str:
        self.offered.append({spec.name for spec in request.tools})
        return self._wanted if round_of(request) == 0 else "end"


async def refused(manager: AsyncAgentSessionManager, agent: str) -> str:
    """Run a task whose only call is refused; returns what the model was told."""
    task = await manager.send_task(agent, "go")
    await manager.wait_task(task)
    asked, called, answered = await manager.list_steps(task.id)
    assert asked.answer is not None
    assert called.call == asked.answer.tool_calls[0]
    assert (called.state, answered.state) == (StepState.DONE, StepState.DONE)
    assert called.result is not None
    assert called.result.is_error
    return called.result.content


@pytest.mark.parametrize("name", sorted({*MACHINE_TOOLS, "fetch_url"}))
def test_a_tool_for_the_machine_has_to_be_granted_by_name(name: str) -> None:
    witness = Witness(name, **FETCH)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"network": ["*", "127.0.0.1:9"]})
        told = await refused(manager, "alice")
        assert told.startswith(f"You have no tool '{name}'. Your tools: acquire_lock, ")
        assert name not in told.partition("Your tools:")[2]
        assert witness.offered[0] == {*COORDINATION_TOOLS, "danger"}

    play(scenario, witness.say, tools=[witness.tool])


@pytest.mark.parametrize(
    "name",
    ["danger", "DANGER", " danger", "danger ", "danger\n", "danger\0", "functions.danger", "danger()", "d\u0430nger",
     "\uff44anger", "dan\u200bger", "check_mail,danger", "mcp__danger", "../danger", "", "__call__", "None",
     "CHECK_MAIL", "check_mail ", "x" * 65_536, "\x1b[2J", "{}", "*"],
)  # fmt: skip
def test_an_ungranted_tool_is_refused_in_every_spelling(name: str) -> None:
    witness = Witness(name)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"tools": ["check_mail"]})
        told = await refused(manager, "alice")
        assert told.endswith("Your tools: check_mail.")
        assert len(told) < 1000
        assert told.isprintable()

    play(scenario, witness.say, tools=[witness.tool])
    assert witness.runs == 0


def test_an_agent_that_is_granted_nothing_has_nothing() -> None:
    witness = Witness("check_mail")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"tools": []})
        assert (await refused(manager, "alice")).endswith("Your tools: none.")
        assert witness.offered[0] == set()

    play(scenario, witness.say, tools=[witness.tool])


def test_a_template_grants_what_it_or_the_one_it_extends_says_unless_the_config_says_more(tmp_path: Any) -> None:
    write(tmp_path, "reader", "tools: fetch_url\nnetwork: example.com", "Read.")
    write(tmp_path, "heir", "extends: reader", "More.")
    write(tmp_path, "poor", "extends: reader\ntools: [check_mail]\nnetwork: []", "Less.")
    library = TemplateLibrary([tmp_path])
    witness = Witness("danger")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for agent, config in (("heir", None), ("poor", None), ("other", {"tools": ["send_mail"]})):
            template = library.get("reader" if agent == "other" else agent)
            await manager.create_agent(agent, config, template=template)
            await refused(manager, agent)
        tools = [offered for number, offered in enumerate(witness.offered) if number % 2 == 0]
        assert tools == [{"fetch_url"}, {"check_mail"}, {"send_mail"}]
        networks = [manager.active_sessions[agent].record.definition.network for agent in ("heir", "poor", "other")]
        assert networks == [("example.com",), (), ("example.com",)]

    play(scenario, witness.say, tools=[witness.tool])


def test_a_tool_that_is_taken_away_is_gone_for_work_that_waits_too() -> None:
    witness = Witness("danger")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"tools": ["danger"]})
        await manager.run_task("alice", "go")
        assert witness.runs == 1
        await manager.stop_agent("alice")
        waiting = await manager.send_task("alice", "go on")
        await manager.start_agent("alice", {"tools": ["check_mail"]})
        await manager.wait_task(waiting)
        assert await refused(manager, "alice") == "You have no tool 'danger'. Your tools: check_mail."
        assert witness.runs == 1

    play(scenario, witness.say, tools=[witness.tool])


def test_a_grant_of_a_tool_that_nobody_has_is_refused_when_it_is_made() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(DefinitionError, match="granted tools that nobody has provided: Fetch_Url"):
            await manager.create_agent("alice", {"tools": ["Fetch_Url", "fetch_url"]})

    play(scenario)


SERVERS = {"far": {"command": "/nonexistent/server"}, "near": {"command": "/nonexistent/server"}}


@pytest.mark.parametrize("tools", [None, ["check_mail"], ["mcp__near"]])
@pytest.mark.parametrize(
    "name", ["mcp__far__delete", "mcp__far", "mcp__far__*", "MCP__near__x", "mcp__near ", "near__x"]
)
def test_a_tool_of_an_mcp_server_has_to_be_granted_and_else_its_server_is_not_started(
    tools: list[str] | None, name: str
) -> None:
    witness = Witness(name)

    async def main() -> None:
        model = FunctionModel(witness.say)
        async with AsyncAgentSessionManager(mcp_servers=SERVERS, model_factory=lambda _: model) as manager:
            await manager.create_agent("alice", None if tools is None else {"tools": tools})
            assert (await refused(manager, "alice")).startswith(f"You have no tool '{name}'.")
            states = {server.name: server.state for server in manager.list_mcp_servers()}
            assert states["far"] == McpState.NOT_STARTED

    asyncio.run(main())


@pytest.mark.parametrize(
    ("fields", "granted"),
    [
        ("tools: mcp__far__look, mcp__unknown__x, Task", {"mcp__far__look"}),
        ("tools: mcp__far", {"mcp__far"}),
        ("tools: mcp__far\ndisallowedTools: mcp__far__delete", set()),
        ("tools: mcp__far__look\ndisallowedTools: mcp__far__delete", {"mcp__far__look"}),
        ("tools: mcp__far__look, mcp__near__*\ndisallowedTools: mcp__far", {"mcp__near__*"}),
        ("description: no tools", None),
    ],
)
def test_a_file_for_claude_code_grants_tools_of_the_mcp_servers_that_there_are(
    tmp_path: Any, fields: str, granted: set[str] | None
) -> None:
    agents = tmp_path / ".claude" / "agents"
    write(agents, "worker", fields, "Work.")

    async def main() -> None:
        async with AsyncAgentSessionManager(mcp_servers=SERVERS) as manager:
            template = TemplateLibrary([agents]).get("worker")
            await manager.create_agent("worker", template=template, auto_start=False)
            tools = manager.active_sessions["worker"].record.definition.tools
            assert (None if tools is None else {*tools} - {*COORDINATION_TOOLS}) == granted

    asyncio.run(main())

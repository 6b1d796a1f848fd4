"""Agents that are created because somebody gives them work, or because an agent with the tool for it wants them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, Budget, MailDraft, Priority, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import (
    DefinitionError,
    InvalidInputError,
    UnknownAgentError,
    UnknownRecipientError,
    WhispererError,
)
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.tools.function import Tool
from tests.simulation.stage import Say, call, play, play_over_crash, prompt_of, results_of, round_of


def once(name: str, **arguments: Any) -> Say:
    """Whoever is told to go makes one call and says what came of it; all else is done at once."""

    def say(request: ModelRequest) -> Answer | str:
        if prompt_of(request) == "go" and round_of(request) == 0:
            return call(name, **arguments)
        return " ".join(results_of(request)) or "done"

    return say


async def told(manager: AsyncAgentSessionManager, config: dict[str, Any] | None = None) -> str:
    """What agent `a` was told by its call, when all have come to rest."""
    await manager.create_agent("a", config or {})
    answer = await manager.run_task("a", "go")
    await manager.at_rest()
    return answer


async def created(manager: AsyncAgentSessionManager) -> list[tuple[str, str | None]]:
    """The agents that were announced as created, each with the agent that created it."""
    notes = (note for note in await manager.notifications() if note.name == "agent.created")
    return [(note.params["agentId"], note.params.get("createdBy")) for note in notes]


GIVING_WORK: list[tuple[str, dict[str, Any]]] = [
    ("delegate_task", {"task": "Do it."}),
    ("send_mail", {"subject": "s", "body": "b"}),
    ("send_mail_with_switch", {"subject": "s", "body": "b"}),
]


def test_a_chat_with_a_name_that_is_a_templates_creates_that_agent() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        room = await manager.open_chat("Coder")
        assert room.members == ("coder",)
        assert await created(manager) == [("coder", None)]
        with pytest.raises(UnknownAgentError):
            await manager.open_chat("nobody")

    play(scenario, once("list_agents"))


@pytest.mark.parametrize(("name", "arguments"), GIVING_WORK)
@pytest.mark.parametrize(
    ("to", "agent_id"),
    [("Coder", "coder"), ("Coder1", "coder1"), ("coder 2", "coder-2"), ("Debbie the debugger", "debbie")],
)
def test_work_for_a_name_that_is_a_templates_creates_that_agent(
    name: str, arguments: dict[str, Any], to: str, agent_id: str
) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await told(manager)
        assert await created(manager) == [("a", None), (agent_id, "a")]
        assert [task.agent_id for task in await manager.list_tasks(agent_id)] == [agent_id]
        wanted = "You are a coder" if agent_id.startswith("coder") else "You are Debbie"
        assert manager.active_sessions[agent_id].record.definition.prompt.startswith(wanted)

    play(scenario, once(name, to_agent=to, **arguments))


@pytest.mark.parametrize(("name", "arguments"), GIVING_WORK)
def test_where_that_is_not_wanted_an_unknown_name_is_an_error(name: str, arguments: dict[str, Any]) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert "Valid names: a" in await told(manager)
        assert await created(manager) == [("a", None)]

    play(scenario, once(name, to_agent="coder", **arguments), create_missing=False)


def test_a_name_that_is_nobodys_stays_an_error() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert "There is no agent 'nobody7'" in await told(manager)
        with pytest.raises(UnknownAgentError):
            await manager.send_task("nobody7", "go")
        with pytest.raises(UnknownRecipientError):
            await manager.send_mail("nobody7", "s", "b")
        assert await created(manager) == [("a", None)]

    play(scenario, once("delegate_task", to_agent="nobody7", task="Do it."))


def test_many_mails_create_those_who_are_missing_unless_one_of_them_is_refused() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        drafts = [MailDraft(to=to, subject="s", body="b") for to in ("coder", "a", "Debbie", "coder")]
        for bad in (MailDraft(to="nobody7", subject="s", body="b"), MailDraft(to="writer", subject="", body="")):
            with pytest.raises(InvalidInputError if bad.to == "writer" else UnknownRecipientError):
                await manager.send_mails([*drafts[1:2], bad])
        assert await created(manager) == [("a", None)]
        sent = await manager.send_mails(drafts)
        assert [mail.recipient for mail in sent] == ["coder", "a", "debbie", "coder"]
        assert await created(manager) == [("a", None), ("coder", None), ("debbie", None)]

    play(scenario, once("list_agents"))


def test_a_person_creates_agents_by_giving_them_work_too() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert (await manager.send_task("writer", "go")).agent_id == "writer"
        assert (await manager.send_mail("Patricia", "s", "b", priority=Priority.LOW)).recipient == "patricia"
        await manager.sleep_agent("monitor", wake_events=["alert"])
        await manager.at_rest()
        assert await created(manager) == [("writer", None), ("patricia", None), ("monitor", None)]

    play(scenario)


@pytest.mark.parametrize(("name", "arguments"), GIVING_WORK)
def test_no_agent_is_created_with_an_id_that_none_may_have(name: str, arguments: dict[str, Any]) -> None:
    long = "coder" + "1" * 300

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert "cannot name an agent" in await told(manager)
        for attempt in (
            manager.send_task(long, "go"),
            manager.send_mail(long, "s", "b"),
            manager.sleep_agent(long, duration_seconds=1),
        ):
            with pytest.raises(InvalidInputError, match="cannot name an agent"):
                await attempt
        assert await created(manager) == [("a", None)]

    play(scenario, once(name, to_agent=long, **arguments))


def test_a_further_name_that_ends_in_a_number_is_no_number_of_the_agent(tmp_path: Path) -> None:
    write(tmp_path, "robbie", "display_name: Robbie 9\naliases: [robbie the 2, robbie no 3]\ndescription: helps")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("Robbie the 2", "robbie no 3"):
            assert (await manager.send_task(name, "go")).agent_id == "robbie"
        assert (await manager.send_task("Robbie 4", "go")).agent_id == "robbie-4"

    play(scenario, templates=[tmp_path])


def test_the_agent_and_its_work_are_there_together_after_a_crash() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await told(manager)

    async def after(manager: AsyncAgentSessionManager) -> None:
        await manager.at_rest()
        assert await created(manager) == [("a", None), ("coder", "a")]
        assert ["Do it." in task.prompt for task in await manager.list_tasks("coder")] == [True]

    play_over_crash(before, after, once("delegate_task", to_agent="coder", task="Do it."), crash_after_seconds=1.5)


def test_an_agent_with_the_tool_creates_one_that_has_its_own_tools_and_no_more() -> None:
    config = {
        "tools": ["create_agent", "send_mail", "read_file"],
        "approve": ["read_file"],
        "limits": {"max_tokens_per_agent": 5000, "max_steps_per_task": 7},
    }

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert (await told(manager, config)).startswith("Created and started helper")
        made = manager.active_sessions["helper"].record.definition
        assert (made.prompt, made.description) == ("You help.", "helps")
        assert made.tools == ("send_mail", "read_file")
        assert made.approve == ("read_file",)
        assert (made.limits.max_tokens_per_agent, made.limits.max_steps_per_task) == (5000, 7)
        assert await created(manager) == [("a", None), ("helper", "a")]

    play(scenario, once("create_agent", agent_id="helper", prompt="You help.", description="helps"))


def test_the_tool_has_to_be_granted_by_name() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert "You have no tool 'create_agent'" in await told(manager)
        assert await created(manager) == [("a", None)]

    play(scenario, once("create_agent", agent_id="helper", prompt="You help."))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"agent_id": "x y"}, "cannot name an agent"),
        ({"agent_id": "helper"}, "give a prompt or a template. Templates: alice"),
        ({"agent_id": "helper", "template": "codr"}, "Did you mean 'coder'?"),
        ({"agent_id": "helper", "template": "coder", "prompt": "p"}, "not both"),
        ({"agent_id": "helper", "prompt": "  "}, "prompt is empty"),
        ({"agent_id": "a", "prompt": "p"}, "There is an agent 'a' already"),
    ],
)
def test_what_cannot_be_created_is_said(arguments: dict[str, Any], complaint: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert complaint in await told(manager, {"tools": ["create_agent"]})
        assert await created(manager) == [("a", None)]

    play(scenario, once("create_agent", **arguments))


def write(folder: Path, name: str, fields: str) -> None:
    (folder / f"{name}.md").write_text(f"---\nname: {name}\n{fields}\n---\nYou are {name}.\n")


@pytest.mark.parametrize(
    ("fields", "excess"),
    [
        ("tools: [send_mail, run_command]", "the tool run_command"),
        ("tools: [send_mail, delegate_task]", "the tool delegate_task"),
        ("tools: [send_mail]\nfolders: {docs: write}", "the folder docs (write)"),
        ("tools: [send_mail]\nnetwork: [example.org]", "the host example.org"),
        ("description: has whatever there is", "the tool check_mail"),
    ],
)
@pytest.mark.parametrize("by", ["send_mail", "create_agent"])
def test_nobody_creates_an_agent_that_can_do_more_than_itself(
    tmp_path: Path, fields: str, excess: str, by: str
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "agents").mkdir()
    write(tmp_path / "agents", "strong", fields)
    config = {"tools": [*dict.fromkeys(("send_mail", "read_file", by))], "folders": {"docs": "read"}}
    arguments = {"agent_id": "strong"} if by == "create_agent" else {"to_agent": "strong", "subject": "s", "body": "b"}

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        answer = await told(manager, config)
        assert f"it would have what 'a' does not have: {excess}" in answer
        assert await created(manager) == [("a", None)]
        await manager.send_mail("strong", "s", "b")  # a person may
        assert await created(manager) == [("a", None), ("strong", None)]

    more = {"templates": [tmp_path / "agents"], "folders": {"docs": tmp_path / "docs"}, "work": tmp_path / "work"}
    play(scenario, once(by, **arguments), **more)


def test_agents_create_others_up_to_a_number_of_agents() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("b")
        answer = await told(manager)
        assert "'coder' was not created: the session has 2 agents" in answer
        reached = [note.params for note in await manager.notifications() if note.name == "limit.reached"]
        assert [(each["limit"], each["max"]) for each in reached] == [("max_created_agents", 2)]
        await manager.send_task("coder", "a person may go on")

    limits = {"max_created_agents": 2}
    play(scenario, once("delegate_task", to_agent="coder", task="Do it."), limits=limits)


SERVERS = {"gh": {"command": "/bin/false"}}


@pytest.mark.parametrize(
    ("held", "wanted", "is_created"),
    [
        ("mcp__gh__read", "mcp__gh", False),
        ("mcp__gh__read", "mcp__gh__*", False),
        ("mcp__gh__read", "mcp__gh__delete", False),
        ("mcp__gh__read", "mcp__gh__read", True),
        ("mcp__gh", "mcp__gh__delete", True),
        ("mcp__gh__*", "mcp__gh", True),
    ],
)
def test_nobody_creates_an_agent_with_more_of_an_mcp_server_than_itself(
    tmp_path: Path, held: str, wanted: str, *, is_created: bool
) -> None:
    write(tmp_path, "strong", f"tools: [send_mail, {wanted}]")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        by = (await manager.create_agent("a", {"tools": ["send_mail", held]}))._agent
        creation, decision = manager._session.creation, by.parts.kernel.decide("test")
        missing = creation.missing("strong")
        assert missing is not None
        if is_created:
            creation.create_from(decision, *missing, by=by)
            await decision.commit()
        else:
            with pytest.raises(DefinitionError, match=re.escape(f"does not have: the tool {wanted}.")):
                creation.create_from(decision, *missing, by=by)

    play(scenario, templates=[tmp_path], mcp_servers=SERVERS)


def test_a_tool_of_the_same_name_is_not_the_same_tool(tmp_path: Path) -> None:
    write(tmp_path, "admin", "tools: [send_mail, query]")

    def query_of(rights: str) -> Tool:
        async def query() -> str:
            return rights

        return tool(query)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert "does not have: the tool query" in await told(manager, {"tools": ["send_mail", "query"]})
        assert await created(manager) == [("a", None)]

    own = {"a": [query_of("read")], "admin": [query_of("all")]}
    mail = once("send_mail", to_agent="admin", subject="s", body="b")
    play(scenario, mail, templates=[tmp_path], agent_tools=own)


def test_who_is_made_up_gets_no_functions_that_are_for_another() -> None:
    async def deploy() -> str:
        """Deploy."""
        return "deployed"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert "tools for an agent with that name alone" in await told(manager, {"tools": ["create_agent"]})
        assert await created(manager) == [("a", None)]

    play(scenario, once("create_agent", agent_id="deployer", prompt="p"), agent_tools={"deployer": [deploy]})


def test_approvals_for_tools_of_mcp_servers_are_passed_on() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        config = {"tools": ["create_agent", "mcp__gh"], "approve": ["mcp__gh__delete"]}
        by = (await manager.create_agent("a", config))._agent
        decision = by.parts.kernel.decide("test")
        made = by.parts.creation.create_for(decision, by, "x", template=None, prompt="p", description="")
        assert made.record.definition.tools == ("mcp__gh",)
        assert made.record.definition.approve == ("mcp__gh__delete",)
        await decision.commit()

    play(scenario, mcp_servers=SERVERS)


@pytest.mark.parametrize("own", [{}, {"limits": {"max_steps_per_task": 5, "max_tokens_per_agent": 1000}}])
def test_the_limits_that_hold_for_the_creator_hold_for_whom_it_creates(tmp_path: Path, own: dict[str, Any]) -> None:
    much = "limits: {max_steps_per_task: 5000, max_tokens_per_agent: 0, max_queue_length: 3}"
    write(tmp_path, "big", f"tools: [send_mail]\n{much}\nsettings: {{max_tokens: 5000}}")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await told(manager, {"tools": ["send_mail"], "settings": {"max_tokens": 100}, **own})
        big = manager.active_sessions["big"]
        limits = big.limits
        assert (limits.max_steps_per_task, limits.max_tokens_per_agent, limits.max_queue_length) == (5, 1000, 3)
        assert big.record.definition.settings == {"max_tokens": 100}

    session = {} if own else {"limits": {"max_steps_per_task": 5, "max_tokens_per_agent": 1000}}
    mail = once("send_mail", to_agent="big", subject="s", body="b")
    play(scenario, mail, templates=[tmp_path], **session)


def test_who_is_made_up_writes_no_longer_answers_than_its_creator() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await told(manager, {"tools": ["create_agent"], "settings": {"max_tokens": 100}})
        assert manager.active_sessions["x"].record.definition.settings == {"max_tokens": 100}

    play(scenario, once("create_agent", agent_id="x", prompt="p"))


def test_a_prompt_that_no_definition_may_have_creates_nobody() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        limits = {"max_answer_bytes": 10 << 20}
        assert "at most 1,048,576 are allowed" in await told(manager, {"tools": ["create_agent"], "limits": limits})
        assert await created(manager) == [("a", None)]

    play(scenario, once("create_agent", agent_id="x", prompt="p" * (2 << 20)))


@pytest.mark.parametrize("name", ["", " ", "_", "-", "\u00a0"])
def test_work_for_the_empty_name_creates_nobody(name: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await told(manager)
        with pytest.raises(UnknownAgentError):
            await manager.send_task(name, "go")
        with pytest.raises(UnknownRecipientError):
            await manager.send_mail(name, "s", "b")
        assert await created(manager) == [("a", None)]

    play(scenario, once("delegate_task", to_agent=name, task="Do it."))


REFUSED_WORK: list[tuple[str, dict[str, Any]]] = [
    ("send_task", {"prompt": ""}),
    ("send_task", {"prompt": "p" * (2 << 20)}),
    ("send_task", {"prompt": "go", "priority": "odd"}),
    ("send_task", {"prompt": "go", "timeout_seconds": -1}),
    ("send_task", {"prompt": "go", "budget": Budget(max_tokens=-1)}),
    ("send_task", {"prompt": "go", "thread_id": ""}),
    ("send_task", {"prompt": "go", "task_id": ""}),
    ("send_task", {"prompt": "go", "task_id": "taken"}),
    ("send_mail", {"subject": "", "body": ""}),
    ("send_mail", {"subject": "s", "body": "b" * (1 << 20)}),
    ("send_mail", {"subject": "s", "body": "b", "priority": "odd"}),
    ("send_mail", {"subject": "s", "body": "b", "thread_id": ""}),
    ("send_mail", {"subject": "s", "body": "b", "mail_id": "taken"}),
    ("sleep_agent", {}),
    ("sleep_agent", {"duration_seconds": -1}),
]


@pytest.mark.parametrize(("method", "arguments"), REFUSED_WORK)
def test_work_that_is_refused_creates_nobody(method: str, arguments: dict[str, Any]) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {})
        await manager.send_task("a", "x", task_id="taken")
        await manager.send_mail("a", "s", "x", mail_id="taken")
        with pytest.raises(WhispererError):
            await getattr(manager, method)("debbie", **arguments)
        assert await created(manager) == [("a", None)]
        assert list(manager.active_sessions) == ["a"]

    play(scenario)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("delegate_task", {"task": " "}),
        ("delegate_task", {"task": "t", "timeout_seconds": -1}),
        ("send_mail", {"subject": " ", "body": " "}),
        ("send_mail", {"subject": "s", "body": "b" * (300 << 10)}),
        ("send_mail_with_switch", {"subject": "s", "body": "b" * (300 << 10)}),
        ("send_mail_with_switch", {"subject": "s", "body": "b", "timeout_seconds": -1}),
    ],
)
def test_an_agent_whose_work_is_refused_creates_nobody(name: str, arguments: dict[str, Any]) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await told(manager)
        assert await created(manager) == [("a", None)]

    play(scenario, once(name, to_agent="debbie", **arguments))


def test_a_full_tree_creates_nobody() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert "max_tasks_per_tree" in await told(manager, {"limits": {"max_tasks_per_tree": 1}})
        assert await created(manager) == [("a", None)]

    play(scenario, once("delegate_task", to_agent="coder", task="Do it."))

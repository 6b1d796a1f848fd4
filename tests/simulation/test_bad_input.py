"""Bad input: a typed error that says what is wrong and what to do; nothing half-written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from ai_whisperer import AgentDefinition, AsyncAgentSessionManager, WhispererError, tool
from ai_whisperer.errors import (
    ClosedError,
    DefinitionError,
    DuplicateIdError,
    InvalidInputError,
    QueueFullError,
    StateError,
    TooLargeError,
    UnknownAgentError,
    UnknownTaskError,
)
from ai_whisperer.server.serving import toolbox_of
from ai_whisperer.settings import Settings
from tests.simulation.stage import Deed, deferred, play


@pytest.mark.parametrize(
    ("deed", "error", "message"),
    [
        (lambda m: m.send_task("nobody", "go"), UnknownAgentError, "Valid names: alice, idle"),
        (lambda m: m.pause_agent("nobody"), UnknownAgentError, "no agent 'nobody'"),
        (lambda m: m.create_agent("alice"), DuplicateIdError, "an agent 'alice' already"),
        (lambda m: m.create_agent("ALICE"), DuplicateIdError, "Choose another name"),
        (lambda m: m.create_agent("x", {"aliases": ["alice"]}), DuplicateIdError, "already means"),
        (lambda m: m.create_agent("two words"), InvalidInputError, "use 1 to 100 letters"),
        (lambda m: m.create_agent("user"), InvalidInputError, "the person's own address"),
        (lambda m: m.create_agent("x", {"modle": "y"}), DefinitionError, "unknown field `modle`.*Known fields"),
        (lambda m: m.create_agent("x", {"limits": {"max_steps": 3}}), DefinitionError, r"`limits"),
        (lambda m: m.create_agent("x", {"limits": {"max_mail_bytes": 0}}), DefinitionError, "at least 1"),
        (lambda m: m.create_agent("x", {"prompt": 5}), DefinitionError, r"`prompt"),
        (lambda m: m.create_agent("x", AgentDefinition(tools=cast(Any, "check_mail"))), DefinitionError, r"`tools"),
        (lambda m: m.create_agent("x", AgentDefinition(prompt=cast(Any, 5))), DefinitionError, r"`prompt"),
        (lambda m: m.create_agent("x", {"limits": {"max_continuations": -1}}), DefinitionError, "at least 0"),
        (lambda m: m.create_agent("x", {"retry": {"stall_seconds": 0}}), DefinitionError, "more than 0"),
        (lambda m: m.create_agent("x", {"model": ""}), DefinitionError, "model must not be empty"),
        (lambda m: m.create_agent("x", {"retry": {"max_attempts": 0}}), DefinitionError, "retry.max_attempts"),
        (lambda m: m.create_agent("x", {"retry": {"stall_seconds": float("nan")}}), DefinitionError, "stall_seconds"),
        (lambda m: m.create_agent("x", {"settings": {"f": object()}}), DefinitionError, "not valid.*object"),
        (lambda m: m.create_agent("x", {"description": "\ud800"}), DefinitionError, "not text"),
        (lambda m: m.create_agent("x", tools=[5]), InvalidInputError, "cannot be a tool"),
        (lambda m: m.create_agent("x", tools=[send_mail]), DuplicateIdError, "two tools called 'send_mail'"),
        (lambda m: m.send_task("alice", "  "), InvalidInputError, "prompt is empty"),
        (lambda m: m.send_task("alice", "x" * 101), TooLargeError, "101 bytes, at most 100"),
        (lambda m: m.send_task("alice", "\udcff"), InvalidInputError, "lone surrogate"),
        (lambda m: m.send_task("alice", "go", priority="now"), InvalidInputError, "urgent, high, normal, low"),
        (lambda m: m.send_task("alice", "go", task_id="a\nb"), InvalidInputError, "cannot be an id"),
        (lambda m: m.send_task("alice", "go", thread_id=""), InvalidInputError, "cannot be an id"),
        (lambda m: m.send_task("alice", "other", task_id="taken"), DuplicateIdError, "used for something else"),
        (lambda m: m.send_task("idle", "one too many"), QueueFullError, "Try again later"),
        (lambda m: m.start_agent("alice", {}), StateError, "already started; nothing was changed. Stop it first"),
        (lambda m: m.resume_agent("alice"), StateError, "Cannot resume agent 'alice': it is idle"),
        (lambda m: m.pause_agent("idle"), StateError, "not started. Allowed now: start, stop"),
        (lambda m: m.wake_agent("alice"), StateError, "Cannot wake"),
        (lambda m: m.cancel_task("nothing"), UnknownTaskError, "no task 'nothing'"),
        (lambda m: m.retry_task("taken"), StateError, "Only a failed, cancelled or dead task"),
        (lambda m: m.send_task("alice", "go", task_id="a~1"), InvalidInputError, "without '~'"),
        (lambda m: m.pause_agent("alice", reason="\ud800"), InvalidInputError, "lone surrogate"),
        (lambda m: m.stop_agent("alice", reason="x" * 10_001), TooLargeError, "at most 10,000"),
        (lambda m: m.sleep_agent("alice", wake_events=["\ud800"]), InvalidInputError, "event name"),
        (lambda m: m.sleep_agent("alice", wake_events="alert"), InvalidInputError, "list of names"),
        (lambda m: m.mailbox("nobody"), UnknownAgentError, "no agent 'nobody'"),
        (lambda m: m.create_agent("x", {"tools": ["nope"]}), DefinitionError, "nobody has provided: nope"),
        (lambda m: m.create_agent("x", cast(Any, "text")), DefinitionError, "a mapping of fields, not str"),
        (lambda m: m.create_agent(cast(Any, None)), InvalidInputError, "cannot name an agent"),
        (lambda m: m.send_task("alice", cast(Any, None)), InvalidInputError, "prompt must be text, not NoneType"),
        (lambda m: m.send_task(cast(Any, None), "go"), InvalidInputError, "by its id or its handle"),
        (lambda m: m.send_task("alice", "go", task_id=cast(Any, 4)), InvalidInputError, "id must be text"),
        (lambda m: m.send_mail("alice", cast(Any, None), "x"), InvalidInputError, "subject must be text"),
        (lambda m: m.sleep_agent("alice", duration_seconds=cast(Any, "5")), InvalidInputError, "must be a number"),
        (lambda m: m.open(), StateError, "open already"),
    ],
)
def test_bad_input_is_refused_with_what_to_do_and_nothing_is_written(
    deed: Deed, error: type[WhispererError], message: str
) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_prompt_bytes": 100}})
        await manager.create_agent("idle", {"limits": {"max_queue_length": 1}}, auto_start=False)
        await manager.send_task("idle", "waits", task_id="taken")
        before = await manager.notifications()
        with pytest.raises(error, match=message) as caught:
            await deed(manager)
        assert caught.value.code
        await manager.flushed()
        told = [note for note in await manager.notifications() if note.name != "limit.reached"]
        assert told == before
        assert [status.agent_id for status in manager.list_agents()] == ["alice", "idle"]

    play(scenario)


async def send_mail() -> str:
    """Not the real one."""
    return ""


@pytest.mark.parametrize(
    "deed",
    [
        lambda manager: manager.create_agent("x"),
        lambda manager: manager.send_task("x", "go"),
        lambda manager: deferred(manager.list_agents),
        lambda manager: deferred(manager.subscribe),
    ],
)
def test_a_manager_that_is_not_open_says_so(deed: Callable[[Any], Awaitable[object]]) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.close()
        with pytest.raises(ClosedError, match="async with"):
            await deed(manager)

    play(scenario)


def test_two_tools_of_one_name_are_refused_at_once() -> None:
    with pytest.raises(DuplicateIdError, match="two tools called 'send_mail'"):
        AsyncAgentSessionManager(tools=[send_mail])


def test_a_tool_that_models_cannot_call_is_refused_wherever_it_is_provided() -> None:
    async def odd(*values: int) -> str:
        return str(values)

    refused = pytest.raises(InvalidInputError, match=r"The tool 'odd' cannot have the parameter '\*values'")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with refused:
            await manager.create_agent("alice", tools=[odd])
        await manager.create_agent("alice")
        with refused:
            await manager.give_tools("alice", [odd])
        assert await manager.run_task("alice", "go") == "done"

    play(scenario)
    with refused:
        AsyncAgentSessionManager(tools=[odd])
    with refused:
        AsyncAgentSessionManager(agent_tools={"alice": [tool(odd)]})
    with refused:
        toolbox_of(Settings(), [odd])


def test_the_same_task_sent_twice_under_one_id_runs_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        first = await manager.send_task("alice", "go", task_id="mine")
        await manager.wait_task(first)
        again = await manager.send_task("alice", "go", task_id="mine")
        assert again.state == "completed"
        assert len(await manager.list_tasks("alice")) == 1

    play(scenario)


def test_a_new_config_at_start_replaces_the_definition_or_changes_nothing() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"aliases": ["al"]}, auto_start=False)
        await manager.create_agent("bob")
        with pytest.raises(DuplicateIdError):
            await manager.start_agent("alice", {"aliases": ["bob"]})
        with pytest.raises(StateError):
            await manager.start_agent("bob", {"aliases": ["b"]})
        assert manager.get_agent_status("al").started is False
        status = await manager.start_agent("alice", {"description": "new"})
        assert (status.description, status.started) == ("new", True)
        with pytest.raises(UnknownAgentError):
            manager.get_agent_status("b")

    play(scenario)


def test_starting_an_unknown_agent_creates_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert (await manager.start_agent("carol", {"description": "fresh"})).started
        assert await manager.run_task("carol", "go") == "done"

    play(scenario)

"""A session belongs to the event loop in which it was opened: from another one nothing can be done to it."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, MailDraft, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import ClosedError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.simulation.loop import VirtualClock, simulate

from .remembered import remembered, stored
from .stage import call, prompt_of, round_of

_HARMLESS = {"list_templates"}
"""What touches no session, and so works anywhere."""


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay so much."""
    return f"paid {amount}"


def say(request: ModelRequest) -> Answer | str:
    if round_of(request):
        return "done"
    match prompt_of(request):
        case "pay":
            return call("pay", amount=5)
        case "ask":
            return call("ask_user", question="Tea or coffee?")
        case "write":
            return call("send_mail", to_agent="user", subject="Hello", body="Here I am")
    return "done"


async def prepare(manager: AsyncAgentSessionManager) -> str:
    """A session in which every method has something to do."""
    await manager.open()
    for agent_id in ("idle", "paused", "asleep", "payer"):
        await manager.create_agent(agent_id)
    await manager.create_agent("asker", {"tools": ["ask_user"]})
    await manager.create_agent("stopped", auto_start=False)
    await manager.send_task("idle", "write", task_id="done")
    await manager.send_task("payer", "pay", task_id="payment")
    await manager.send_task("asker", "ask", task_id="choice")
    await manager.pause_agent("paused")
    await manager.sleep_agent("asleep", duration_seconds=1000)
    await manager.send_task("paused", "later", task_id="queued")
    await manager.send_task("paused", "never", task_id="cancelled")
    await manager.cancel_task("cancelled")
    await manager.send_task("stopped", "too late", task_id="failed", timeout_seconds=1)
    await manager.acquire_lock("door", ttl_seconds=10_000)
    await manager.create_schedule("idle", interval_seconds=3600, prompt="look", schedule_id="fires")
    await manager.create_schedule("idle", interval_seconds=3600, prompt="look", schedule_id="held")
    await manager.pause_schedule("held")
    await manager.create_room(["paused", "stopped"], room_id="room")
    await asyncio.sleep(30)
    (mail,) = await manager.mailbox()
    assert await manager.list_approvals()
    assert await manager.list_questions()
    assert (await manager.dead_letters()).tasks
    await manager.flushed()
    return mail.id


def arguments_of(manager: AsyncAgentSessionManager, method: str, *, mail_id: str) -> dict[str, Any]:
    """Arguments with which the method would do something; a parameter that is not known here fails the test."""
    own: dict[str, dict[str, Any]] = {
        "add_member": {"agent_id": "idle"},
        "remove_member": {"agent_id": "paused"},
        "resume_agent": {"agent_id": "paused"},
        "start_agent": {"agent_id": "stopped"},
        "wake_agent": {"agent_id": "asleep"},
        "create_agent": {"agent_id": "newcomer"},
        "sleep_agent": {"duration_seconds": 5},
        "retry_task": {"task": "cancelled"},
        "dismiss_task": {"task": "failed"},
        "resume_schedule": {"schedule": "held"},
        "create_schedule": {"interval_seconds": 60, "event": "round"},
        "start_mcp_server": {"name": "shelf"},
    }
    usual = {
        "agent_id": "idle",
        "answer": "tea",
        "at": 1,
        "changes": {},
        "near": 1,
        "approval_id": "payment.2",
        "beginning": "queued",
        "body": "Thanks",
        "event": "alert",
        "kind": "task",
        "limits": {"max_task_seconds": 60},
        "mail_id": mail_id,
        "mails": [MailDraft(to="paused", subject="Hello", body="Thanks")],
        "members": ["idle"],
        "name": "door",
        "path": "MEMORY.md",
        "digest": "0" * 64,
        "prompt": "go",
        "question_id": "choice.2",
        "room": "room",
        "schedule": "fires",
        "state": "read",
        "subject": "Hello",
        "task": "queued",
        "task_id": "queued",
        "thread_id": "queued",
        "text": "Hello",
        "to": "paused",
        "token": manager.list_locks()[0].token,
        "tools": [pay],
    }
    given = own.get(method, {})
    for name, parameter in inspect.signature(getattr(manager, method)).parameters.items():
        if parameter.default is parameter.empty and name not in given:
            assert name in usual, f"say here with which `{name}` the new method `{method}` would do something"
            given[name] = usual[name]
    return given


def methods() -> list[str]:
    found = inspect.getmembers(AsyncAgentSessionManager, inspect.isfunction)
    return [name for name, _ in found if not name.startswith("_")]


def new_manager() -> AsyncAgentSessionManager:
    return AsyncAgentSessionManager(
        tools=[pay],
        mcp_servers={"shelf": {"command": "true"}},
        model_factory=lambda _: FunctionModel(say, latency_seconds=1),
        templates=(),
        clock=VirtualClock(),
    )


async def attempt(manager: AsyncAgentSessionManager, method: str, arguments: dict[str, Any]) -> None:
    answer = getattr(manager, method)(**arguments)
    if inspect.isawaitable(answer):
        await answer
    elif hasattr(answer, "__anext__"):
        await anext(answer)


def changes_from_a_second_loop(method: str) -> tuple[BaseException | None, list[str]]:
    """What the call raises in a second event loop, and what differs afterwards."""
    manager = new_manager()
    arguments = arguments_of(manager, method, mail_id=simulate(prepare(manager)))
    before = remembered(manager) + stored(manager)
    error: BaseException | None = None
    try:
        simulate(attempt(manager, method, arguments))
    except Exception as raised:  # noqa: BLE001 - whatever it is, it is looked at
        error = raised
    after = remembered(manager) + stored(manager)
    return error, sorted(set(before) ^ set(after))


@pytest.mark.parametrize("method", methods())
def test_no_method_does_anything_from_a_second_event_loop(method: str) -> None:
    error, changes = changes_from_a_second_loop(method)
    assert not changes
    if method in _HARMLESS:
        assert error is None
    else:
        assert isinstance(error, ClosedError), error
        assert "another event loop" in error.message
        assert "Nothing was changed" in error.message


@pytest.mark.parametrize(
    "method",
    [
        "cancel_task",
        "create_agent",
        "give_tools",
        "mark_mail",
        "pause_schedule",
        "send_task",
        "set_limits",
        "stop_agent",
    ],
)
def test_the_comparison_would_see_a_method_that_is_not_guarded(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernel, "check_event_loop", lambda _: None)
    assert changes_from_a_second_loop(method)[1]


def test_a_thread_with_its_own_event_loop_is_refused_while_the_session_runs() -> None:
    async def main() -> None:
        async with AsyncAgentSessionManager(templates=()) as manager:
            await manager.create_agent("alice")

            def elsewhere() -> None:
                with pytest.raises(ClosedError, match="run_coroutine_threadsafe"):
                    asyncio.run(manager.pause_agent("alice"))

            await asyncio.to_thread(elsewhere)
            assert manager.get_agent_status("alice").state == "idle"
            assert await asyncio.to_thread(manager.list_agents)  # without an event loop it can be read

    asyncio.run(main())

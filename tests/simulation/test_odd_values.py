"""Every public call is given odd values: only errors of ours come out, and the session lives on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, WhispererError
from ai_whisperer.runtime.session.log import Subscription
from tests.simulation.stage import play

ODD: list[Any] = [
    None, 5, True, -1, 2**70, 10**400, float("nan"), float("inf"), "", "\ud800", "x" * 300, "no\nsuch", [], [5], {},
    {5: 5}, object(), b"x", (), {"x": object()},
]  # fmt: skip

NOT_CALLED = {"open", "close"}
"""Those that begin and end the session; the test itself calls them."""

GOOD: dict[str, Any] = {
    "agent_id": "alice",
    "to": "alice",
    "task": "there",
    "task_id": "there",
    "prompt": "do it",
    "subject": "s",
    "body": "b",
    "mail_id": "mail",
    "state": "read",
    "event": "e",
    "room": "room",
    "members": ["alice"],
    "text": "hello",
    "kind": "task",
    "beginning": "the",
    "schedule": "tick",
    "name": "door",
    "token": 1,
    "tools": [],
    "approval_id": "there.2",
    "thread_id": "there",
    "mails": [],
    "question_id": "there.2",
    "answer": "yes",
    "limits": {"max_queue_length": 50},
    "path": "MEMORY.md",
    "digest": "0" * 64,
    "near": 1,
    "at": 1,
    "changes": {},
}


def public_calls() -> Iterator[str]:
    for name, member in inspect.getmembers(AsyncAgentSessionManager):
        if not name.startswith("_") and callable(member) and name not in NOT_CALLED:
            yield name


async def attempt(manager: AsyncAgentSessionManager, name: str, arguments: dict[str, Any]) -> None:
    """Make the call and let it go on for a moment only: some wait for what does not come."""
    try:
        async with asyncio.timeout(1):
            outcome = getattr(manager, name)(**arguments)
            if inspect.isawaitable(outcome):
                await outcome
            elif isinstance(outcome, Subscription):
                outcome.close()
    except (WhispererError, TimeoutError):
        return


@pytest.mark.usefixtures("without_threads")
@pytest.mark.parametrize("name", list(public_calls()))
def test_odd_values_bring_errors_of_ours_and_harm_nothing(name: str) -> None:
    parameters = inspect.signature(getattr(AsyncAgentSessionManager, name)).parameters
    wanted = [each for each in parameters if each != "self"]
    needed = {each: GOOD[each] for each in wanted if parameters[each].default is inspect.Parameter.empty}
    if name == "create_agent":
        needed["agent_id"] = "somebody-new"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_agent("bob", auto_start=False)
        await manager.send_task("bob", "wait", task_id="there")
        await manager.create_room(["alice", "bob"], room_id="room")
        await manager.acquire_lock("door", ttl_seconds=1e5)
        await manager.create_schedule(interval_seconds=1e6, event="tick", schedule_id="tick")
        for parameter in wanted:
            for value in ODD:
                await attempt(manager, name, {**needed, parameter: value})
        for again in (manager.start_agent, manager.resume_agent, manager.wake_agent):
            await attempt(manager, again.__name__, {"agent_id": "alice"})
        async with asyncio.timeout(100):
            assert await manager.run_task("alice", "are you there?", thread_id="check") == "done"
        assert manager.failure is None

    play(scenario)

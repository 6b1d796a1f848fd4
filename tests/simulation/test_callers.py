"""On whose request something is done: what the log says of it, and what goes on after the request has ended."""

from __future__ import annotations

import asyncio

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.runtime.session.cause import by_caller, called_by
from tests.simulation.stage import call, opened, play, round_of

USER = "user:user"
REQUEST = "request:7"


async def causes_of(manager: AsyncAgentSessionManager, *names: str) -> dict[str, set[str]]:
    """The causes of the notifications of these names."""
    notes = await manager.notifications(limit=10_000)
    return {name: {note.cause for note in notes if note.name == name} for name in names}


def test_what_a_request_does_is_told_as_caused_by_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with called_by(REQUEST):
            await manager.create_agent("alice", auto_start=False)
            task = await manager.send_task("alice", "go")
            mail = await manager.send_mail("alice", "Hi", "there")
            event = await manager.broadcast_event("tick")
            room = await manager.create_room(["alice"])
            message = await manager.post_message(room.id, "hello all")
        assert {each.cause for each in (task, mail, event, message)} == {REQUEST}
        told = ("agent.created", "async.task.queued", "mail.sent", "event.broadcast", "room.created", "room.message")
        assert await causes_of(manager, *told) == {name: {REQUEST} for name in told}

    play(scenario)


def test_without_a_request_it_is_the_user_and_so_it_is_after_one() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("before", auto_start=False)
        with called_by(REQUEST):
            pass
        await manager.create_agent("after", auto_start=False)
        assert await causes_of(manager, "agent.created") == {"agent.created": {USER}}

    play(scenario)


def test_requests_at_the_same_time_are_told_apart() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        async def create(number: int) -> None:
            with called_by(f"request:{number}"):
                await asyncio.sleep(1.0 / number)
                await manager.create_agent(f"a{number}", auto_start=False)

        await asyncio.gather(*map(create, range(1, 6)))
        causes = {
            note.params["agentId"]: note.cause for note in await manager.notifications() if note.name == "agent.created"
        }
        assert causes == {f"a{number}": f"request:{number}" for number in range(1, 6)}

    play(scenario)


seen: list[str] = []


@tool
async def look() -> str:
    """Look on whose behalf this runs."""
    seen.append(by_caller())
    return "seen"


def say(request: ModelRequest) -> Answer | str:
    seen.append(by_caller())
    return call("look") if round_of(request) == 0 else "done"


def test_the_loop_that_a_request_began_does_nothing_in_its_name() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with called_by(REQUEST):
            await manager.create_agent("alice", {"tools": ["look"]})
            assert await manager.run_task("alice", "go") == "done"
        assert seen == [USER, USER, USER]
        of_the_loop = await causes_of(manager, "async.task.started", "step.started", "async.task.completed")
        assert all(causes and REQUEST not in causes for causes in of_the_loop.values())

    seen.clear()
    play(scenario, say, tools=[look])


def test_a_session_that_a_request_opened_does_not_work_in_its_name() -> None:
    async def scenario(_: AsyncAgentSessionManager) -> None:
        manager = opened(None, say, tools=[look])
        with called_by(REQUEST):
            await manager.open()
        await manager.create_agent("alice", {"tools": ["look"]})
        await manager.run_task("alice", "go")
        assert seen == [USER, USER, USER]
        await manager.close()

    seen.clear()
    play(scenario)

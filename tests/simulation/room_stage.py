"""What scenarios in rooms have in common."""

from __future__ import annotations

from typing import Any

from ai_whisperer import AgentState, AsyncAgentSessionManager
from ai_whisperer.domain.rooms import RoomRecord
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import prompt_of, until

MEMBERS = ("alice", "bob", "carol")


async def group(manager: AsyncAgentSessionManager, *members: str, **settings: Any) -> RoomRecord:
    """A group of agents that are made for it."""
    for member in members:
        await manager.create_agent(member)
    return await manager.create_room(members, title="Plans", **settings)


async def silence(manager: AsyncAgentSessionManager) -> None:
    """Let virtual time pass until nobody has anything to do."""

    def still() -> bool:
        return all(status.state is not AgentState.ACTIVE and not status.queue_size for status in manager.list_agents())

    await until(still)


async def said(manager: AsyncAgentSessionManager, room: RoomRecord) -> list[str]:
    """The transcript as lines."""
    return [f"{message.sender}: {message.text}" for message in await manager.room_messages(room, limit=1000)]


async def told(manager: AsyncAgentSessionManager, name: str) -> list[dict[str, Any]]:
    """What the notifications of this name say."""
    return [note.params for note in await manager.notifications(limit=100_000) if note.name == name]


def lines_of(request: ModelRequest) -> list[str]:
    """The messages that the member that answers was shown."""
    return [line for line in prompt_of(request).split("\n") if line.startswith("[")]

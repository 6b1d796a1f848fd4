"""A node beats whatever else it has to do."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ai_whisperer.cluster import beating
from ai_whisperer.cluster.beating import Beating
from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.domain.nodes import Load, Seen, SeenNode

PATIENCE_SECONDS = 30.0
ENOUGH_BEATS = 5


def node(host_id: str, beat: int) -> SeenNode:
    return SeenNode(
        id=host_id,
        name=host_id,
        address="",
        version="0.1.0",
        settings="",
        sandbox="",
        strength=0,
        serves=True,
        state=NodeState.JOINED,
        beat=beat,
        started_at=0.0,
        has_lock=True,
    )


class Book:
    """A book in which another node does not beat any more, and is not removed before this one has beaten on."""

    def __init__(self) -> None:
        self.beats = 0
        self.removing_since: int | None = None
        self.has_beaten_on = threading.Event()
        self.is_connected = True

    async def beat(self, load: Load) -> Seen:  # noqa: ARG002
        self.beats += 1
        if self.removing_since is not None and self.beats >= self.removing_since + ENOUGH_BEATS:
            self.has_beaten_on.set()
        return Seen(nodes=(node("me", self.beats), node("other", 1)), incarnation="first")

    async def remove(self, host_id: str, beat: int | None = None, *, has_ended: bool = True) -> bool:  # noqa: ARG002
        assert (host_id, beat) == ("other", 1)
        assert self.removing_since is None, "it is removed once at a time"
        self.removing_since = self.beats
        await asyncio.get_running_loop().create_future()
        return True

    def lose(self) -> None:
        """There is no connection."""

    async def close(self) -> None:
        """There is nothing to close."""


def test_a_node_beats_while_it_removes_another(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("BEAT_SECONDS", 0.01), ("HURRIED_SECONDS", 0.005), ("_JITTER_SECONDS", 0.001)):
        monkeypatch.setattr(beating, name, seconds)

    async def scenario() -> None:
        book = Book()
        member = Beating(book, book, "me", on_seen=lambda _: None, on_absent=lambda _: None)
        member.start()
        try:
            assert await asyncio.to_thread(book.has_beaten_on.wait, PATIENCE_SECONDS)
        finally:
            await member.stop()

    asyncio.run(scenario())

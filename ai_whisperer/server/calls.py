"""Which function answers which method, and who is calling."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from ai_whisperer.protocol.method import Method, Params
from ai_whisperer.protocol.sessions import Subscribe, Subscribed
from ai_whisperer.runtime.manager import AsyncAgentSessionManager
from ai_whisperer.server.host import SessionHost

P = TypeVar("P", bound=Params)
R = TypeVar("R")


class Peer(Protocol):
    """The connection that a call came on."""

    def subscribe(self, session: AsyncAgentSessionManager, params: Subscribe) -> Subscribed: ...

    def unsubscribe(self, session: AsyncAgentSessionManager) -> Subscribed: ...

    async def ready(self) -> None: ...


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the server. `data` is its folder, with the logs in it."""

    version: str
    started_at: float
    max_frame_bytes: int
    data: Path


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls, and what it can reach."""

    principal: str
    host: SessionHost
    facts: ServerFacts
    peer: Peer

    async def session(self, session_id: str) -> AsyncAgentSessionManager:
        """The caller's session, to act in; raises `UnknownSessionError`."""
        return await self.host.session(self.principal, session_id)

    async def reading(self, session_id: str) -> AsyncAgentSessionManager:
        """The caller's session, to read in: when all that was decided is on disk, and the caller has taken what it got.

        So whoever asks for a lot and does not read it has one answer waiting, not as many as it asked for.
        """
        session = await self.host.session(self.principal, session_id)
        await session.flushed()
        await self.peer.ready()
        return session


Answer = Callable[[Caller, Any], Awaitable[Any]]

ANSWERS: dict[str, Answer] = {}
"""The functions by the names of the methods. The modules `server.*_answers` fill it."""


def answers(
    method: Method[P, R],
) -> Callable[[Callable[[Caller, P], Awaitable[R]]], Callable[[Caller, P], Awaitable[R]]]:
    """Register the function as the one that answers this method."""

    def register(function: Callable[[Caller, P], Awaitable[R]]) -> Callable[[Caller, P], Awaitable[R]]:
        ANSWERS[method.name] = function
        return function

    return register

"""Which function answers which method, and who is calling."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import CoroutineType
from typing import Any, Protocol, TypeVar

import msgspec

from ai_whisperer.domain.notifications.base import Level
from ai_whisperer.protocol.method import Effect, InSession, Method, Params
from ai_whisperer.protocol.subscriptions import Subscribe, Subscribed
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.host import SessionHost
from ai_whisperer.session_api import arguments_of

P = TypeVar("P", bound=Params)
S = TypeVar("S", bound=InSession)
R = TypeVar("R")


class Peer(Protocol):
    """The connection that a call came on."""

    def subscribe(self, session: AsyncAgentSessionManager, params: Subscribe) -> Subscribed: ...

    def unsubscribe(self, session: AsyncAgentSessionManager) -> Subscribed: ...

    async def ready(self) -> None: ...

    @property
    def one_by_one(self) -> AbstractAsyncContextManager[None]:
        """A block that calls of the client pass one after the other."""


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the server. `log_level` is the least that the logs of agents have."""

    version: str
    started_at: float
    max_frame_bytes: int
    log_level: Level


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

    def reading_now(self, session_id: str) -> AsyncAgentSessionManager:
        """The same for a caller that has taken what it got; raises `MustWaitError` if there is more to wait for."""
        session = self.host.open_session(self.principal, session_id)
        if session is None or not session.is_flushed:
            raise MustWaitError
        return session


class MustWaitError(Exception):
    """The answer cannot be given at once."""


Answer = Callable[[Caller, Any], Awaitable[Any]]
_LookUp = Callable[[AsyncAgentSessionManager, S], R | Coroutine[Any, Any, R]]

ANSWERS: dict[str, Answer] = {}
"""The functions by the names of the methods. The modules in `server/answers` fill it."""


def answers(
    method: Method[P, R],
) -> Callable[[Callable[[Caller, P], Awaitable[R]]], Callable[[Caller, P], Awaitable[R]]]:
    """Register the function as the one that answers this method."""

    def register(function: Callable[[Caller, P], Awaitable[R]]) -> Callable[[Caller, P], Awaitable[R]]:
        ANSWERS[method.name] = function
        return function

    return register


class Fact:
    """An answer for which nothing has to be waited: it is given at once, without a task of its own."""

    def __init__(self, tell: Callable[[Caller, Any], Any]) -> None:
        self.now = tell

    async def __call__(self, caller: Caller, params: Any) -> Any:
        return self.now(caller, params)


class Read:
    """An answer that is looked up in a session: at once if there is nothing to wait for."""

    def __init__(self, look_up: Callable[[AsyncAgentSessionManager, Any], Any]) -> None:
        self._look_up = look_up
        self._takes_time = False

    async def __call__(self, caller: Caller, params: InSession) -> Any:
        found = self._look_up(await caller.reading(params.session_id), params)
        return await found if isinstance(found, CoroutineType) else found

    def now(self, caller: Caller, params: InSession) -> Any:
        """Raises `MustWaitError`, always once a read of the store has taken time."""
        if self._takes_time:
            raise MustWaitError
        found = self._look_up(caller.reading_now(params.session_id), params)
        if not isinstance(found, CoroutineType):
            return found
        try:
            found.send(None)
        except StopIteration as read:
            return read.value
        found.close()
        self._takes_time = True
        raise MustWaitError


def tells(method: Method[P, R]) -> Callable[[Callable[[Caller, P], R]], Callable[[Caller, P], R]]:
    """Register the function as the one that answers this method at once."""

    def register(function: Callable[[Caller, P], R]) -> Callable[[Caller, P], R]:
        ANSWERS[method.name] = Fact(function)
        return function

    return register


def reads(
    method: Method[S, R],
) -> Callable[[_LookUp[S, R]], _LookUp[S, R]]:
    """Register the function as the one that looks the answer to this method up in the session of its params."""

    def register(function: _LookUp[S, R]) -> _LookUp[S, R]:
        ANSWERS[method.name] = Read(function)
        return function

    return register


def passed_on(method: Method[Any, Any]) -> Answer:
    """The answer to a method that is a call of a session and nothing else: with its params, in the form of its result.

    What only reads is looked up as by `reads`.
    """
    call = method.call
    if call is None:
        raise TypeError(f"{method.name} is no call of a session, so a function in server/answers has to answer it.")
    fields = [each for each in method.params.__struct_fields__ if each != "session_id"]
    arguments = ", ".join(f"{name}=params.{field}" for field, name in arguments_of(call, fields).items())
    # Compiled from the names in our own code, since each request comes here: no dict is made and unpacked for it.
    called = eval(f"lambda session, params: session.{call}({arguments})")  # noqa: S307
    listed = method.result if method.only_field else None

    def look_up(session: AsyncAgentSessionManager, params: InSession) -> Any:
        found = called(session, params)
        if isinstance(found, CoroutineType):
            return found if listed is None else in_its_form(found)
        return found if listed is None else listed(found)

    async def in_its_form(found: Coroutine[Any, Any, Any]) -> Any:
        return listed(await found)  # type: ignore[misc]

    async def act(caller: Caller, params: InSession) -> Any:
        done = await called(await caller.session(params.session_id), params)
        return done if listed is None else listed(done)

    return Read(look_up) if method.effect is Effect.READS else act

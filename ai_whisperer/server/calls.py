"""Which function answers which method, and who is calling."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Any, Generic, TypeVar

import msgspec

from ai_whisperer.protocol.method import Effect, InSession, Method, Params
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.feeds import Feeds
from ai_whisperer.server.host import SessionHost
from ai_whisperer.server.outbox import Outbox
from ai_whisperer.session_api import arguments_of
from ai_whisperer.settings import Settings

P = TypeVar("P", bound=Params)
S = TypeVar("S", bound=InSession)
R = TypeVar("R")


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls, and what it can reach. Within `one_by_one` calls of a client pass one after the other."""

    principal: str
    host: SessionHost
    settings: Settings
    feeds: Feeds
    outbox: Outbox
    one_by_one: asyncio.Lock

    async def session(self, session_id: str) -> AsyncAgentSessionManager:
        """The caller's session, to act in; raises `UnknownSessionError`."""
        return await self.host.session(self.principal, session_id)

    async def reading(self, session_id: str) -> AsyncAgentSessionManager:
        """The caller's session, to read in: when all that was decided is on disk, and the caller has taken what it got.

        So whoever asks for a lot and does not read it has one answer waiting, not as many as it asked for.
        """
        session = await self.host.session(self.principal, session_id)
        await session.flushed()
        await self.outbox.ready()
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

ANSWERS: dict[str, Answer] = {}
"""The functions by the names of the methods. `server.answers` fills it."""


def answers(
    method: Method[P, R],
) -> Callable[[Callable[[Caller, P], Awaitable[R]]], Callable[[Caller, P], Awaitable[R]]]:
    """Register the function as the one that answers this method."""

    def register(function: Callable[[Caller, P], Awaitable[R]]) -> Callable[[Caller, P], Awaitable[R]]:
        ANSWERS[method.name] = function
        return function

    return register


class Fact(Generic[P, R]):
    """An answer for which nothing has to be waited: it is given at once, without a task of its own."""

    def __init__(self, tell: Callable[[Caller, P], R]) -> None:
        self.now = tell

    async def __call__(self, caller: Caller, params: P) -> R:
        return self.now(caller, params)


class Read(Generic[S]):
    """An answer that is looked up in the session of the params: at once if there is nothing to wait for."""

    def __init__(
        self, look_up: Callable[[AsyncAgentSessionManager, S], Any], form: Callable[[Any], Any] | None = None
    ) -> None:
        """`form` makes of what is found what is told, if that is something else."""
        self._look_up = look_up
        self._form = form
        self._takes_time = False

    async def __call__(self, caller: Caller, params: S) -> Any:
        found = self._look_up(await caller.reading(params.session_id), params)
        return self._formed(await found if isinstance(found, CoroutineType) else found)

    def now(self, caller: Caller, params: S) -> Any:
        """Raises `MustWaitError`: before a read of a store that is far, and always once one has taken time."""
        if self._takes_time:
            raise MustWaitError
        found = self._look_up(caller.reading_now(params.session_id), params)
        if not isinstance(found, CoroutineType):
            return self._formed(found)
        if not caller.host.has_far_store:
            try:
                found.send(None)  # a read that does not wait needs no task: it is done by this
            except StopIteration as read:
                return self._formed(read.value)
        found.close()  # it is read again in a task, and so is all of this method from now on
        self._takes_time = True
        raise MustWaitError

    def _formed(self, found: Any) -> Any:
        return found if self._form is None else self._form(found)


def passed_on(method: Method[Any, Any]) -> Answer:
    """The answer to a method that is a call of a session and nothing else: with its params, in the form of its result.

    What only reads is a `Read`.
    """
    call = method.call
    if call is None:
        raise TypeError(f"{method.name} is no call of a session, so a function in server/answers.py has to answer it.")
    fields = [each for each in method.params.__struct_fields__ if each != "session_id"]
    arguments = ", ".join(f"{name}=params.{field}" for field, name in arguments_of(call, fields).items())
    # Compiled from the names in our own code, since each request comes here: no dict is made and unpacked for it.
    called = eval(f"lambda session, params: session.{call}({arguments})")  # noqa: S307
    listed = method.result if method.only_field else None

    async def act(caller: Caller, params: InSession) -> Any:
        done = await called(await caller.session(params.session_id), params)
        return done if listed is None else listed(done)

    return Read(called, listed) if method.effect is Effect.READS else act

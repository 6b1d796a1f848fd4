"""Requests to a server that may be away for a while: connects again, and repeats what can be repeated."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TypeVar

import msgspec

from ai_whisperer.client.dialing import ToldToWaitError, UnreachableError
from ai_whisperer.client.link import UNREADABLE, Link, LinkBrokenError
from ai_whisperer.client.patience import Patience
from ai_whisperer.client.route import Route
from ai_whisperer.errors import ClosedError, ConnectionLostError, InvalidInputError, WhispererError
from ai_whisperer.protocol.method import Method, Params

P = TypeVar("P", bound=Params)
R = TypeVar("R")


class Connection:
    """Asks a server. While it is away, requests wait for it, up to `reconnect_seconds`."""

    def __init__(self, route: Route, *, reconnect_seconds: float, chance: Random) -> None:
        self._route = route
        self._chance = chance
        self._reconnect_seconds = reconnect_seconds
        self._link: Link | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self) -> None:
        """Connect; raises at once if that is not possible."""
        try:
            self._link = await Link.open(self._route)
        except ToldToWaitError as error:
            raise ConnectionLostError(f"{self._route.named} accepts no connections now: {error}") from error
        except (UnreachableError, LinkBrokenError) as error:
            raise ConnectionLostError(
                f"There is no answer at {self._route.named} ({error}). Start the server with `whisperer serve`, or "
                "use the address that it printed."
            ) from error

    async def close(self) -> None:
        """Let go. Requests that were not answered end with `ClosedError`."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._link is not None:
            await self._link.close()

    async def do(self, method: Method[P, R], params: P) -> R:
        """Call a method that must not be repeated: if the answer is lost, raises `ConnectionLostError`."""
        payload = _written(method, params)
        while True:
            link = await self._linked(method, was_sent=False)
            try:
                return _read(method, await link.request(method.name, payload))
            except LinkBrokenError as broken:
                self._check_open()
                if broken.was_sent:
                    raise ConnectionLostError(
                        f"The connection to {self._route.named} broke before {method.name} was answered, so it is "
                        "not known whether it took effect. Look at the state of things before you call again.",
                        was_sent=True,
                    ) from broken

    async def ask(self, method: Method[P, R], params: P) -> R:
        """Call a method that may be repeated: it only reads, or carries the id under which it takes effect once."""
        payload = _written(method, params)
        patience: Patience | None = None
        was_sent = False
        while True:
            link = await self._linked(method, was_sent=was_sent)
            try:
                return _read(method, await link.request(method.name, payload))
            except (LinkBrokenError, ClosedError) as error:
                self._check_open()
                was_sent = was_sent or isinstance(error, ClosedError) or error.was_sent
                patience = patience or Patience(self._reconnect_seconds, self._chance)
                if patience.is_over:
                    raise self._lost(method, error, was_sent=was_sent) from error
                await patience.pause()

    async def _linked(self, method: Method[P, R], *, was_sent: bool) -> Link:
        """The open link; whoever finds it broken begins to mend it, and all wait for that."""
        while True:
            self._check_open()
            if self._link is not None and self._link.is_open:
                return self._link
            if self._connecting is None:
                self._connecting = asyncio.create_task(self._connect(), name=f"connecting to {self._route.named}")
                self._connecting.add_done_callback(_looked_at)
            try:
                await asyncio.shield(self._connecting)
            except (UnreachableError, LinkBrokenError) as error:
                raise self._lost(method, error, was_sent=was_sent) from error
            except asyncio.CancelledError:
                self._check_open()
                raise

    async def _connect(self) -> None:
        """Try until it works or patience is at its end.

        It takes its place by itself: a callback would come later than somebody who is about to look, who would find
        neither a link nor anything to wait for.
        """
        patience = Patience(self._reconnect_seconds, self._chance)
        try:
            while True:
                try:
                    self._link = await Link.open(self._route)
                except (UnreachableError, LinkBrokenError, ClosedError):
                    if patience.is_over:
                        raise
                    await patience.pause()
                else:
                    return
        finally:
            self._connecting = None

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("The client was closed. Open another.")

    def _lost(self, method: Method[P, R], error: Exception, *, was_sent: bool) -> ConnectionLostError:
        outcome = (
            "was not answered, and if it changes something it is not known whether it did"
            if was_sent
            else "was not sent and changed nothing"
        )
        return ConnectionLostError(
            f"{self._route.named} could not be reached for {self._reconnect_seconds:g} seconds ({error}), so "
            f"{method.name} {outcome}. Check that the server is running.",
            was_sent=was_sent,
        )


def _looked_at(connecting: asyncio.Task[None]) -> None:
    """Whoever waited for it may be gone."""
    if not connecting.cancelled():
        connecting.exception()


def _read(method: Method[P, R], answer: bytes) -> R:
    try:
        return method.read_result(answer)
    except UNREADABLE as error:
        raise WhispererError(
            f"The server answered {method.name} in a way that this client does not understand ({error}). Use the same "
            "version of AI Whisperer on both sides."
        ) from error


def _written(method: Method[P, R], params: P) -> bytes:
    try:
        return msgspec.json.encode(params)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInputError(
            f"The params of {method.name} cannot be sent: {error}. Expected: {method.signature}."
        ) from error

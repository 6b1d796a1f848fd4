"""The gates of providers' accounts: one for each account, for all sessions that run on one event loop.

`core.provider_gate` decides who may ask when. Whoever waits holds nothing that others need, and leaves at once when its
task is cancelled or paused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from enum import Enum
from itertools import count
from typing import Protocol

from ai_whisperer.core.provider_gate import Pass, Place, ProviderGate, Waiting
from ai_whisperer.domain.providers import Account, GateState


class Turn(Protocol):
    """One request that was let in, until its `end`, which may be called twice."""

    @property
    def is_over(self) -> bool: ...
    @property
    def stands_alone(self) -> bool:
        """Whether no other request of the account was under way, or taken lately."""

    @property
    def shut_seconds(self) -> float:
        """How long nobody was let in at the account, up to now."""

    @property
    def refusals_in_a_row(self) -> int:
        """How often all of the account had to wait since a request was taken last."""

    @property
    def is_down(self) -> bool: ...

    def taken(self) -> None:
        """The provider takes the request, or has answered it: others may follow."""

    def refused(self, *, seconds: float, is_asked_for: bool, reason: str) -> None:
        """The provider asks for fewer requests; this one is repeated after so many seconds."""

    def failed(self, *, seconds: float, reason: str) -> None:
        """The provider is down; the request is repeated after so many seconds."""

    def end(self) -> None: ...


class FreeTurn:
    """The turn of a request to a model that has no account: nobody else is concerned."""

    __slots__ = ()
    is_over = False
    stands_alone = True
    shut_seconds = 0.0
    refusals_in_a_row = 0
    is_down = False

    def taken(self) -> None: ...
    def refused(self, *, seconds: float, is_asked_for: bool, reason: str) -> None: ...
    def failed(self, *, seconds: float, reason: str) -> None: ...
    def end(self) -> None: ...


FREE_TURN = FreeTurn()


class SharedTurn:
    """The turn of a request at the gate of an account."""

    __slots__ = ("_gate", "_passed")

    def __init__(self, gate: SharedGate, passed: Pass) -> None:
        self._gate = gate
        self._passed = passed

    @property
    def is_over(self) -> bool:
        return self._passed.is_over

    @property
    def stands_alone(self) -> bool:
        return self._gate.gate.stands_alone(self._passed)

    @property
    def shut_seconds(self) -> float:
        return self._gate.gate.shut_for(self._gate.now())

    @property
    def refusals_in_a_row(self) -> int:
        return self._gate.gate.refusals_in_a_row

    @property
    def is_down(self) -> bool:
        return self._gate.gate.is_down

    def taken(self) -> None:
        self._gate.taken(self._passed)

    def refused(self, *, seconds: float, is_asked_for: bool, reason: str) -> None:
        self._gate.refused(self._passed, seconds=seconds, is_asked_for=is_asked_for, reason=reason)

    def failed(self, *, seconds: float, reason: str) -> None:
        self._gate.failed(self._passed, seconds=seconds, reason=reason)

    def end(self) -> None:
        self._gate.end(self._passed)


class Sent(Enum):
    """Why one that waited has no turn: it looks for it again, or the provider was waited for long enough."""

    TO_LOOK_AGAIN = "again"
    AWAY = "away"


Listener = Callable[["SharedGate"], None]
"""Is told that the gate lets nobody in, each time that this is put off, and that it is open again."""


class SharedGate:
    """The gate of one account. `gate` is what is decided, and may be read; it is changed by the methods of this."""

    def __init__(self, account: Account, event_loop: asyncio.AbstractEventLoop) -> None:
        self.account = account
        self.gate = ProviderGate()
        self.now = event_loop.time
        self._loop = event_loop
        self._futures: dict[Waiting, asyncio.Future[Turn | Sent]] = {}
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._context = Context()  # not that of who comes first: its session may be closed when the timer fires
        self._was_shut = False
        self.listeners: dict[object, Listener] = {}

    def place(self, rank: int, since: float) -> Place:
        return Place(rank, since, next(self._numbers))

    def enter(self, *, most: int) -> Turn | None:
        """The turn of a request, if it need not wait."""
        passed = self.gate.enter(self.now(), most=most)
        return None if passed is None else SharedTurn(self, passed)

    async def wait(self, waiting: Waiting) -> Turn | Sent:
        """Wait for the turn."""
        future: asyncio.Future[Turn | Sent] = self._loop.create_future()
        self._futures[waiting] = future
        self.gate.line_up(waiting)
        self._serve()
        try:
            return await future
        except BaseException:
            if future.done() and not future.cancelled() and not isinstance(turn := future.result(), Sent):
                turn.end()  # it came in the moment in which whoever waited was cancelled
            raise
        finally:
            self.gate.leave(waiting)
            del self._futures[waiting]

    def look_again(self) -> None:
        """Let all that wait look for their turn again: limits have changed."""
        for waiting in list(self.gate.all_waiting()):
            self.gate.leave(waiting)
            self._send(waiting, Sent.TO_LOOK_AGAIN)

    def taken(self, passed: Pass) -> None:
        self.gate.taken(passed)
        self._changed()

    def refused(self, passed: Pass, *, seconds: float, is_asked_for: bool, reason: str) -> None:
        self.gate.refused(passed, self.now(), seconds=seconds, is_asked_for=is_asked_for, reason=reason)
        self._is_shut()

    def failed(self, passed: Pass, *, seconds: float, reason: str) -> None:
        self.gate.failed(passed, self.now(), seconds=seconds, reason=reason)
        self._is_shut()

    def end(self, passed: Pass) -> None:
        if not passed.is_over:
            self.gate.ended(passed)
            if self.gate.waiting:
                self._serve()

    def _is_shut(self) -> None:
        now = self.now()
        for waiting in self.gate.given_up(now):
            self._send(waiting, Sent.AWAY)
        for waiting in self.gate.moving_on(now):
            self._send(waiting, Sent.TO_LOOK_AGAIN)
        self._changed()

    def _changed(self) -> None:
        if self.gate.waiting:
            self._serve()
        is_shut = self.gate.state in (GateState.HELD, GateState.DOWN)
        if is_shut or self._was_shut:
            self._was_shut = is_shut
            for tell in list(self.listeners.values()):
                tell(self)

    def _send(self, waiting: Waiting, sent: Sent) -> None:
        future = self._futures[waiting]
        if not future.done():
            future.set_result(sent)

    def _serve(self) -> None:
        """Let those in whose turn it is, and see to it that time lets the next one in."""
        while let_in := self.gate.let_in(self.now()):
            for waiting, passed in let_in:
                future = self._futures[waiting]
                if future.done():
                    self.gate.ended(passed)  # its task is being cancelled: the next one is let in
                else:
                    future.set_result(SharedTurn(self, passed))
        at = self.gate.look_again_at(self.now())
        if self._timer is not None and (at is None or at != self._timer.when()):
            self._timer.cancel()
            self._timer = None
        if at is not None and self._timer is None:
            self._timer = self._loop.call_at(at, self._fire, context=self._context)

    def _fire(self) -> None:
        self._timer = None
        self._serve()


_gates: dict[asyncio.AbstractEventLoop, dict[Account, SharedGate]] = {}


def gate_of(account: Account, event_loop: asyncio.AbstractEventLoop) -> SharedGate:
    """The gate that all sessions of the event loop share for the account; a new process begins with new ones."""
    gates = _gates.get(event_loop)
    if gates is None:
        for each in list(_gates):  # in one go: other threads may have event loops of their own
            if each.is_closed():
                _gates.pop(each, None)
        gates = _gates[event_loop] = {}
    gate = gates.get(account)
    if gate is None:
        gate = gates[account] = SharedGate(account, event_loop)
    return gate

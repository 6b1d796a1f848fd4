"""Before a request begins: its time if it is repeated, which model it goes to, its turn at the account of the provider,
tokens and money for it.

Whoever waits for one of these holds none of the others, and no place among the loops at work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ai_whisperer.core.fallbacks import Attempts
from ai_whisperer.core.model_failures import longest_wait
from ai_whisperer.core.provider_gate import Waiting
from ai_whisperer.domain.providers import Account
from ai_whisperer.errors import ModelError, ModelUnavailableError
from ai_whisperer.models.base import Model, ModelRequest, StreamEvent
from ai_whisperer.models.catalog import LateModel
from ai_whisperer.runtime.agents.inquiry import Inquiry
from ai_whisperer.runtime.agents.mcp import WaitingLoop
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.runtime.limits.provider_turns import FREE_TURN, Sent, SharedGate, Turn
from ai_whisperer.runtime.limits.spending import Reserved
from ai_whisperer.runtime.session.roles import Loop

_UNLIMITED = Reserved()


class Asking:
    """What a loop keeps of its request while it is made: since when, what became of it, how long it was held up.

    `held_up_seconds` is how long it has waited at accounts that let nobody in, and is not journaled yet.
    """

    __slots__ = ("_attempts", "held_up_seconds", "number", "since")

    def __init__(self, number: int, since: float) -> None:
        self.number = number
        self.since = since
        self.held_up_seconds = 0.0
        self._attempts: Attempts | None = None

    @property
    def attempts(self) -> Attempts:
        """What became of it at each of the models, if the agent has several."""
        if self._attempts is None:
            self._attempts = Attempts()
        return self._attempts


class AskingLoop(WaitingLoop, Loop, Protocol):
    """The loop that asks."""

    asking: Asking | None


class ModelTurn(Struct, frozen=True):
    """A request may begin: the model, its name, the turn, and what is set aside for it."""

    model: Model
    name: str
    turn: Turn
    reserved: Reserved

    @property
    def is_limited(self) -> bool:
        """Whether something was set aside."""
        return self.reserved is not _UNLIMITED


class _Unusable:
    """A model that cannot be made: to ask it tells why."""

    def __init__(self, error: ModelError) -> None:
        self._error = error

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        del request
        raise self._error

    async def close(self) -> None:
        """There is nothing to close."""


class NoTurnError(ModelUnavailableError):
    """The account of the provider has let nobody in for longer than is waited for."""


async def waited_for_retry(agent: Owner, loop: AskingLoop) -> bool:
    """Wait until the last step may be tried again, if it has to be; False if the agent may not go on, now or then.

    Nothing is held meanwhile: no place among the loops at work, no tokens and no money. A suspect on trial holds up
    nobody either, since it does nothing.
    """
    retry_at = loop.running.journal.steps[-1].retry_at
    if retry_at is None:
        return True
    if not agent.may_step:
        return False  # nobody cuts a wait short that begins after the pause
    loop.running.settled()
    longest = longest_wait(agent.record.definition.retry, max_retry_after_seconds=agent.limits.max_retry_after_seconds)
    loop.is_waiting = True
    try:
        async with loop.without_place():
            await asyncio.sleep(min(max(retry_at - agent.parts.kernel.clock.now(), 0.0), longest))
    finally:
        loop.is_waiting = False
    return agent.may_step


async def model_turn(agent: Owner, loop: AskingLoop, inquiry: Inquiry) -> ModelTurn | None:
    """Wait until the request may begin; None if the agent may not go on, now or then.

    The turn of what is returned has to be ended. Raises `NoTurnError`, and what `Spending.reserve` raises.
    """
    while True:
        name = chosen_model(agent, loop, inquiry.models)
        try:
            model = agent.model(name)
        except ModelError as error:
            return ModelTurn(_Unusable(error), name, FREE_TURN, _UNLIMITED)
        account: Account | None = getattr(model, "account", None)
        if account is None and isinstance(model, LateModel) and await model.find_account() is not None:
            continue  # now that its account is known, another model may be the better choice
        gate = None if account is None else agent.parts.gates.gate(account)
        turn: Turn | None = FREE_TURN
        if gate is not None:
            turn = gate.enter(most=agent.parts.gates.most)
            if turn is None:
                turn = await _waited(agent, loop, gate, moves_on=len(inquiry.models) > 1)
        if turn is None:
            if agent.may_step:
                continue
            return None
        asked = ModelTurn(model, name, turn, _UNLIMITED)
        if not agent.parts.spending.hold_for(agent, loop.running.journal.task):
            return asked
        limited = await _limited(agent, loop, asked, gate, inquiry)
        if limited is not Sent.TO_LOOK_AGAIN:
            return limited


async def _limited(
    agent: Owner, loop: AskingLoop, asked: ModelTurn, gate: SharedGate | None, inquiry: Inquiry
) -> ModelTurn | Literal[Sent.TO_LOOK_AGAIN] | None:
    """The same with what is set aside for it. If it had to wait for that, it may have to wait for its turn again.

    What is set aside is not given back while there is room at the gate: several that are short of tokens would pass
    them on to each other for ever.
    """
    spending = agent.parts.spending
    try:
        reserved = await spending.reserve(
            loop,
            asked.model,
            input_tokens=inquiry.input_tokens(),
            output_tokens=inquiry.output_tokens(),
            before_waiting=asked.turn.end,
        )
    except BaseException:
        asked.turn.end()
        raise
    if reserved is None:
        asked.turn.end()
        return None
    turn = asked.turn if gate is None or not asked.turn.is_over else gate.enter(most=agent.parts.gates.most)
    if turn is not None:
        return replace(asked, turn=turn, reserved=reserved)
    spending.release(loop.running.journal.task.id)
    return Sent.TO_LOOK_AGAIN


def asking_of(agent: Owner, loop: AskingLoop) -> Asking:
    """What the loop keeps of the request that its last step is."""
    number = loop.running.journal.steps[-1].number
    if loop.asking is None or loop.asking.number != number:
        loop.asking = Asking(number, agent.parts.kernel.event_loop.time())
    return loop.asking


def chosen_model(agent: Owner, loop: AskingLoop, names: tuple[str, ...]) -> str:
    """The name of the model that the request goes to as things are now, of those that it may go to."""
    if len(names) == 1:
        return names[0]
    attempts = asking_of(agent, loop).attempts
    return attempts.choose(names, barred=agent.barred_models(), lasting=partial(lasting_seconds, agent))


def lasting_seconds(agent: Owner, name: str) -> float:
    """For how long the account of the model lets nobody in, if it is better to ask another one meanwhile; else 0."""
    try:
        account = getattr(agent.model(name), "account", None)
    except ModelError:
        return 0.0  # the request tells of it
    if account is None:
        return 0.0
    gate = agent.parts.gates.gate(account)
    return gate.gate.lasting_seconds(gate.now())


async def _waited(agent: Owner, loop: AskingLoop, gate: SharedGate, *, moves_on: bool) -> Turn | None:
    """The turn at the gate; None if the agent may not go on, or another model may be the better choice now."""
    if not agent.may_step:
        return None  # nobody cuts a wait short that begins after the pause
    gates, asking = agent.parts.gates, asking_of(agent, loop)
    gates.waits(gate)
    turn: Turn | None = None
    task, step = loop.running.journal.task, loop.running.journal.steps[-1]
    waiting = Waiting(
        gate.place(task.priority.rank, asking.since),
        arrived_at=gate.now(),
        max_retry_after_seconds=agent.limits.max_retry_after_seconds,
        max_outage_seconds=agent.limits.max_outage_seconds - step.outage_seconds - asking.held_up_seconds,
        most=gates.most,
        moves_on=moves_on,
    )
    loop.running.settled()
    loop.is_waiting = True
    try:
        async with loop.without_place():
            sent = await gate.wait(waiting)
            if not isinstance(sent, Sent):
                turn = sent
                if not (agent.parts.slots.has_room or task.answers_a_switch):
                    turn.end()  # others ask while this one waits for its place
    except BaseException:
        if turn is not None:
            turn.end()
        raise
    finally:
        loop.is_waiting = False
        asking.held_up_seconds += gate.gate.shut_seconds(waiting, gate.now())
    if sent is Sent.AWAY:
        raise NoTurnError(gate.gate.reason)
    return None if turn is None or turn.is_over else turn

"""A method: its name, its params, its result."""

from __future__ import annotations

from enum import Enum, auto
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import fields

from ai_whisperer.choices import valid_values
from ai_whisperer.protocol.jsonrpc import INVALID_PARAMS, RpcError, plain_complaint
from ai_whisperer.protocol.wire import wire_type
from ai_whisperer.session_api import SessionApi


class Params(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Base of the params of all methods. What a class says of itself is the description of its method.

    One that says nothing leaves that to `SessionApi`, whose call the method is.
    """


# Params of a method that acts in a session.
class InSession(Params, frozen=True, kw_only=True):
    session_id: str


# Params of a method that acts on an agent, which is named by its id, its name or an alias.
class OfAgent(InSession, frozen=True, kw_only=True):
    agent_id: str


P = TypeVar("P", bound=Params)
R = TypeVar("R")


class Effect(Enum):
    """What becomes of a call that is made again because its answer was lost."""

    READS = auto()
    """It only looks, at what is on disk."""

    REPEATS = auto()
    """It does the same again, which harms nothing."""

    ACTS = auto()
    """It might happen twice, and so must not be made again."""


class Method(Generic[P, R]):
    """A method that clients call and the server answers. Both take its types from here.

    `call` is the name that it has in `SessionApi`: what the client sends and the server answers is made from that,
    unless one of them has more to do. A method with `once` takes effect once under the id in that field, which the
    client chooses if the caller does not. `wire` is the type that the result is sent as, where it is not that of all
    records.
    """

    def __init__(
        self,
        name: str,
        params: type[P],
        result: type[R],
        call: str | None = None,
        effect: Effect = Effect.ACTS,
        *,
        once: str | None = None,
        wire: Any = None,
    ) -> None:
        self.name = name
        self.params = params
        self.result = result
        self.call = call
        self.effect = effect if once is None else Effect.REPEATS
        self.once = once
        self.wire = wire_type(result) if wire is None else wire

    def __repr__(self) -> str:
        return f"Method({self.name!r})"

    def read_params(self, raw: bytes) -> P:
        """The params of a call; raises `RpcError` that names the field and what was expected."""
        try:
            if raw[:1] == b"[":
                raw = self._by_name(raw)
            return self._decoder.decode(raw or b"{}")
        except (msgspec.DecodeError, RecursionError) as error:
            raise RpcError(
                INVALID_PARAMS,
                f"The params of {self.name} are not valid: {plain_complaint(error)}.{valid_values(error, self.params)} "
                f"Expected: {self.signature}.",
                {"method": self.name},
            ) from error

    def write_result(self, result: R) -> bytes:
        """The result as JSON."""
        return msgspec.json.encode(msgspec.convert(result, self.wire, from_attributes=True))

    def read_result(self, raw: bytes) -> R:
        """The result from its JSON."""
        return msgspec.convert(msgspec.json.decode(raw, type=self.wire), self.result, from_attributes=True)

    @cached_property
    def only_field(self) -> str | None:
        """The field of a result that has only this one: a list, which Python has without the record around it."""
        named: tuple[str, ...] = getattr(self.result, "__struct_fields__", ())
        return named[0] if len(named) == 1 else None

    @property
    def summary(self) -> str:
        """What it does."""
        said = self.params.__doc__
        if said is None and self.call is not None:
            said = getattr(SessionApi, self.call).__doc__
        return (said or "").strip()

    @cached_property
    def signature(self) -> str:
        """The params in one line: `{sessionId, agentId, reason?}`."""
        named = (f"{each.encode_name}{'' if each.required else '?'}" for each in fields(self.params))
        return "{" + ", ".join(named) + "}"

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[P]:
        return msgspec.json.Decoder(self.params)

    def _by_name(self, raw: bytes) -> bytes:
        """Params by position as params by name."""
        values = msgspec.json.decode(raw, type=list[msgspec.Raw])
        names = [each.encode_name for each in fields(self.params)]
        if len(values) > len(names):
            raise msgspec.ValidationError(f"There are {len(values)} values for {len(names)} params")
        return msgspec.json.encode(dict(zip(names, values, strict=False)))

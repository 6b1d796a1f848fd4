"""How the errors of the runtime look on the wire, and how a client gets them back."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

from ai_whisperer.errors import (
    ConflictError,
    InvalidInputError,
    ModelError,
    NotFoundError,
    StoreError,
    TooManyRequestsError,
    WhispererError,
)
from ai_whisperer.protocol import jsonrpc
from ai_whisperer.protocol.jsonrpc import INVALID_PARAMS, RpcError

SERVER_ERROR = -32000
NOT_FOUND = -32004
CONFLICT = -32009
TOO_MANY_REQUESTS = -32029
STORE = -32050
MODEL = -32060

_NUMBERS: tuple[tuple[type[WhispererError], int], ...] = (
    (InvalidInputError, INVALID_PARAMS),
    (NotFoundError, NOT_FOUND),
    (ConflictError, CONFLICT),
    (TooManyRequestsError, TOO_MANY_REQUESTS),
    (StoreError, STORE),
    (ModelError, MODEL),
    (WhispererError, SERVER_ERROR),
)


def to_rpc(error: WhispererError, **data: Any) -> RpcError:
    """The error as a caller gets it; `data.code` is the stable code."""
    return RpcError(_number(type(error)), error.message, {"code": error.code, **error.data, **data})


class StableCode(NamedTuple):
    """A code that programs can rely on: the number that goes with it, and what it means."""

    code: str
    number: int
    meaning: str


def stable_codes() -> list[StableCode]:
    """All that `data.code` of an error can be: those of the protocol itself, then those of the error tree."""
    of_protocol = [StableCode(name, number, "") for number, name in jsonrpc.NAMES.items()]
    of_tree = [StableCode(kind.code, _number(kind), inspect.getdoc(kind) or "") for kind in _all_kinds()]
    return [*of_protocol, *of_tree]


def _number(kind: type[WhispererError]) -> int:
    return next(number for above, number in _NUMBERS if issubclass(kind, above))


def from_rpc(code: int, message: str, data: Any) -> WhispererError:
    """The error that the server answered with, as the runtime would raise it; the rest of `data` goes with it."""
    told = dict(data) if isinstance(data, dict) else {}
    stable = told.pop("code", None)
    kind = _BY_CODE.get(stable) if isinstance(stable, str) else None
    if kind is None:
        kind = InvalidInputError if code in (-32700, -32600, -32601, INVALID_PARAMS) else WhispererError
    error = kind(message)
    error.data = told
    return error


def _all_kinds(kind: type[WhispererError] = WhispererError) -> Iterator[type[WhispererError]]:
    """The error tree. What modules elsewhere derive from it for themselves has the code of its parent."""
    if "code" in vars(kind):
        yield kind
    for below in kind.__subclasses__():
        yield from _all_kinds(below)


_BY_CODE = {kind.code: kind for kind in _all_kinds()}

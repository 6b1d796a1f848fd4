"""How the errors of the runtime look on the wire, and how a client gets them back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ai_whisperer.errors import (
    ConflictError,
    InvalidInputError,
    ModelError,
    NotFoundError,
    StoreError,
    TooManyRequestsError,
    WhispererError,
)
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
    number = next(number for kind, number in _NUMBERS if isinstance(error, kind))
    return RpcError(number, error.message, {"code": error.code, **error.data, **data})


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
    yield kind
    for below in kind.__subclasses__():
        yield from _all_kinds(below)


_BY_CODE = {kind.code: kind for kind in _all_kinds()}

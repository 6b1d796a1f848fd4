"""JSON-RPC 2.0 without I/O: frames become calls or errors, results and errors become frames."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import msgspec

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

NAMES = {
    PARSE_ERROR: "parse_error",
    INVALID_REQUEST: "invalid_request",
    METHOD_NOT_FOUND: "unknown_method",
    INVALID_PARAMS: "invalid_params",
    INTERNAL_ERROR: "internal",
}
"""The stable codes of the errors of the protocol itself, which go with their numbers."""

RequestId = int | float | str | None
"""What a caller knows its request by."""

_VERSION = "2.0"
_SHOWN_BYTES = 200
_STEPS = [(byte in b"[{") - (byte in b"]}") for byte in range(256)]
_NO_BRACKETS = bytes(byte for byte in range(256) if not _STEPS[byte])
_MAX_PARTS = 100_000
"""So many lists and objects, and so many texts, may be in a frame whose depth has to be counted: it takes its time."""


class RpcError(Exception):
    """An error that goes to the caller: a number, a sentence, and data for programs.

    The data of an error of the protocol itself begins with its stable code.
    """

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = {"code": NAMES[code], **(data or {})} if code in NAMES else data


class Call(msgspec.Struct, frozen=True):
    """A request, or a notification if it has no id: that one is not answered."""

    method: str
    params: msgspec.Raw
    request_id: RequestId | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_answered(self) -> bool:
        return self.request_id is not msgspec.UNSET

    @property
    def answered_id(self) -> RequestId:
        """The id for an answer that must be given, come what may."""
        return None if self.request_id is msgspec.UNSET else self.request_id


class Refusal(msgspec.Struct, frozen=True):
    """Something in a frame that is no call; it is answered with the error."""

    error: RpcError
    request_id: RequestId = None


class Frame(msgspec.Struct, frozen=True):
    """What one frame holds, in order. The answers to a batch are sent as a batch."""

    entries: tuple[Call | Refusal, ...]
    is_batch: bool = False


class _Envelope(msgspec.Struct):
    method: str
    jsonrpc: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw = msgspec.Raw(b"")
    id: RequestId | msgspec.UnsetType = msgspec.UNSET


class _Identified(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw(b"null")


_envelope = msgspec.json.Decoder(_Envelope)
_identified = msgspec.json.Decoder(_Identified)
_request_id: msgspec.json.Decoder[RequestId] = msgspec.json.Decoder(RequestId)
_batch = msgspec.json.Decoder(list[msgspec.Raw])


def read_frame(data: str | bytes, *, max_depth: int, max_batch: int) -> Frame:
    """The calls in a frame. It raises nothing: what is wrong becomes a refusal.

    Where an object has a key twice, the later one counts.
    """
    try:
        raw = _utf8(data)
    except (UnicodeEncodeError, UnicodeDecodeError) as error:
        return _refused(PARSE_ERROR, f"The frame is not text in UTF-8: {error.reason} at {error.start}.")
    if (too_much := _excess(raw, max_depth)) is not None:
        try:
            return Frame((Refusal(too_much, _id_in(raw)),))
        except (msgspec.DecodeError, RecursionError):
            return Frame((Refusal(too_much),))
    if raw.lstrip()[:1] != b"[":
        return Frame((_entry(raw),))
    try:
        parts = _batch.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        return Frame((_no_json(raw, error),))
    if not parts:
        return _refused(INVALID_REQUEST, "The batch is empty. Put at least one request into it.")
    if len(parts) > max_batch:
        return _refused(INVALID_REQUEST, f"The batch has {len(parts)} requests. At most {max_batch} are taken.")
    return Frame(tuple(_entry(bytes(part)) for part in parts), is_batch=True)


def result_frame(request_id: RequestId, result: bytes) -> bytes:
    """The answer to a request; `result` is JSON already."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (msgspec.json.encode(request_id), result)


def error_frame(request_id: RequestId, error: RpcError) -> bytes:
    """The answer to a request that failed."""
    content: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        content["data"] = error.data
    return msgspec.json.encode({"jsonrpc": _VERSION, "id": request_id, "error": content})


def request_frame(request_id: RequestId, method: str, params: bytes) -> bytes:
    """A request; `params` is JSON already."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (
        msgspec.json.encode(request_id),
        msgspec.json.encode(method),
        params,
    )


def notification_frame(method: str, params: bytes) -> bytes:
    """A notification; `params` is JSON already."""
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (msgspec.json.encode(method), params)


def batch_frame(frames: list[bytes]) -> bytes:
    return b"[" + b",".join(frames) + b"]"


def plain_complaint(error: Exception) -> str:
    """What is wrong, with the place as a person names it: `$.budget.maxTokens` is `budget.maxTokens`."""
    return str(error).replace("`$.", "`").replace(" - at ", " at ")


def _utf8(data: str | bytes) -> bytes:
    if isinstance(data, str):
        return data.encode()
    data.decode()
    return data


def _entry(raw: bytes) -> Call | Refusal:
    try:
        envelope = _envelope.decode(raw)
    except msgspec.ValidationError as error:
        return _no_request(raw, error)
    except (msgspec.DecodeError, RecursionError) as error:
        return _no_json(raw, error)
    request_id = None if envelope.id is msgspec.UNSET else envelope.id
    if envelope.jsonrpc != _VERSION:
        # The bare form `{"method", "params"}` is taken as well, and answered with the id null.
        if envelope.jsonrpc is msgspec.UNSET and envelope.id is msgspec.UNSET and bytes(envelope.params)[:1] == b"{":
            return Call(envelope.method, envelope.params, None)
        return Refusal(_invalid('This is not a JSON-RPC 2.0 request: `jsonrpc` must be "2.0".'), request_id)
    if bytes(envelope.params)[:1] not in (b"", b"{", b"["):
        return Refusal(_invalid("`params` must be an object or an array."), request_id)
    return Call(envelope.method, envelope.params, envelope.id)


def _no_request(raw: bytes, complaint: msgspec.ValidationError) -> Refusal:
    """What is no request; after the first field that is wrong it may turn out to be no JSON either."""
    error = _invalid(f"This is not a JSON-RPC 2.0 request: {plain_complaint(complaint)}.")
    try:
        return Refusal(error, _id_in(raw))
    except msgspec.ValidationError:
        return Refusal(error)
    except (msgspec.DecodeError, RecursionError) as fault:
        return _no_json(raw, fault)


def _id_in(raw: bytes) -> RequestId:
    """The id of what is no request, if it has one that can be. Nothing else in it is made into objects."""
    try:
        found = _identified.decode(raw).id
    except msgspec.ValidationError:
        msgspec.json.decode(raw, type=msgspec.Raw)  # raises if it is no JSON to its end
        return None
    try:
        return _request_id.decode(found)
    except msgspec.ValidationError:
        return None


def _no_json(raw: bytes, fault: Exception) -> Refusal:
    shown = repr(raw[:_SHOWN_BYTES].decode(errors="replace"))
    return Refusal(RpcError(PARSE_ERROR, f"The frame is not valid JSON: {fault}. It begins {shown}."))


def _invalid(message: str) -> RpcError:
    return RpcError(INVALID_REQUEST, message)


def _refused(code: int, message: str) -> Frame:
    return Frame((Refusal(RpcError(code, message)),))


def _excess(raw: bytes, max_depth: int) -> RpcError | None:
    """What is too much in a frame: its depth, or so many parts that counting the depth would hold everybody up.

    What is in texts does not count, and is not looked at byte by byte.
    """
    if raw.count(b"[") + raw.count(b"{") <= max_depth:
        return None
    unescaped = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    if unescaped.count(b'"') > 2 * _MAX_PARTS:
        return _invalid(f"The frame has more than {_MAX_PARTS:,} texts. Send it in several.")
    brackets = b"".join(unescaped.split(b'"')[::2]).translate(None, _NO_BRACKETS)
    if len(brackets) > 2 * _MAX_PARTS:
        return _invalid(f"The frame has more than {_MAX_PARTS:,} lists and objects. Send it in several.")
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > max_depth:
        return _invalid(f"The frame is nested deeper than {max_depth} levels. Flatten it.")
    return None

"""JSON-RPC 2.0 without I/O: frames become calls or errors, results and errors become frames."""

from __future__ import annotations

from typing import Any

import msgspec

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

RequestId = int | float | str | None
"""What a caller knows its request by."""

_VERSION = "2.0"
_SHOWN_BYTES = 200


class RpcError(Exception):
    """An error that goes to the caller: a number, a sentence, and data for programs."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


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
    jsonrpc: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"")
    id: RequestId | msgspec.UnsetType = msgspec.UNSET


class _IdOnly(msgspec.Struct):
    id: RequestId = None


_envelope = msgspec.json.Decoder(_Envelope)
_id_only = msgspec.json.Decoder(_IdOnly)
_batch = msgspec.json.Decoder(list[msgspec.Raw])


def read_frame(data: str | bytes, *, max_depth: int, max_batch: int) -> Frame:
    """The calls in a frame. It raises nothing: what is wrong becomes a refusal."""
    try:
        raw = data.encode() if isinstance(data, str) else data
    except UnicodeEncodeError:
        return _refused(PARSE_ERROR, "The frame is not valid Unicode: it has half of a surrogate pair.")
    if _depth_exceeds(raw, max_depth):
        too_deep = _invalid(f"The frame is nested deeper than {max_depth} levels. Flatten it.")
        return Frame((Refusal(too_deep, _id_of(raw)),))
    if raw.lstrip()[:1] != b"[":
        return Frame((_entry(raw),))
    try:
        parts = _batch.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        return _refused(PARSE_ERROR, f"The frame is not valid JSON: {error}.")
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


def _entry(raw: bytes) -> Call | Refusal:
    try:
        envelope = _envelope.decode(raw)
    except msgspec.ValidationError as error:
        return Refusal(_invalid(f"This is not a JSON-RPC 2.0 request: {error}."), _id_of(raw))
    except (msgspec.DecodeError, RecursionError) as error:
        return Refusal(RpcError(PARSE_ERROR, f"The frame is not valid JSON: {error}. It begins {_shown(raw)}."))
    if envelope.jsonrpc != _VERSION:
        return _without_version(envelope)
    params = bytes(envelope.params)
    if params and params[:1] not in (b"{", b"["):
        request_id = None if envelope.id is msgspec.UNSET else envelope.id
        return Refusal(_invalid("`params` must be an object or an array."), request_id)
    return Call(envelope.method, envelope.params, envelope.id)


def _without_version(envelope: _Envelope) -> Call | Refusal:
    """The bare form `{"method", "params"}` is taken as well, and answered with the id null."""
    if envelope.jsonrpc is None and envelope.id is msgspec.UNSET and bytes(envelope.params)[:1] == b"{":
        return Call(envelope.method, envelope.params, None)
    return Refusal(
        _invalid('This is not a JSON-RPC 2.0 request: `jsonrpc` must be "2.0".'),
        None if envelope.id is msgspec.UNSET else envelope.id,
    )


def _id_of(raw: bytes) -> RequestId:
    """The id of a request that is not valid, if it has one that is."""
    try:
        return _id_only.decode(raw).id
    except (msgspec.DecodeError, RecursionError):
        return None


def _invalid(message: str) -> RpcError:
    return RpcError(INVALID_REQUEST, message)


def _refused(code: int, message: str) -> Frame:
    return Frame((Refusal(RpcError(code, message)),))


def _shown(raw: bytes) -> str:
    return repr(raw[:_SHOWN_BYTES].decode(errors="replace"))


def _depth_exceeds(raw: bytes, limit: int) -> bool:
    """Whether brackets nest deeper than that. Few frames have so many brackets that they must be looked at."""
    if raw.count(b"[") + raw.count(b"{") <= limit:
        return False
    depth = 0
    in_text = escaped = False
    for byte in raw:
        if in_text:
            in_text = escaped or byte != 0x22
            escaped = byte == 0x5C and not escaped
        elif byte == 0x22:
            in_text = True
        elif byte in b"[{":
            depth += 1
            if depth > limit:
                return True
        elif byte in b"]}":
            depth -= 1
    return False

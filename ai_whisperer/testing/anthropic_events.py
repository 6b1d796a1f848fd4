"""Replies of the model server in the words of Anthropic's messages protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_PIECE_CHARACTERS = 12

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def message_events(reply: Any, *, model: str, number: int) -> list[str]:
    """The data of every event of a whole response; `reply` is a `Reply` of the model server, which is above this."""
    usage = {
        "input_tokens": reply.input_tokens - reply.cached_tokens,
        "cache_read_input_tokens": reply.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": []}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, "usage": usage}}, {"type": "ping"}]
    for index, (block, deltas) in enumerate(_blocks(reply, number)):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    reason = None if reply.omit_finish else reply.finish or ("tool_use" if reply.tool_calls else "end_turn")
    end = {"stop_reason": reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": reply.output_tokens}})
    events.append({"type": "message_stop"})
    data = [json.dumps(event) for event in events]
    if reply.malformed_after_events is not None:
        data.insert(reply.malformed_after_events, reply.malformed_event)
    return data


def framed(data: str) -> str:
    """An event with its name, as the protocol has it."""
    name = json.loads(data)["type"] if data.startswith('{"type": ') and data.endswith("}") else "unknown"
    return f"event: {name}\ndata: {data}\n\n"


def error_body(status: int, message: str, code: str | None) -> dict[str, Any]:
    return {"type": "error", "error": {"type": code or ERROR_TYPES.get(status, "api_error"), "message": message}}


def flattened(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages with each result and each text of a user for itself, as chat completions have them."""
    for message in messages:
        content = message.get("content")
        if message.get("role") != "user" or not isinstance(content, list):
            yield message
            continue
        for block in content:
            if block.get("type") == "tool_result":
                yield {"role": "tool", "content": block.get("content")}
            else:
                yield {"role": "user", "content": block.get("text", "")}


def _blocks(reply: Any, number: int) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if reply.reasoning:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(reply.reasoning)]
        signature = {"type": "signature_delta", "signature": f"signature-{number}"}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signature]
    if reply.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in _pieces(reply.text)]
    for index, call in enumerate(reply.tool_calls):
        block = {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": call.name, "input": {}}
        yield block, [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *_pieces(call.arguments))]


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE_CHARACTERS] for at in range(0, len(text), _PIECE_CHARACTERS))

"""What a tool of an MCP server returned, as a model is shown it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.tools.mcp.binary import Keep, Sieve

_MAX_PARTS = 1_000


def result_of(tool: str, raw: Any, keep: Keep) -> ToolResult:
    """The raw result as text. Pictures, sounds and other binary data are kept and told about, not shown."""
    if not isinstance(raw, Mapping) or not isinstance(raw.get("content", []), list):
        return _result(f"The tool '{tool}' returned something that is not a tool result.", is_error=True)
    parts, sieve = raw.get("content", []), Sieve(keep)
    texts = [_text_of(part, sieve) for part in parts[:_MAX_PARTS]]
    if len(parts) > _MAX_PARTS:
        texts.append(f"[{len(parts) - _MAX_PARTS:,} more parts are not shown]")
    structured = raw.get("structuredContent")
    if structured is not None and not _is_told(structured, parts[:_MAX_PARTS]):
        texts.append(_json(structured, sieve))
    is_error = raw.get("isError") is True
    return _result("\n".join(texts) or ("The tool failed." if is_error else "The tool returned nothing."), is_error)


def _result(content: str, is_error: bool) -> ToolResult:  # noqa: FBT001
    return ToolResult(content=mended(content), is_error=is_error, untrusted=True)


def _text_of(part: Any, sieve: Sieve) -> str:
    if not isinstance(part, Mapping):
        return "[a part that cannot be read]"
    match part.get("type"):
        case "text":
            text = part.get("text")
            return sieve.text(text) if isinstance(text, str) else "[a text part without text]"
        case "image" | "audio" as kind:
            return sieve.told(kind, part.get("data"), part.get("mimeType"))
        case "resource_link":
            return f"[link to {_short(part.get('uri'))}: {_short(part.get('name'))}]"
        case "resource":
            return resource_text(part.get("resource"), sieve)
        case other:
            return f"[a part of the kind {_short(other)}, which cannot be shown]"


def resource_text(resource: Any, sieve: Sieve) -> str:
    """A resource with its address: its text, or what is told of its data."""
    if not isinstance(resource, Mapping):
        return "[a resource that cannot be read]"
    uri = _short(resource.get("uri"))
    text = resource.get("text")
    if isinstance(text, str):
        return f"[resource {uri}]\n{sieve.text(text)}"
    return sieve.told(f"resource {uri}", resource.get("blob"), resource.get("mimeType"))


def _short(value: Any) -> str:
    return str(value)[:200]


def _is_told(structured: Any, parts: list[Any]) -> bool:
    """Whether a text says the same already: servers should repeat there what they return as data."""
    texts = [text for part in parts if isinstance(part, Mapping) and isinstance(text := part.get("text"), str)]
    if isinstance(structured, Mapping) and list(structured.values()) == ["\n".join(texts)]:
        return True
    try:
        return any(msgspec.json.decode(text) == structured for text in texts if text[:1] in ("{", "["))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False


def _json(data: Any, sieve: Sieve) -> str:
    try:
        return msgspec.json.encode(sieve.value(data)).decode()
    except (TypeError, ValueError, RecursionError):
        return "[data that cannot be shown as JSON]"

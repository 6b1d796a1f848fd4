"""What was kept of an answer for its provider, in the form of our own client or in that of the provider library.

The provider library was the only client once, and journals last: what it kept of the reasoning is understood here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

OWN = "own"
"""How what our client keeps is marked."""


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """What our client keeps. `field` and `details` are of chat completions, `blocks` of Anthropic's messages."""

    client: str
    prefix: str
    field: str = ""
    details: list[dict[str, Any]] = []
    blocks: list[dict[str, Any]] = []


class Thought(NamedTuple):
    """A part of reasoning as the provider library kept it."""

    text: str
    id: str
    signature: str


class _Part(msgspec.Struct):
    part_kind: str = ""
    content: Any = None
    id: str | None = None
    signature: str | None = None


class _Metadata(msgspec.Struct):
    prefix: str = ""


class _LibraryKept(msgspec.Struct):
    parts: list[_Part]
    metadata: _Metadata | None = None


_KEPT = msgspec.json.Decoder(Kept)
_LIBRARY = msgspec.json.Decoder(_LibraryKept)


def kept_of(provider: str | None, prefix: str) -> Kept | None:
    """What our client kept of an answer of that prefix; None if it was not ours, or another provider's."""
    if not provider:
        return None
    try:
        kept = _KEPT.decode(provider)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return kept if kept.client == OWN and kept.prefix == prefix else None


def thoughts_of(provider: str | None, prefix: str) -> list[Thought]:
    """The reasoning in what the provider library kept of an answer of that prefix."""
    if not provider:
        return []
    try:
        kept = _LIBRARY.decode(provider)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    if kept.metadata is None or kept.metadata.prefix != prefix:
        return []
    return [
        Thought(part.content if isinstance(part.content, str) else "", part.id or "", part.signature or "")
        for part in kept.parts
        if part.part_kind == "thinking"
    ]

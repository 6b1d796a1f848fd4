"""Text from models and from outside, made fit for a terminal: nothing in it can steer the terminal."""

from __future__ import annotations

import json
import re
from typing import Any

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, all but tab and line end
    "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u206f"  # what turns the direction of text or ends lines unseen
    "\U000e0000-\U000e007f"  # what nobody sees, and models read
    "\ud800-\udfff]"  # halves of characters, which cannot be written
)
_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')
_MAX_CELL = 200


def printable(text: str) -> str:
    """The text with every character that could steer a terminal shown as its escape, such as `\\x1b`."""
    return _STEERING.sub(_escape, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same on one line."""
    return printable(" ".join(text.split()))


def shortened(text: str, *, width: int = _MAX_CELL) -> str:
    """The text on one line, cut where it is too long for a table."""
    line = one_line(text)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def as_json(value: Any) -> str:
    """Plain data as one line of JSON, in characters that every output takes and that steer no terminal."""
    return json.dumps(value)


def readable_json(value: Any) -> str:
    """Plain data as JSON for people, who read their own letters."""
    return printable(json.dumps(value, ensure_ascii=False))


def readable_arguments(arguments: str) -> str:
    """The arguments of a tool call for a person who decides about it: all that is there, and only that.

    They are laid out as JSON if that says the same. It does not if a key is there twice or a number has more digits
    than one remembers; then they are shown as they are.
    """
    try:
        value = json.loads(arguments)
        compact = _SPACE.sub(lambda match: match[1] or "", arguments)
        if compact in (
            json.dumps(value, ensure_ascii=only_ascii, separators=(",", ":")) for only_ascii in (True, False)
        ):
            return printable(json.dumps(value, ensure_ascii=False, indent=2))
    except (ValueError, RecursionError):
        pass
    return printable(arguments)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

"""Text from models and from outside, made fit for a terminal: nothing in it can steer the terminal."""

from __future__ import annotations

import json
import re
from typing import Any

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, all but tab and line end
    "\u2028\u2029"  # what ends lines unseen
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0"  # what nobody sees, and models read
    "\U000e0000-\U000e0fff"
    "\ud800-\udfff"  # halves of characters, which cannot be written
    # Formats: what turns the direction of text, joins, or is not seen.
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]"
)
_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')
_MAX_CELL = 200


def printable(text: str) -> str:
    """The text with every character that steers a terminal or is not seen shown as its escape, such as `\\x1b`."""
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

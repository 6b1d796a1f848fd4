"""Text that can be stored: what comes from people is checked, what comes from models and tools is mended."""

from __future__ import annotations

import json

from msgspec import Struct

from ai_whisperer.errors import InvalidInputError, TooLargeError
from ai_whisperer.late_pattern import late_pattern

_MAX_REASON_BYTES = 10_000
_BREAKS = late_pattern("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
"""Control characters, and all that ends a line: what is one line to one reader must not be two to another."""
NUL = "\0"
_HALVES = late_pattern("[\ud800-\udfff]+")
_TURNS = late_pattern("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
"""What changes the direction of text, so that it is read in another order than it is written in."""


def check_text(what: str, text: str, *, max_bytes: int) -> None:
    """Raise unless the text can be stored and is within the limit."""
    if not isinstance(text, str):
        raise InvalidInputError(f"The {what} must be text, not {type(text).__name__}.")
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"The {what} has a lone surrogate at character {error.start}, which is not text. Remove it."
        ) from error
    if NUL in text:
        raise InvalidInputError(
            f"The {what} has the character NUL at {text.index(NUL)}, which databases do not take for text. Remove it."
        )
    if size > max_bytes:
        raise TooLargeError(
            f"The {what} has {size:,} bytes, at most {max_bytes:,} are allowed; nothing was accepted. "
            "Shorten it or send it in parts."
        )


def one_line(text: str) -> str:
    """The text on one line: a space for line breaks and control characters, nothing for what changes its direction."""
    if text.isprintable():
        return text
    return _BREAKS.sub(" ", _TURNS.sub("", text)).strip()


def mended(text: str) -> str:
    """The text as it can be stored: the halves of a surrogate pair become their character, others and NUL U+FFFD."""
    if NUL in text:
        text = text.replace(NUL, "\ufffd")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # As JSON, whose reader puts pairs together, for a codec calls an error handler for each half.
        return _HALVES.sub(lambda halves: "\ufffd" * len(halves[0]), json.loads(json.dumps(text)))
    return text


class PieceMender(Struct):
    """Mends a text that arrives in pieces: a pair that is split over two of them is one character of the second.

    `held` is half a pair that waits for the other half, if there is one.
    """

    held: str = ""

    def feed(self, piece: str) -> str:
        """The piece as it can be stored, without the first half of a pair at its end: that comes with the next one."""
        if not self.held and piece.isascii() and NUL not in piece:
            return piece
        text = self.held + piece
        self.held = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return mended(text[:-1] if self.held else text)

    def finish(self) -> str:
        """What is left at the end of the text: half a pair, as U+FFFD."""
        held, self.held = self.held, ""
        return mended(held)


def shortened(text: str, max_bytes: int) -> str:
    """The text, cut at the limit with a word about it."""
    if len(text) * 4 <= max_bytes:
        return text
    encoded = text.encode()
    if len(encoded) <= max_bytes:
        return text
    return f"{encoded[:max_bytes].decode(errors='ignore')}\n[cut: {len(encoded):,} bytes in all, {max_bytes:,} shown]"


def fitted(text: str, max_bytes: int) -> str:
    """The text or, if it is too long, as much of it as fits into the limit together with a word about the cut."""
    encoded = text.encode()
    if len(encoded) <= max_bytes:
        return text
    note = f"\n[cut: {len(encoded):,} bytes in all]"
    room = max_bytes - len(note)
    return encoded[: max_bytes if room < 0 else room].decode(errors="ignore") + ("" if room < 0 else note)


def check_reason(reason: str) -> None:
    """Raise unless the text can be kept as a reason."""
    check_text("reason", reason, max_bytes=_MAX_REASON_BYTES)

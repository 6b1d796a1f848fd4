"""Binary data that an MCP server sends as base64: found wherever it stands, kept, and told about.

A model cannot read base64, and it would pay for every character of it. So it is told what the data is, and where it was
put.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ai_whisperer.late_pattern import late_pattern

_MIN_CHARACTERS = 1_024
"""What is shorter, and does not say that it is base64, may be an id or a key: it stays as it is."""
_MAX_TOKEN = 8_192
_TOKEN = late_pattern(r"(?i)token|cursor")
"""What is handed back to the server to get the next page may look like data, but a model has to see it."""
_MIN_LINE = 40
_DIGITS = 32
_STANDARD = late_pattern(r"[A-Za-z0-9+/]+={0,2}")
_FOR_URLS = late_pattern(r"[A-Za-z0-9_-]+={0,2}")
_DATA_URI = late_pattern(
    r"data:([\w.+-]{1,60}/[\w.+-]{1,60})?(?:;[\w=.-]{1,60}){0,3};base64,([A-Za-z0-9+/_-]{64,}={0,2})"
)
_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
_BINARY = late_pattern(r"(?i)(?:image|audio|video)/|application/(?:pdf|zip|gzip|octet-stream)\b")
"""Kinds whose data is binary however short it is. Of any other, a short value may be a word."""
_UNKNOWN = "unknown kind"
_KIND_KEYS = ("mimeType", "mime_type", "contentType")
_DATA_KEYS = ("data", "blob")


class Binary(msgspec.Struct, frozen=True, kw_only=True):
    """Data with its kind, as its server or its first bytes tell it, and its digest."""

    data: bytes
    kind: str
    digest: str

    def __str__(self) -> str:
        return f"{self.kind}, {len(self.data):,} bytes, sha256 {self.digest}"


Keep = Callable[[Binary], str]
"""Keeps the data; returns in words where it is, or why it is nowhere."""


def binary(data: bytes, kind: Any = None) -> Binary:
    """The data as a record."""
    told = str(kind)[:100] if isinstance(kind, str) and kind else None
    known = told or next((each for magic, each in _KINDS if data.startswith(magic)), _UNKNOWN)
    return Binary(data=data, kind=known, digest=hashlib.sha256(data).hexdigest()[:_DIGITS])


def decoded(text: str) -> bytes | None:
    """What the text stands for if it is base64, in either alphabet, also in lines of one length."""
    lines = text.split()
    if len(lines) > 1 and (len({len(line) for line in lines[:-1]}) > 1 or len(lines[0]) < _MIN_LINE):
        return None
    joined = "".join(lines)
    if _STANDARD.fullmatch(joined):
        altchars = None
    elif _FOR_URLS.fullmatch(joined):
        altchars = b"-_"
    else:
        return None
    bare = joined.rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), altchars)
    except (binascii.Error, ValueError):
        return None


class Sieve:
    """Takes binary data out of what a server returned. `keep` is handed each piece."""

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self._found = 0

    def told(self, what: str, text: Any, kind: Any) -> str:
        """What is said in place of data that its server calls binary."""
        data = decoded(text) if isinstance(text, str) else None
        if data is None:
            return f"[{what}: {str(kind or _UNKNOWN)[:100]}, which cannot be read]"
        return self._told(what, binary(data, kind))

    def text(self, text: str) -> str:
        """The text without binary data: if all of it is, if it is JSON with some in it, or has URIs that hold some."""
        return self._json(text) if text[:1] in ("{", "[") else self._string(text)

    def value(self, value: Any) -> Any:
        """The same for data; text stands in it for what is binary. It raises `RecursionError` if it is too deep."""
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if not isinstance(value, Mapping):
            return value
        kind = next((told for key in _KIND_KEYS if isinstance(told := value.get(key), str)), None)
        is_base64 = value.get("encoding") == "base64"
        is_binary = is_base64 or (kind is not None and not kind.startswith("text/"))
        stated = (*_DATA_KEYS, "content") if is_base64 else _DATA_KEYS if is_binary else ()
        least = 0 if is_base64 or _BINARY.match(kind or "") else _MIN_CHARACTERS
        return {key: self._field(key, each, kind, least if key in stated else None) for key, each in value.items()}

    def _field(self, key: str, value: Any, kind: str | None, least: int | None) -> Any:
        """The value of a field; from `least` characters on it is said to be data, None if that is not said."""
        if not isinstance(value, str):
            return self.value(value)
        if least is not None and len(value) >= least and (data := decoded(value)):
            return self._told("data", binary(data, kind))
        if len(value) <= _MAX_TOKEN and _TOKEN.search(key):
            return value
        return self._string(value)

    def _json(self, text: str) -> str:
        before = self._found
        try:
            cleaned = self.value(msgspec.json.decode(text))
            return msgspec.json.encode(cleaned).decode() if self._found > before else text
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self._string(text)

    def _string(self, text: str) -> str:
        if len(text) >= _MIN_CHARACTERS and _looks_like_base64(text) and (data := decoded(text)):
            return self._told("data", binary(data))
        return _DATA_URI.sub(self._in_place, text) if "base64," in text else text

    def _in_place(self, match: re.Match[str]) -> str:
        data = decoded(match[2])
        return match[0] if data is None else self._told("data", binary(data, match[1]))

    def _told(self, what: str, found: Binary) -> str:
        self._found += 1
        return f"[{what}: {found}, {self._keep(found)}]"


def _looks_like_base64(text: str) -> bool:
    """Whether the letters are as mixed as those of data are, or padded: a sequence of genes or of words is not."""
    sample = text[:_MIN_CHARACTERS]
    is_mixed = any(map(str.isupper, sample)) and any(map(str.islower, sample)) and any(map(str.isdigit, sample))
    return is_mixed or text.rstrip().endswith("=")

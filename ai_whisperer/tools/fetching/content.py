"""What a body is: text in some encoding, a page, or something that is not for reading."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from ai_whisperer.domain.record import Record
from ai_whisperer.tools.fetching.html_text import text_of_html

_PAGES = ("text/html", "application/xhtml+xml")
_TEXTS = re.compile(r"text/.+|.+[/+](?:json|xml|yaml|x-yaml|javascript|ecmascript|x-ndjson|toml|csv|x-sh|sql|graphql)")
_CHARSET = re.compile(r""";\s{0,9}charset\s{0,9}=\s{0,9}["']?([a-zA-Z0-9_:.-]{1,40})""", re.IGNORECASE)
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?([a-zA-Z0-9_:.-]{1,40})""", re.IGNORECASE)
_ENCODINGS = re.compile(
    r"utf-?(?:8|16|32).*|ascii|iso8859.*|cp\d+|koi8.*|shift_jis.*|euc_.*|gb.*|big5.*|iso2022.*|mac.*"
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PIECE_BYTES = 32 << 10
_LEGACY = "cp1252"
"""What pages are written in that claim ASCII or Latin-1, or nothing, and are not UTF-8."""


class ContentType(Record, frozen=True, kw_only=True):
    """The type of a body as its header says it; "" if there is none."""

    name: str
    charset: str = ""

    @property
    def is_page(self) -> bool:
        return self.name in _PAGES

    @property
    def is_text(self) -> bool:
        return self.is_page or _TEXTS.fullmatch(self.name) is not None


def content_type(header: str) -> ContentType:
    """The content type that a header states."""
    charset = _CHARSET.search(header[:1_000])
    return ContentType(name=header.partition(";")[0].strip().lower()[:100], charset=charset[1] if charset else "")


def looks_like_text(beginning: bytes) -> bool:
    """Whether a body is text, as far as its beginning tells."""
    if beginning.startswith(tuple(mark for mark, _ in _MARKS)):
        return True
    return b"\0" not in beginning and (beginning.isascii() or _is_utf_8(beginning))


def readable(body: bytes, kind: ContentType, *, url: str) -> str:
    """The text of a body, of a page without its markup. What cannot be decoded is replaced, never refused."""
    text = "".join(_lines_mended(pieces_of(body, _encoding(body, kind))))
    return text_of_html(text, url=url) if kind.is_page else text


def pieces_of(body: bytes, encoding: str) -> Iterator[str]:
    """The body as text, bit by bit: while one is decoded no other thread can run, and bad bytes take long."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for start in range(0, len(body), _PIECE_BYTES):
        yield decoder.decode(body[start : start + _PIECE_BYTES])
    yield decoder.decode(b"", final=True)


def _lines_mended(pieces: Iterable[str]) -> Iterator[str]:
    held = ""
    for piece in pieces:
        whole = held + piece
        held = "\r" if whole.endswith("\r") else ""
        yield whole.removesuffix("\r").replace("\r\n", "\n").replace("\0", "\ufffd")
    yield held


def _encoding(body: bytes, kind: ContentType) -> str:
    """The encoding of a body: by its first bytes, its header, what the page says, or else what it looks like."""
    encoding = next((name for mark, name in _MARKS if body.startswith(mark)), None) or _known(kind.charset)
    if encoding is None and kind.is_page:
        meta = _META.search(body[:2_048])
        encoding = _known(meta[1].decode("ascii")) if meta else None
    if encoding is None:
        encoding = "utf-8" if _is_utf_8(body) else _LEGACY
    return encoding


def _is_utf_8(body: bytes) -> bool:
    """Whether that is UTF-8, perhaps with its last character cut in two."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(body) - 3 and not body[: error.start].isascii()
    return True


def _known(charset: str) -> str | None:
    """The encoding of that name, if it is one that pages are written in: Python has others that do more than decode."""
    try:
        name = codecs.lookup(charset).name
    except LookupError:
        return None
    if name in ("ascii", "iso8859-1"):
        return _LEGACY
    return name if _ENCODINGS.fullmatch(name) else None

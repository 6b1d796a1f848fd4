"""What a file holds: text that a model can read, or a word about what else it is."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterator

from ai_whisperer.errors import ToolError

_VERSION_DIGITS = 16
_LOOKED_AT_BYTES = 8192
PIECE_BYTES = 256 << 10
"""While so much is gone through no other thread can run."""

_KINDS = (
    (b"\xff\xfe\0\0", "text in UTF-32"),
    (b"\0\0\xfe\xff", "text in UTF-32"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive, or a document that is one"),
    (b"\x1f\x8b", "compressed with gzip"),
    (b"BZh", "compressed with bzip2"),
    (b"\xfd7zXZ", "compressed with xz"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "an SQLite database"),
)
"""How files begin whose kind can be told."""


def version_of(data: bytes) -> str:
    """The version of a file with this content: the same content has the same one."""
    return hashlib.sha256(data).hexdigest()[:_VERSION_DIGITS]


def is_binary(head: bytes) -> bool:
    """Whether a file that begins so is no text in UTF-8, as far as its beginning tells."""
    return b"\0" in head[:_LOOKED_AT_BYTES] or _kind_of(head) is not None


def text_of(data: bytes, *, path: str, size: int) -> str:
    """The text; raises `ToolError` that says what the file is instead. `size` is that of the whole file."""
    check_kind(data, path=path, size=size)
    return "".join(_decoded(data, path=path, size=size))


def check_kind(data: bytes, *, path: str, size: int) -> None:
    """Raise `ToolError` if its beginning shows that it is no text."""
    if is_binary(data):
        kind = _kind_of(data) or "binary (it has bytes that are 0)"
        convert = " For instance: iconv -f UTF-16 -t UTF-8." if "UTF-16" in kind else ""
        raise ToolError(
            f"'{path}' is {kind}, {size:,} bytes, and cannot be read as text. Convert a copy to text in UTF-8 with a "
            f"program first, or use another file.{convert}"
        )


def check_text(data: bytes, *, path: str, size: int) -> None:
    """Raise `ToolError` if that is no text, as `text_of` does."""
    check_kind(data, path=path, size=size)
    for _ in _decoded(data, path=path, size=size):
        pass


def lines_in(data: bytes) -> int:
    """How many line ends there are."""
    return sum(data.count(b"\n", start, start + PIECE_BYTES) for start in range(0, len(data), PIECE_BYTES))


def _decoded(data: bytes, *, path: str, size: int) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), PIECE_BYTES):
        end = start + PIECE_BYTES
        held = len(decoder.getstate()[0])
        try:
            yield decoder.decode(data[start:end], final=end >= len(data))
        except UnicodeDecodeError as error:
            at = start - held + error.start
            raise ToolError(
                f"'{path}', {size:,} bytes, is not text in UTF-8: byte 0x{data[at]:02X} in line "
                f"{lines_in(data[:at]) + 1} does not fit. It may be in Latin-1 or another old encoding. Convert a copy "
                "to UTF-8 with a program first, for instance iconv -f LATIN1 -t UTF-8, or use another file."
            ) from error


def _kind_of(data: bytes) -> str | None:
    return next((kind for start, kind in _KINDS if data.startswith(start)), None)

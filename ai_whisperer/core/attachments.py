"""What may be given with a task or a message: which kind of file it is, and what it takes a model to read it."""

from __future__ import annotations

import hashlib
import mimetypes
import re
import struct
from collections.abc import Sequence

from ai_whisperer.core.text import one_line
from ai_whisperer.domain.attachments import Attachment, AttachmentRecord, InputFile
from ai_whisperer.errors import InvalidInputError, TooLargeError

MAX_PARTS = 20
MAX_SIDE = 8_000
"""So many pixels an image may be wide or high: providers refuse larger ones."""
PDF = "application/pdf"
PLAIN = "text/plain"
_ANY = "application/octet-stream"
_MAX_NAME = 200
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""The images that models take, and that the page shows."""
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,99}/[a-z0-9][a-z0-9!#$&^_.+-]{0,99}")
_IMAGE_TOKENS, _PIXELS_FOR_A_TOKEN = 1_600, 750
_BYTES_FOR_A_TOKEN, _PDF_BYTES_FOR_A_TOKEN = 4, 20
_DIGEST = re.compile(r"[0-9a-f]{64}")


def attachment_of(file: InputFile, *, max_bytes: int) -> Attachment:
    """What the file is; raises `InvalidInputError` that says what is wrong with it."""
    name = one_line(file.name).replace("/", "_").replace("\\", "_")[:_MAX_NAME].strip() or "file"
    size = len(file.data)
    if not size:
        raise InvalidInputError(f"'{name}' is empty; nothing was sent. Leave it out.")
    if size > max_bytes:
        raise TooLargeError(
            f"'{name}' has {size:,} bytes, at most {max_bytes:,} are allowed (max_attachment_bytes); nothing was sent. "
            "Make it smaller, or put it where the agent can read it."
        )
    media_type = _checked_type(file, name)
    return Attachment(
        digest=hashlib.sha256(file.data).hexdigest(),
        media_type=media_type,
        size=size,
        name=name,
        tokens=_tokens(file.data, media_type, name),
    )


def check_count(count: int) -> None:
    if count > MAX_PARTS:
        raise TooLargeError(f"There are {count} files, at most {MAX_PARTS} are allowed at once; nothing was sent.")


def check_digest(digest: str) -> None:
    """Raise unless it can name the content of a file."""
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise InvalidInputError("A digest has 64 digits from 0 to f, as the parts of tasks and messages have it.")


def described(part: Attachment) -> str:
    """The file in a few words, for models that are not shown it and for people."""
    kind = "image" if part.is_image else "file"
    return f"{kind} '{part.name}' ({part.media_type}, {part.size:,} bytes)"


def is_text(part: Attachment) -> bool:
    """Whether a model can read it as it stands."""
    return part.media_type.startswith("text/") or part.media_type in ("application/json", "application/xml")


def records_of(parts: Sequence[Attachment], *, session_id: str, owner: str, now: float) -> list[AttachmentRecord]:
    """Where these were given."""
    return [
        AttachmentRecord(
            session_id=session_id,
            owner=owner,
            number=number,
            digest=part.digest,
            media_type=part.media_type,
            size=part.size,
            name=part.name,
            created_at=now,
        )
        for number, part in enumerate(parts, 1)
    ]


def _checked_type(file: InputFile, name: str) -> str:
    """The media type; raises if the content is something else than it says."""
    found = _type_of(file.data)
    stated = file.media_type.partition(";")[0].strip().lower()
    if not stated:
        guessed = mimetypes.guess_type(name)[0]
        if found is not None:
            return found
        if _is_utf8(file.data):
            return guessed if guessed is not None and guessed.startswith("text/") else _text_type(guessed)
        return guessed if guessed is not None and not guessed.startswith(("text/", "image/")) else _ANY
    if not _MEDIA_TYPE.fullmatch(stated):
        raise InvalidInputError(
            f"{stated[:100]!r} of '{name}' is no media type, such as 'image/png'; nothing was sent."
        )
    claims = stated in IMAGES or stated == PDF
    if (claims or (found is not None and stated.startswith("image/"))) and stated != found:
        really = f"it is {found}" if found is not None else "its content is something else"
        raise InvalidInputError(
            f"'{name}' is said to be {stated}, but {really}; nothing was sent. Correct its media type, or leave it out."
        )
    if stated.startswith("text/") and not _is_utf8(file.data):
        raise InvalidInputError(
            f"'{name}' is said to be {stated}, but is no text in UTF-8; nothing was sent. Convert it, or give another "
            "media type."
        )
    return stated


def _text_type(guessed: str | None) -> str:
    return guessed if guessed in ("application/json", "application/xml") else PLAIN


def _type_of(data: bytes) -> str | None:
    """What the content shows itself to be, among what models take."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith(b"%PDF-"):
        return PDF
    return next((kind for start, kind in _IMAGES.items() if data.startswith(start)), None)


def _is_utf8(data: bytes) -> bool:
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _tokens(data: bytes, media_type: str, name: str) -> int:
    if media_type == PDF:
        return len(data) // _PDF_BYTES_FOR_A_TOKEN + 100
    if media_type.startswith("text/") or media_type in ("application/json", "application/xml"):
        return len(data) // _BYTES_FOR_A_TOKEN + 1
    if media_type not in IMAGES:
        return 50
    sides = _sides(data, media_type)
    if sides is None:
        return _IMAGE_TOKENS
    if max(sides) > MAX_SIDE:
        raise TooLargeError(
            f"'{name}' is {sides[0]:,} pixels wide and {sides[1]:,} high, at most {MAX_SIDE:,} are allowed; nothing "
            "was sent. Make it smaller."
        )
    return min(sides[0] * sides[1] // _PIXELS_FOR_A_TOKEN + 85, _IMAGE_TOKENS)


def _sides(data: bytes, media_type: str) -> tuple[int, int] | None:
    """Width and height, where the beginning tells them."""
    try:
        match media_type:
            case "image/png":
                return struct.unpack(">II", data[16:24])
            case "image/gif":
                return struct.unpack("<HH", data[6:10])
            case "image/jpeg":
                return _jpeg_sides(data)
    except struct.error:
        return None
    return None


def _jpeg_sides(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4])
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            high, wide = struct.unpack(">HH", data[at + 5 : at + 9])
            return wide, high
        at += 2 + length
    return None

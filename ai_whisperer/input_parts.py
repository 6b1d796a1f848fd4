"""What a program gives with a task or a message, read: paths, contents, or both."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ai_whisperer.core.attachments import check_count
from ai_whisperer.domain.attachments import InputFile
from ai_whisperer.errors import InvalidInputError, TooLargeError

_MOST_READ_BYTES = 64 << 20
"""More of a file is never read: it is too large for any limit that makes sense here."""


def files_of(parts: Any) -> list[InputFile]:
    """The files that were given; raises `InvalidInputError` that says which one cannot be read. This reads the disk."""
    if isinstance(parts, str | bytes | Path | InputFile) or not isinstance(parts, Iterable):
        raise InvalidInputError("parts must be a list, even if it is only one: of paths, bytes or InputFile.")
    given = list(parts)
    check_count(len(given))
    return [_file_of(part, number) for number, part in enumerate(given, 1)]


def _file_of(part: Any, number: int) -> InputFile:
    match part:
        case InputFile():
            if not isinstance(part.data, bytes) or not isinstance(part.name, str):
                raise InvalidInputError(f"Part {number}: an InputFile has bytes as its data, and a text as its name.")
            if not isinstance(part.media_type, str):
                raise InvalidInputError(f"Part {number}: a media type is a text such as 'image/png'.")
            return part
        case bytes():
            return InputFile(data=part, name=f"file {number}")
        case str() | Path():
            return _read(Path(part))
    raise InvalidInputError(
        f"Part {number} is {type(part).__name__}. Give the path of a file, its content as bytes, or an InputFile."
    )


def _read(path: Path) -> InputFile:
    try:
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "is not there" if not path.exists() else "is no plain file"
            raise InvalidInputError(f"The file '{path}' {what}; nothing was sent. Correct its path.")
        with path.open("rb") as file:
            data = file.read(_MOST_READ_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"The file '{path}' cannot be read: {error}. Nothing was sent.") from error
    if len(data) > _MOST_READ_BYTES:
        raise TooLargeError(
            f"The file '{path}' has more than {_MOST_READ_BYTES:,} bytes, whatever the limits say; nothing was sent. "
            "Put it where the agent can read it."
        )
    return InputFile(data=data, name=path.name)

"""Images and files that people give to agents, beside the words of a task or a message."""

from __future__ import annotations

from pathlib import Path

from ai_whisperer.domain.record import Record


class InputFile(Record, frozen=True, kw_only=True):
    """An image or a file as it is given. Without a media type it is told from the content and the name."""

    data: bytes
    name: str = ""
    media_type: str = ""


InputPart = str | Path | bytes | InputFile
"""What can be given with a task or a message: the path of a file, its content, or both with a name and a type."""


class Attachment(Record, frozen=True, kw_only=True):
    """An image or a file of a task or a message. `digest` is that of its content, which is kept once.

    `tokens` is about what a model needs to read it.
    """

    digest: str
    media_type: str
    size: int
    name: str
    tokens: int = 0

    @property
    def is_image(self) -> bool:
        return self.media_type.startswith("image/")


class AttachmentRecord(Record, frozen=True, kw_only=True):
    """Where an image or a file was given: `owner` is `task:…` or `message:…`, `number` its place there, from 1."""

    session_id: str
    owner: str
    number: int
    digest: str
    media_type: str
    size: int
    name: str
    created_at: float


class AttachmentContent(Record, frozen=True, kw_only=True):
    """An image or a file with its content."""

    digest: str
    media_type: str
    size: int
    name: str
    data: bytes

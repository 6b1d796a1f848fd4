"""Images and files that come with tasks and messages: kept before anything names them, and given out again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import cast

from ai_whisperer.core.attachments import attachment_of, check_digest
from ai_whisperer.core.paging import checked_limit
from ai_whisperer.domain.attachments import Attachment, AttachmentContent, AttachmentRecord, InputPart
from ai_whisperer.errors import UnknownFileError
from ai_whisperer.input_parts import files_of
from ai_whisperer.runtime.api.reading import SessionReader
from ai_whisperer.store.attachments import AttachmentFiles
from ai_whisperer.tools.function import CancelSignal, in_thread


class SessionAttachments(SessionReader):
    """The part of the session manager that keeps and shows images and files."""

    async def list_attachments(self, *, limit: int = 100) -> list[AttachmentRecord]:
        return await self._session.kernel.reads.attachments(limit=checked_limit(limit))

    async def get_attachment(self, digest: str) -> AttachmentContent:
        check_digest(digest)
        known = await self._session.kernel.reads.attachment(digest)
        if known is None:
            raise UnknownFileError(f"Nothing with the digest {digest} was given in this session.")
        data = await in_thread(self._attachment_files.read, {"digest": digest}, CancelSignal())
        if data is None:
            raise UnknownFileError(f"The content of '{known.name}' is no longer there, or was changed on disk.")
        return AttachmentContent(
            digest=digest, media_type=known.media_type, size=known.size, name=known.name, data=data
        )

    async def _keep_parts(self, parts: Iterable[InputPart], *, max_bytes: int) -> tuple[Attachment, ...] | None:
        """Have the images and files on disk, before anything is decided that names them; None if there are none."""
        values = {"files": self._attachment_files, "parts": parts, "max_bytes": max_bytes}
        kept = cast("tuple[Attachment, ...]", await in_thread(_kept, values, CancelSignal()))
        return kept or None

    @property
    def _attaching(self) -> asyncio.Lock:
        """Whoever keeps a content has this until something names it, so that it is not taken for what nobody needs."""
        return self._session.supplies.folders.attaching

    @property
    def _attachment_files(self) -> AttachmentFiles:
        return self._session.supplies.folders.attachments


def _kept(files: AttachmentFiles, parts: Iterable[InputPart], max_bytes: int) -> tuple[Attachment, ...]:
    given = files_of(parts)
    attachments = [attachment_of(file, max_bytes=max_bytes) for file in given]  # all of them, before any is written
    for attachment, file in zip(attachments, given, strict=True):
        files.keep(attachment.digest, file.data)
    return tuple(attachments)

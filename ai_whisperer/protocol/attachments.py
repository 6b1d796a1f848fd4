"""The methods `attachment.*`: images and files that came with tasks and messages."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.attachments import AttachmentContent, AttachmentRecord, InputFile
from ai_whisperer.protocol.method import Effect, InSession, Method, Params


class FilePart(Params, frozen=True, kw_only=True):
    """An image or a file that goes along: `data` is its content in base64."""

    data: bytes
    name: str = ""
    media_type: str = ""

    @property
    def file(self) -> InputFile:
        return InputFile(data=self.data, name=self.name, media_type=self.media_type)


class AttachmentList(msgspec.Struct, frozen=True):
    """Where images and files were given, the newest first."""

    attachments: list[AttachmentRecord]


class ListAttachments(InSession, frozen=True, kw_only=True):
    limit: int = 100


class GetAttachment(InSession, frozen=True, kw_only=True):
    digest: str


LIST_ATTACHMENTS = Method("attachment.list", ListAttachments, AttachmentList, "list_attachments", Effect.READS)
GET_ATTACHMENT = Method("attachment.get", GetAttachment, AttachmentContent, "get_attachment", Effect.READS)

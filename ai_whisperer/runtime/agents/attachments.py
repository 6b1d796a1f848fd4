"""The contents of images and files for a model request: those that the model is to be shown, read from disk."""

from __future__ import annotations

from collections.abc import Sequence

from ai_whisperer.core.attachments import IMAGES, PDF, is_text
from ai_whisperer.domain.attachments import Attachment
from ai_whisperer.domain.conversation import Turn, UserTurn
from ai_whisperer.domain.definition import TAKES_IMAGES
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.store.attachments import AttachmentFiles
from ai_whisperer.tools.function import CancelSignal, in_thread

_MOST_BYTES = 16 << 20
"""So much goes along with a request; of older images and files the model is told that they were there."""


async def contents_for(agent: Owner, turns: Sequence[Turn]) -> dict[str, bytes]:
    """What of the conversation's images and files is sent, by digest. One that has vanished is left out."""
    wanted = _wanted(turns, takes_images=agent.record.definition.settings.get(TAKES_IMAGES) is not False)
    if not wanted:
        return {}
    values = {"files": agent.parts.supplies.folders.attachments, "digests": wanted}
    found: dict[str, bytes] = await in_thread(_read, values, CancelSignal())
    return found


def _wanted(turns: Sequence[Turn], *, takes_images: bool) -> list[str]:
    """The newest, as far as there is room."""
    wanted: dict[str, None] = {}
    left = _MOST_BYTES
    for turn in reversed(turns):
        if type(turn) is not UserTurn or not turn.parts:
            continue
        for part in turn.parts:
            if part.digest not in wanted and part.size <= left and _is_shown(part, takes_images=takes_images):
                left -= part.size
                wanted[part.digest] = None
    return list(wanted)


def _is_shown(part: Attachment, *, takes_images: bool) -> bool:
    return (takes_images and part.media_type in (*IMAGES, PDF)) or is_text(part)


def _read(files: AttachmentFiles, digests: Sequence[str]) -> dict[str, bytes]:
    found = ((digest, files.read(digest)) for digest in digests)
    return {digest: data for digest, data in found if data is not None}

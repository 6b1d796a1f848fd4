"""Images and files in a request: what goes along as such, and what the model is told of the rest in words."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import NamedTuple

from ai_whisperer.core import marks
from ai_whisperer.core.attachments import described, is_text
from ai_whisperer.domain.attachments import Attachment
from ai_whisperer.domain.conversation import UserTurn
from ai_whisperer.models.base import ModelRequest


class Sent(NamedTuple):
    """An image or a document that goes along with its content."""

    part: Attachment
    data: bytes

    @property
    def base64(self) -> str:
        return base64.b64encode(self.data).decode()

    @property
    def url(self) -> str:
        return f"data:{self.part.media_type};base64,{self.base64}"


def parts_of(request: ModelRequest, turn: UserTurn) -> Iterator[Sent | str]:
    """What came with the turn, in order: texts are told as they are, between marks, as others may have written them."""
    for part in turn.parts:
        data = request.attachments.get(part.digest)
        if data is None:
            yield f"[Attached, but not shown to you: {described(part)}.]"
        elif is_text(part):
            yield f"[{described(part)}:]\n{marks.untrusted(part.name, data.decode(errors='replace'))}"
        else:
            yield Sent(part, data)

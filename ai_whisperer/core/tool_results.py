"""What models are told of a call that failed."""

from __future__ import annotations

from ai_whisperer.core.marks import harmless
from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.secrets import redacted


def failed(told: str) -> ToolResult:
    """What anybody's code said when it failed, which may quote the key or the address that it used."""
    return ToolResult(content=harmless(redacted(mended(told))), is_error=True)

"""Errors as they are recorded, and as models are told of them."""

from __future__ import annotations

from ai_whisperer.core.marks import harmless
from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.tasks import Failure
from ai_whisperer.errors import WhispererError
from ai_whisperer.secrets import redacted


def failure_from(error: BaseException) -> Failure:
    """The stable code and the message of an error, without secrets; one that is none of ours is an internal one."""
    if isinstance(error, WhispererError):
        return Failure(code=error.code, message=redacted(mended(error.message)))
    return Failure(code="internal", message=redacted(mended(f"An internal error: {type(error).__name__}: {error}")))


def failed(told: str) -> ToolResult:
    """What anybody's code said when it failed, which may quote the key or the address that it used."""
    return ToolResult(content=harmless(redacted(mended(told))), is_error=True)

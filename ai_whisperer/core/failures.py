"""Errors as they are recorded."""

from __future__ import annotations

from ai_whisperer.core.text import mended
from ai_whisperer.domain.tasks import Failure
from ai_whisperer.errors import WhispererError
from ai_whisperer.secrets import redacted


def failure_from(error: BaseException) -> Failure:
    """The stable code and the message of an error, without secrets; one that is none of ours is an internal one."""
    if isinstance(error, WhispererError):
        return Failure(code=error.code, message=redacted(mended(error.message)))
    return Failure(code="internal", message=redacted(mended(f"An internal error: {type(error).__name__}: {error}")))

"""Errors as they are recorded."""

from __future__ import annotations

from ai_whisperer.core.text import mended
from ai_whisperer.errors import WhispererError
from ai_whisperer.records import Failure


def failure_from(error: BaseException) -> Failure:
    """The stable code and the message of an error; an error that is none of ours is an internal one."""
    if isinstance(error, WhispererError):
        return Failure(code=error.code, message=mended(error.message))
    return Failure(code="internal", message=mended(f"An internal error: {type(error).__name__}: {error}"))

"""On whose behalf the API of a session is called: the cause of what is decided there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ai_whisperer.domain.mail import USER

_BY_USER = f"user:{USER}"

_cause: ContextVar[str] = ContextVar("cause", default=_BY_USER)


def by_caller() -> str:
    """The cause of what the calling person or program does: `user:user`, or the request that it came with."""
    return _cause.get()


def forget_caller() -> None:
    """What happens in this context from now on is done on nobody's request."""
    _cause.set(_BY_USER)


@contextmanager
def called_by(cause: str) -> Iterator[None]:
    """Calls within are told in the log as caused by this."""
    token = _cause.set(cause)
    try:
        yield
    finally:
        _cause.reset(token)

"""Why a server does not do what it is there for."""

from __future__ import annotations

import asyncio

from ai_whisperer.errors import WhispererError
from ai_whisperer.store.base import Store

STALLED_SECONDS = 10.0
"""A commit that takes longer than this counts as one that never ends."""


def trouble_of(store: Store, failed: asyncio.Future[BaseException]) -> str | None:
    """What is wrong, in words; None if nothing is. `failed` is done when nothing goes on."""
    if failed.done():
        return _told(failed.result())
    health = store.health
    if health.failure is not None:
        return _told(health.failure)
    if health.commit_seconds > STALLED_SECONDS:
        return health.warning or (
            f"The disk does not answer: a commit has been under way for {health.commit_seconds:.0f} s."
        )
    return None


def _told(failure: BaseException) -> str:
    return failure.message if isinstance(failure, WhispererError) else repr(failure)

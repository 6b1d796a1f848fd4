"""What may be a lock, and what its holder is told."""

from __future__ import annotations

from ai_whisperer.coordination import LockRecord
from ai_whisperer.core.text import check_text
from ai_whisperer.errors import InvalidInputError

_LONGEST_LEASE_SECONDS = 7 * 86_400.0
_MAX_NAME_BYTES = 200


def check_lock(name: str, ttl_seconds: float) -> None:
    """Raise `InvalidInputError` unless a lock of this name can be had for so long."""
    check_text("lock name", name, max_bytes=_MAX_NAME_BYTES)
    if not name.strip():
        raise InvalidInputError("The lock needs a name. Use that of the thing you want for yourself.")
    if not 0 < ttl_seconds <= _LONGEST_LEASE_SECONDS:
        raise InvalidInputError(f"ttl_seconds must be more than 0 and at most 7 days, not {ttl_seconds}.")


def in_words(lock: LockRecord, ttl_seconds: float) -> str:
    """What its holder is told about a lock that it has from now on for so long."""
    return (
        f"You hold lock '{lock.name}' with token {lock.token} for {ttl_seconds:g} seconds. Release it as soon as you "
        "are done; it is released when your task ends."
    )

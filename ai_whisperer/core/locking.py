"""What may be a lock, what its holder is told, and what became of leases that are over."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime

from ai_whisperer.core.marks import named, quoted
from ai_whisperer.core.text import check_text
from ai_whisperer.domain.locks import LeaseEnd, LeaseEnding, LockRecord
from ai_whisperer.domain.mail import USER
from ai_whisperer.errors import InvalidInputError

LONGEST_GUARD_SECONDS = 30.0
"""So long the end of a lease waits for a guarded block."""

_LONGEST_LEASE_SECONDS = 7 * 86_400.0
_LONGEST_WAIT_SECONDS = 7 * 86_400.0
_LARGEST_TOKEN = 2**63 - 1
_MAX_NAME_BYTES = 200
_REMEMBERED_ENDS = 1000


def check_lock(name: str, ttl_seconds: float) -> None:
    """Raise `InvalidInputError` unless a lock of this name can be had for so long."""
    check_lock_name(name)
    if not _is_number(ttl_seconds) or not 0 < ttl_seconds <= _LONGEST_LEASE_SECONDS:
        raise InvalidInputError(f"ttl_seconds must be more than 0 and at most 7 days, not {_shown(ttl_seconds)}.")


def check_lock_name(name: str) -> None:
    """Raise `InvalidInputError` unless a lock can be called so."""
    check_text("lock name", name, max_bytes=_MAX_NAME_BYTES)
    if not name.strip():
        raise InvalidInputError("The lock needs a name. Use that of the thing you want for yourself.")
    if not name.isprintable():
        raise InvalidInputError(f"{name[:50]!r} cannot be the name of a lock: use printable characters, in one line.")


def check_token(token: int) -> None:
    """Raise `InvalidInputError` unless a lock can have such a token."""
    if isinstance(token, bool) or not isinstance(token, int) or not 0 < token <= _LARGEST_TOKEN:
        raise InvalidInputError("The token must be the whole number above 0 that came with the lock.")


def checked_wait(wait_seconds: float) -> float:
    """How long a person or program waits for a lock; 0: not at all."""
    if not _is_number(wait_seconds) or not 0 <= wait_seconds <= _LONGEST_WAIT_SECONDS:
        raise InvalidInputError(f"wait_seconds must be from 0 to 7 days, not {_shown(wait_seconds)}.")
    return wait_seconds


def checked_holder(holder: str | None) -> str:
    """What a person or program that wants a lock is called: `user`, unless it says something else."""
    if holder is None:
        return USER
    check_text("holder", holder, max_bytes=_MAX_NAME_BYTES)
    if not holder.strip():
        raise InvalidInputError("The holder needs a name by which others see who has the lock, or none at all.")
    if not holder.isprintable():
        raise InvalidInputError(
            f"{holder[:50]!r} cannot be the name of a holder: use printable characters, in one line."
        )
    return holder


def in_words(lock: LockRecord, ttl_seconds: float) -> str:
    """What a task is told about a lock that it has from now on for so long."""
    return (
        f"You hold lock '{lock.name}' with token {lock.token} for {ttl_seconds:g} seconds. Give write_file and "
        f"edit_file lock={lock.name!r} and token={lock.token}: then they write only while it is yours. "
        "Acquire it again to keep it for longer. Release it as soon as you are done, in a later answer than the "
        "writes; it is released when your task ends."
    )


def is_over(lock: LockRecord, *, now: float) -> bool:
    """Whether the time of the lease has passed, even if nobody has seen to it yet."""
    return lock.expires_at is not None and lock.expires_at <= now


def ran_out(lock: LockRecord) -> LeaseEnd:
    """How a lease ends whose time is over, though nobody has seen to it yet."""
    return LeaseEnd(
        name=lock.name,
        token=lock.token,
        holder=lock.holder or "",
        task_id=lock.task_id,
        ending=LeaseEnding.EXPIRED,
        at=lock.expires_at or 0.0,
    )


class EndedLeases:
    """How the last leases of a session ended, for those who come back with an old token. Not kept over restarts."""

    def __init__(self) -> None:
        self._ends: deque[LeaseEnd] = deque(maxlen=_REMEMBERED_ENDS)

    def add(self, end: LeaseEnd) -> None:
        self._ends.append(end)

    def of_token(self, name: str, token: int) -> LeaseEnd | None:
        return next((end for end in reversed(self._ends) if (end.name, end.token) == (name, token)), None)

    def of_task(self, name: str, task_id: str) -> LeaseEnd | None:
        """How the task's last lease of this lock ended."""
        return next((end for end in reversed(self._ends) if (end.name, end.task_id) == (name, task_id)), None)


def not_held_by_task(name: str, *, held: Iterable[str], ended: LeaseEnd | None, lock: LockRecord | None) -> str:
    """Why a task cannot do something with a lock."""
    why = "it never did, or not since this process began" if ended is None else end_in_words(ended)
    return f"This task does not hold lock '{name}': {why}. {_now(lock)} This task holds: {', '.join(held) or 'none'}."


def other_token(name: str, token: int, lock: LockRecord, ended: LeaseEnd | None) -> str:
    """Why a task that holds the lock cannot use this token."""
    why = "that was never its token, or not since this process began" if ended is None else end_in_words(ended)
    return (
        f"This task holds lock '{name}' with token {lock.token}, not with token {token}: {why}. What you learned under "
        f"another token may have changed since: look again, then use token {lock.token}."
    )


def not_current(name: str, token: int, *, lock: LockRecord | None, ended: LeaseEnd | None) -> str:
    """Why a token is good for nothing."""
    why = "it never was, or not since this process began" if ended is None else end_in_words(ended)
    return f"Lock '{name}' is not held with token {token}: {why}. {_now(lock)}"


def end_in_words(end: LeaseEnd) -> str:
    at = datetime.fromtimestamp(end.at, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    match end.ending:
        case LeaseEnding.RELEASED:
            return f"{named(end.holder)} released it, with token {end.token}, at {at}"
        case LeaseEnding.EXPIRED:
            return f"the lease of {named(end.holder)}, with token {end.token}, ran out at {at}"
        case LeaseEnding.BROKEN:
            why = f" ({quoted(end.reason)})" if end.reason else ""
            return f"{named(end.by)} broke the lease of {named(end.holder)}, with token {end.token}, at {at}{why}"


def _now(lock: LockRecord | None) -> str:
    if lock is None:
        return "Nobody holds it now."
    return f"{named(lock.holder or '')} holds it now with token {lock.token}."


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)[:50]

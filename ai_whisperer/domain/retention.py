"""What is kept, what is erased, and how much room it takes."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.record import Record


class Horizon(Record, frozen=True, kw_only=True):
    """From where on a session is kept: the log from `first_seq` on, and of what has ended that since `before`.

    It was set at `at`, and `is_done` when nothing is left of what was before.
    """

    session_id: str
    first_seq: int
    before: float
    at: float
    is_done: bool = False


class Erasure(Record, frozen=True, kw_only=True):
    """Deleted conversations, of which something may be left: those of an agent up to the task of that arrival.

    `thread_id` is one of its threads, or empty for all of them. Without an `agent_id` it is a room, up to the message
    of that number. Up to the number `told_until` the log no longer tells what was in them either, and their mails no
    longer have content.
    """

    session_id: str
    agent_id: str
    thread_id: str
    last: int
    at: float
    told_until: int = 0


class ThreadStanding(Record, frozen=True, kw_only=True):
    """A thread of an agent, as the decision whether it can be erased needs it.

    `ended_at` is when the last of its tasks ended, None if one of them has not; `tasks` counts those that still have
    content. `has_dead_letter` if a person has yet to look at one of them; `is_erased` if nothing is left of it.
    """

    agent_id: str
    thread_id: str
    last_at: float
    ended_at: float | None
    tasks: int
    has_dead_letter: bool
    is_erased: bool


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """What was erased, or would be: how many tasks, mails, events and messages no longer have content.

    `notifications` counts those that the log has no longer.
    """

    threads: int = 0
    tasks: int = 0
    mails: int = 0
    events: int = 0
    messages: int = 0
    notifications: int = 0

    def __add__(self, other: Erased) -> Erased:
        return Erased(**{name: getattr(self, name) + getattr(other, name) for name in Erased.__struct_fields__})

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in Erased.__struct_fields__)


class PruneReport(msgspec.Struct, frozen=True, kw_only=True):
    """What pruning a session did, or would do: what ended before `before` is erased; the log begins at `first_seq`."""

    session_id: str
    before: float
    first_seq: int
    erased: Erased
    dry_run: bool = False


class StoredPart(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of records takes in a session: how many rows there are, and about how many bytes."""

    name: str
    rows: int
    size_bytes: int


class StorageReport(msgspec.Struct, frozen=True, kw_only=True):
    """How large a session is, by what is in it, and how large the database of all sessions.

    `free_bytes` are in the file and hold nothing. `first_seq` is where the log begins.
    """

    session_id: str
    first_seq: int
    last_seq: int
    parts: tuple[StoredPart, ...]
    size_bytes: int
    database_bytes: int
    free_bytes: int

"""Hears what is committed in a session before anybody else does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notification import Notification
from ai_whisperer.store.base import FailureListener, Listener, Store

_MOST = 1_000_000


async def hear(store: Store, *, session_id: str, take: Callable[[Iterable[Note | Notification]], None]) -> None:
    """Let `take` have what the store tells of the session already, and from now on all that is committed."""
    take(await store.notifications(session_id, after=0, limit=_MOST))
    listen = store.listen

    def heard(session_id: str, on_committed: Listener, on_failure: FailureListener) -> None:
        def both(notes: Sequence[Note], sizes: Sequence[int]) -> None:
            take(notes)
            on_committed(notes, sizes)

        listen(session_id, both, on_failure)

    store.listen = heard  # type: ignore[method-assign]


def params_of(note: Note | Notification) -> dict[str, object]:
    """What it tells."""
    return note.told.params() if isinstance(note, Note) else note.params

"""Conversations that are gone: known in memory at once, marked in the store, and then erased there in slices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ai_whisperer.domain.retention import Erased, Erasure
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.log import NotificationBus
from ai_whisperer.runtime.session.reads import Reads
from ai_whisperer.store.base import Spared, Store


class Erasing:
    """What of one session is erased. A read under way may still bring it: ask `has_erased` about what it brings.

    `spared` says which mails are in the hands of tasks now.
    """

    def __init__(self, session_id: str, store: Store, reads: Reads, log: NotificationBus) -> None:
        self._session_id = session_id
        self._store = store
        self._log = log
        self._reads = reads
        self._marked: dict[tuple[str, str], int] = {}
        self._turn = asyncio.Lock()
        self.spared: Spared = lambda _: False

    def restore(self, erasures: Iterable[Erasure]) -> None:
        """Know what was marked before, and of which something may be left."""
        self._marked.update(((each.agent_id, each.thread_id), each.last) for each in erasures)

    def mark(self, decision: Decision, agent_id: str, thread_id: str, *, last: int, told_until: int = 0) -> None:
        """Let a conversation be gone, as part of a decision; see `Erasure` for what is meant."""
        self._marked[agent_id, thread_id] = last
        if agent_id:
            decision.unit.delete_compacted(self._session_id, agent_id, thread_id)
        decision.unit.put_erasure(
            Erasure(
                session_id=self._session_id,
                agent_id=agent_id,
                thread_id=thread_id,
                last=last,
                at=decision.at,
                told_until=told_until,
            )
        )

    def has_erased(self, agent_id: str, thread_id: str, arrival: int) -> bool:
        """Whether a task of this arrival is of a conversation that is gone, though its record may still be whole."""
        return any(arrival <= self._marked.get((agent_id, each), 0) for each in (thread_id, ""))

    @property
    def deleted_agents(self) -> list[str]:
        """The agents that were deleted and of which something may be left."""
        return [agent_id for agent_id, thread_id in self._marked if agent_id and not thread_id]

    async def run(self) -> Erased:
        """Erase what is marked. If it is ended before that is done, it goes on when this is called again."""
        async with self._turn:
            marked = dict(self._marked)
            erased = await self._store.erase(self._session_id, spared=self.spared)
        self._log.forget()

        def forget() -> None:
            for key, last in marked.items():
                if self._marked.get(key) == last:
                    del self._marked[key]

        self._reads.under_way.when_seen(forget)  # a read may have begun before the last of it went
        return erased

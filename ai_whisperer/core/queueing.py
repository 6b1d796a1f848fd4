"""The order in which an agent takes its work: priority, then arrival; one loop at a time in each thread."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from ai_whisperer.records import MailRecord, TaskRecord

Work = TaskRecord | MailRecord
"""What waits in a queue: a task, or a mail that becomes a task when its turn comes."""

_Key = tuple[int, int, str]


class WorkQueue:
    """An agent's waiting work. Taking an item makes its thread busy until the thread is released."""

    __slots__ = ("_busy", "_heap", "_items", "_parked")

    def __init__(self) -> None:
        self._heap: list[_Key] = []
        self._items: dict[str, Work] = {}
        self._busy: set[str] | None = None
        self._parked: dict[str, list[_Key]] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Work]:
        """The waiting items in no order."""
        return iter(self._items.values())

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._items

    def push(self, item: Work) -> None:
        if item.id in self._items:
            raise ValueError(f"{item.id} is already in the queue")
        self._items[item.id] = item
        heapq.heappush(self._heap, (item.priority.rank, item.arrival, item.id))

    def remove(self, item_id: str) -> Work | None:
        """Take an item out of its turn; None if it does not wait here."""
        return self._items.pop(item_id, None)

    def occupy(self, thread_id: str) -> None:
        """Mark a thread busy whose loop goes on from before, without taking an item."""
        if self._busy is None:
            self._busy = set()
        self._busy.add(thread_id)

    def take(self) -> Work | None:
        """Return the first item whose thread is free and make that thread busy; None if there is none."""
        while self._heap:
            key = heapq.heappop(self._heap)
            item = self._items.get(key[2])
            if item is None or item.arrival != key[1]:
                continue
            if self._busy and item.thread_id in self._busy:
                if self._parked is None:
                    self._parked = {}
                self._parked.setdefault(item.thread_id, []).append(key)
                continue
            del self._items[key[2]]
            self.occupy(item.thread_id)
            return item
        return None

    def release(self, thread_id: str) -> None:
        """The loop of this thread ended: the next item of the thread may be taken."""
        if self._busy is not None:
            self._busy.discard(thread_id)
        if self._parked is not None:
            for key in self._parked.pop(thread_id, ()):
                heapq.heappush(self._heap, key)

    def in_order(self) -> list[Work]:
        """The waiting items in the order of priority and arrival."""
        return sorted(self._items.values(), key=lambda item: (item.priority.rank, item.arrival))

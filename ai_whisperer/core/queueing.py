"""The order in which an agent takes its work: priority, then arrival; one loop at a time in each thread."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.tasks import RANKS, Priority, TaskRecord

Work = TaskRecord | MailRecord
"""What waits in a queue: a task, or a mail that becomes a task when its turn comes."""

_Name = tuple[str, str]
_Key = tuple[int, int, _Name]
_Sender = tuple[str, Priority]

_TASK, _MAIL = "task", "mail"


class WorkQueue:
    """An agent's waiting work. Taking an item makes its thread busy until the thread is released.

    Work of a busy thread is passed by work of others, except by mail of the same sender and priority as a mail that
    waits there: one sender's mails never overtake. A mail whose sender waits does not wait for its thread.
    """

    __slots__ = ("_busy", "_heap", "_held", "_items", "_parked")

    def __init__(self) -> None:
        self._heap: list[_Key] = []
        self._items: dict[_Name, Work] = {}
        self._busy: set[str] | None = None
        self._parked: dict[str, list[_Key]] | None = None
        self._held: dict[_Sender, str] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def has_room(self, most: int) -> bool:
        """Whether fewer than so many wait."""
        return len(self._items) < most

    def __iter__(self) -> Iterator[Work]:
        """The waiting items in no order."""
        return iter(self._items.values())

    def push(self, item: Work) -> None:
        self._put(item, RANKS[item.priority])

    def push_first(self, item: Work) -> None:
        """Put an item before all others, urgent ones too."""
        self._put(item, -1)

    def has_task(self, task_id: str) -> bool:
        return (_TASK, task_id) in self._items

    def find_task(self, task_id: str) -> TaskRecord | None:
        """The task, if it waits here."""
        item = self._items.get((_TASK, task_id))
        return item if isinstance(item, TaskRecord) else None

    def remove_task(self, task_id: str) -> TaskRecord | None:
        """Take a task out of its turn; None if it does not wait here."""
        item = self._items.pop((_TASK, task_id), None)
        return item if isinstance(item, TaskRecord) else None

    def remove_mail(self, mail_id: str) -> None:
        """Take a mail out of its turn, if it waits here."""
        self._items.pop((_MAIL, mail_id), None)

    def occupy(self, thread_id: str) -> None:
        """Mark a thread busy whose loop goes on from before, without taking an item."""
        if self._busy is None:
            self._busy = set()
        self._busy.add(thread_id)

    def has_free(self) -> bool:
        """Whether `take` would return an item."""
        return self._first() is not None

    def take(self) -> Work | None:
        """Return the first item whose thread is free and make that thread busy; None if there is none."""
        item = self._first()
        if item is not None:
            heapq.heappop(self._heap)
            del self._items[_name(item)]
            self.occupy(_thread(item))
        return item

    def release(self, thread_id: str) -> None:
        """The loop of this thread ended: what waited for it may be taken."""
        if self._busy is not None:
            self._busy.discard(thread_id)
        if self._parked is not None:
            for key in self._parked.pop(thread_id, ()):
                heapq.heappush(self._heap, key)
        if self._held:
            self._held = {sender: thread for sender, thread in self._held.items() if thread != thread_id}

    def _put(self, item: Work, rank: int) -> None:
        name = _name(item)
        if name in self._items:
            raise ValueError(f"{item.id} is already in the queue")
        self._items[name] = item
        heapq.heappush(self._heap, (rank, item.arrival, name))

    def _first(self) -> Work | None:
        """Bring the first item that is free to the top of the heap, parking those that are not."""
        while self._heap:
            key = self._heap[0]
            item = self._items.get(key[2])
            if item is not None and item.arrival == key[1]:
                thread_id = self._thread_in_the_way(item)
                if thread_id is None:
                    return item
                self._park(thread_id, item, key)
            heapq.heappop(self._heap)
        return None

    def _thread_in_the_way(self, item: Work) -> str | None:
        thread_id = _thread(item)
        if type(item) is MailRecord and item.awaited:
            return None
        if self._held and isinstance(item, MailRecord):
            held_by = self._held.get((item.sender, item.priority))
            if held_by is not None:  # also if its own thread is busy: when this one is free, that is looked at again
                return held_by
        return thread_id if self._busy and thread_id in self._busy else None

    def _park(self, thread_id: str, item: Work, key: _Key) -> None:
        if self._parked is None:
            self._parked = {}
        self._parked.setdefault(thread_id, []).append(key)
        if isinstance(item, MailRecord):
            if self._held is None:
                self._held = {}
            self._held.setdefault((item.sender, item.priority), thread_id)


def _thread(item: Work) -> str:
    return item.work_thread_id if type(item) is MailRecord else item.thread_id


def _name(item: Work) -> _Name:
    return (_MAIL if type(item) is MailRecord else _TASK, item.id)

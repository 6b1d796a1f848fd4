"""Erasing: what is marked goes in slices, each a unit of its own, between which others are served.

A mark (`horizon`, `erasure`) is durable before anything goes, and goes last. Readers see what is marked as gone. So a
process that dies in between leaves a session of which all that was marked is gone, and the rest of the work for later.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from types import ModuleType
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from ai_whisperer.core.agent_log import agents_of
from ai_whisperer.core.retention import may_erase_mail
from ai_whisperer.domain.mail import MailState
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.retention import Erased, Erasure, Horizon, StoredPart, ThreadStanding
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.store import tables
from ai_whisperer.store.base import Spared, Unit
from ai_whisperer.store.groups import GroupCommit
from ai_whisperer.store.tables import Kind, Row, Table

SLICE_ROWS = 100
"""So many rows go at once: their contents may be long, and each page of them is touched."""
PAGE_ROWS = 300
"""So many rows are looked at before others have their turn."""

PARTS: Final[dict[str, tuple[Table[Any], ...]]] = {
    "log": (tables.NOTIFICATION,),
    "tasks": (tables.TASK, tables.THREAD, tables.COMPACTED),
    "steps": (tables.STEP,),
    "mail": (tables.MAIL,),
    "messages": (tables.MESSAGE, tables.ROOM),
    "events": (tables.EVENT,),
    "approvals": (tables.APPROVAL,),
    "questions": (tables.QUESTION,),
    "attachments": (tables.ATTACHMENT,),
    "agents": (tables.AGENT, tables.AGENT_TOTAL, tables.LINK, tables.SCHEDULE),
}
"""By what people call it: the tables that hold it."""

_T = TypeVar("_T")


class StoreRetention:
    """The part of the store that lets go. See `Store` for the contract."""

    _groups: GroupCommit
    _queries: ModuleType
    _retention: ModuleType
    _read_notification: Callable[[Row], Notification]

    @abstractmethod
    async def _all(self, sql: str, bindings: Row, convert: Callable[[Row], _T]) -> list[_T]: ...

    @abstractmethod
    async def _give_back(self) -> None: ...

    async def horizon(self, session_id: str) -> Horizon | None:
        found = await self._all(self._retention.HORIZON, (session_id,), tables.HORIZON.read)
        return found[0] if found else None

    async def erasures(self, session_id: str) -> list[Erasure]:
        return await self._all(self._queries.ERASURES, (session_id,), tables.ERASURE.read)

    async def first_since(self, session_id: str, before: float) -> int:
        ((low, high),) = await self._all(
            self._retention.LOG_BOUNDS, (session_id,), lambda row: (row[0] or 1, (row[1] or 0) + 1)
        )
        while low < high:  # the times of a log never fall
            middle = (low + high) // 2
            ((seq, at),) = await self._all(
                self._retention.NEXT_NOTIFICATION, (session_id, middle), lambda row: (row[0], row[1])
            )
            if at < before:
                low = min(seq + 1, high)
            else:
                high = middle
        return int(low)

    async def thread_standings(
        self, session_id: str, *, before: float, after: tuple[str, str], limit: int
    ) -> list[ThreadStanding]:
        return await self._all(self._retention.THREAD_STANDINGS, (session_id, *after, limit, before), _standing_from)

    async def erasable(self, horizon: Horizon) -> Erased:
        session_id, before = horizon.session_id, horizon.before
        mails = [1 async for row in self._mails(session_id) if _is_past(row, before)]
        events = [1 async for row in self._events(session_id, before) if row[3]]
        messages = [1 async for row in self._messages(session_id) if row[3] and row[2] < before]
        notes = await self._notes_below(horizon)
        return Erased(mails=len(mails), events=len(events), messages=len(messages), notifications=notes)

    async def _notes_below(self, horizon: Horizon) -> int:
        """How many notifications there are before those that are kept: their numbers have no gaps."""
        ((first,),) = await self._all(self._retention.FIRST_NOTIFICATION, (horizon.session_id,), tuple)
        return max(horizon.first_seq - int(first or horizon.first_seq), 0)

    async def erase(self, session_id: str, *, spared: Spared) -> Erased:
        horizon, erasures = await self.horizon(session_id), await self.erasures(session_id)
        if horizon is not None and horizon.is_done:
            horizon = None
        if horizon is None and not erasures:
            return Erased()
        deleted = [each for each in erasures if each.told_until]
        await self._erase_told(deleted)
        erased = await self._erase_tasks(erasures)
        erased += await self._erase_mails(session_id, horizon, deleted, spared)
        erased += await self._erase_messages(session_id, horizon, deleted)
        if horizon is not None:
            erased += await self._erase_before(horizon)
        unit = Unit()
        for erasure in deleted:
            unit.delete_erasure(erasure)
            if len(unit) >= SLICE_ROWS:
                unit = await self._submitted(unit)
        await self._submitted(unit)
        await self._give_back()
        return erased

    async def aged_sessions(self, before: float) -> list[str]:
        return await self._all(self._retention.AGED_SESSIONS, (before,), lambda row: str(row[0]))

    async def stored_parts(self, session_id: str) -> list[StoredPart]:
        parts = []
        for name, tables_of_part in self._retention.sizes().items():
            rows = size = 0
            for sql, key in tables_of_part:
                async for row in self._pages(sql, (session_id,), key, key_of=lambda row: row[1:]):
                    rows, size = rows + 1, size + row[0]
            parts.append(StoredPart(name=name, rows=rows, size_bytes=size))
        return parts

    async def _pages(
        self, sql: str, first: Row, key: Row, *, last: Row = (), key_of: Callable[[Row], Row]
    ) -> AsyncIterator[Row]:
        """The rows that the query finds, page by page; between them others have their turn."""
        while True:
            page = await self._all(sql, (*first, *key, *last, PAGE_ROWS), tuple)
            for row in page:
                yield row
            if len(page) < PAGE_ROWS:
                return
            key = key_of(page[-1])
            await asyncio.sleep(0)

    def _mails(self, session_id: str) -> AsyncIterator[Row]:
        return self._pages(self._retention.MAILS_AFTER, (session_id,), ("", -1), key_of=lambda row: row[:2])

    def _events(self, session_id: str, before: float) -> AsyncIterator[Row]:
        first, key_of = (session_id,), lambda row: row[:2]
        return self._pages(self._retention.EVENTS_AFTER, first, (-1.0, -1), last=(before,), key_of=key_of)

    def _messages(self, session_id: str) -> AsyncIterator[Row]:
        return self._pages(self._retention.MESSAGES_AFTER, (session_id,), ("", -1), key_of=lambda row: row[:2])

    async def _erase_tasks(self, erasures: Iterable[Erasure]) -> Erased:
        """Steps first, the task when none of them is left. A mark that was only for tasks goes with the last."""
        unit, threads, tasks = Unit(), 0, 0
        for erasure in erasures:
            async for task_id, steps, _, _ in self._tasks_left(erasure):
                for _ in range(0, steps, SLICE_ROWS):
                    unit.delete_steps(erasure.session_id, task_id, limit=SLICE_ROWS)
                    if steps > SLICE_ROWS // 4:
                        unit = await self._submitted(unit)
                unit.erase_task(erasure.session_id, task_id, at=erasure.at)
                tasks += 1
                if len(unit) >= SLICE_ROWS:
                    unit = await self._submitted(unit)
            threads += bool(erasure.agent_id)
            if not erasure.told_until:
                unit.delete_erasure(erasure)
                if len(unit) >= SLICE_ROWS:
                    unit = await self._submitted(unit)
        await self._submitted(unit)
        return Erased(threads=threads, tasks=tasks)

    def _tasks_left(self, erasure: Erasure) -> AsyncIterator[Row]:
        """The tasks that are still to be erased: their ids, how many steps each has, and their keys."""
        queries = self._retention
        sql = queries.TASKS_LEFT_OF_THREAD if erasure.thread_id else queries.TASKS_LEFT_OF_AGENT
        return self._pages(sql, _key(erasure), (-1, -1), key_of=lambda row: row[2:])

    async def _erase_mails(
        self, session_id: str, horizon: Horizon | None, deleted: Collection[Erasure], spared: Spared
    ) -> Erased:
        if horizon is None and not deleted:
            return Erased()
        unit, count = Unit(), 0
        async for row in self._mails(session_id):
            is_past = horizon is not None and _is_past(row, horizon.before)
            if (is_past or any(_is_mail_of(each, row) for each in deleted)) and not spared(row[2]):
                unit.erase_mail(session_id, row[2], at=_time_of(horizon, deleted))
                count += 1
                if len(unit) >= SLICE_ROWS:
                    unit = await self._submitted(unit)
        await self._submitted(unit)
        return Erased(mails=count)

    async def _erase_messages(self, session_id: str, horizon: Horizon | None, deleted: Collection[Erasure]) -> Erased:
        rooms = {each.thread_id: each.last for each in deleted if not each.agent_id}
        if horizon is None and not rooms:
            return Erased()
        unit, count = Unit(), 0
        async for room_id, number, created_at, is_left, message_id in self._messages(session_id):
            is_past = horizon is not None and created_at < horizon.before
            if is_left and (is_past or number <= rooms.get(room_id, 0)):
                at = _time_of(horizon, deleted)
                unit.erase_message(session_id, room_id, number, message_id=message_id, at=at)
                count += 1
                if len(unit) >= SLICE_ROWS:
                    unit = await self._submitted(unit)
        await self._submitted(unit)
        return Erased(messages=count)

    async def _erase_before(self, horizon: Horizon) -> Erased:
        """Events and the log before the horizon, and then the mark that there is something to do."""
        session_id, unit, events = horizon.session_id, Unit(), 0
        async for row in self._events(session_id, horizon.before):
            if row[3]:
                unit.erase_event(session_id, row[2], at=horizon.at)
                events += 1
                if len(unit) >= SLICE_ROWS:
                    unit = await self._submitted(unit)
        notes = await self._notes_below(horizon)
        for _ in range(0, notes, PAGE_ROWS):
            unit.delete_notifications(session_id, below=horizon.first_seq, limit=PAGE_ROWS)
            unit = await self._submitted(unit)
        unit.put_horizon(replace(horizon, is_done=True))
        await self._submitted(unit)
        return Erased(events=events, notifications=notes)

    async def _erase_told(self, deleted: Collection[Erasure]) -> None:
        """Let the log no longer tell what was in these: the numbers stay, the entries say nothing."""
        for erasure in deleted:
            ids = frozenset(await self._all(self._retention.IDS_OF_THREAD, _key(erasure), lambda row: str(row[0])))
            after, unit = 0, Unit()
            while after < erasure.told_until:
                page = await self._all(
                    self._queries.NOTIFICATIONS_AFTER, (erasure.session_id, after, PAGE_ROWS), self._read_notification
                )
                for note in page:
                    if note.seq <= erasure.told_until and _tells_of(note, erasure, ids):
                        unit.erase_notification(erasure.session_id, note.seq)
                unit = await self._submitted(unit)
                if len(page) < PAGE_ROWS:
                    break
                after = page[-1].seq
                await asyncio.sleep(0)

    async def _submitted(self, unit: Unit) -> Unit:
        """Have this slice committed; returns a new one."""
        if unit:
            await self._groups.submit(unit)
        return Unit()


def _standing_from(row: Row) -> ThreadStanding:
    agent_id, thread_id, last_at, ended_at, tasks, dead_letters, is_erased = row
    return ThreadStanding(
        agent_id=agent_id,
        thread_id=thread_id,
        last_at=last_at,
        ended_at=ended_at,
        tasks=tasks,
        has_dead_letter=dead_letters > 0,
        is_erased=bool(is_erased),
    )


def _key(erasure: Erasure) -> Row:
    return erasure.session_id, erasure.agent_id, erasure.thread_id, erasure.last


def _is_past(mail: Row, before: float) -> bool:
    _, _, _, recipient, state, created_at, _, is_left, task_state = mail
    return bool(is_left) and may_erase_mail(
        state=MailState(state),
        recipient=recipient,
        created_at=created_at,
        before=before,
        task_state=None if task_state is None else TaskState(task_state),
    )


def _is_mail_of(erasure: Erasure, mail: Row) -> bool:
    """Whether the mail was sent or received in what is deleted, and nobody has it before them."""
    sender, _, _, recipient, state, _, thread_id, is_left, _ = mail
    if not is_left or erasure.agent_id not in (sender, recipient) or state in ("queued", "delivered"):
        return False
    return not erasure.thread_id or thread_id == erasure.thread_id


def _tells_of(note: Notification, erasure: Erasure, task_ids: Collection[str]) -> bool:
    params: dict[str, Any] = note.params
    if not erasure.agent_id:
        return bool(params.get("roomId") == erasure.thread_id)
    if not erasure.thread_id:
        return erasure.agent_id in agents_of(note)
    if params.get("taskId") in task_ids:
        return True
    return params.get("threadId") == erasure.thread_id and erasure.agent_id in agents_of(note)


def _time_of(horizon: Horizon | None, deleted: Collection[Erasure]) -> float:
    """When what goes now was erased, as it is kept."""
    return max((each.at for each in deleted), default=0.0) or (0.0 if horizon is None else horizon.at)


def first_key(table: Table[Any]) -> tuple[str | int, ...]:
    """A key before all others of a session."""
    by_name = {column.name: column for column in table.columns}
    return tuple(-1 if by_name[name].kind is Kind.INTEGER else "" for name in table.key[1:])

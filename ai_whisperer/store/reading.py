"""Reading a store, the half without a dialect: which query answers what, with which values, and what is made of rows.

The other half brings the queries, in modules of its own, and runs them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import accumulate
from types import ModuleType
from typing import Protocol, TypeVar

import msgspec

from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.domain.attachments import AttachmentRecord
from ai_whisperer.domain.compactions import CompactedThread
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.questions import QuestionRecord, QuestionState
from ai_whisperer.domain.rooms import MessageRecord
from ai_whisperer.domain.sessions import IdKind, SessionRecord, SessionSummary
from ai_whisperer.domain.snapshot import InboxMail
from ai_whisperer.domain.tasks import StepRecord, TaskRecord, ThreadSummary
from ai_whisperer.store import readers, tables
from ai_whisperer.store.base import SessionSnapshot
from ai_whisperer.store.tables import Row

_LAST_CHARACTER = "\U0010ffff"

_T = TypeVar("_T")


class Read(Protocol):
    """Runs a query, and makes something of each row; raises a `StoreError`."""

    async def __call__(self, sql: str, bindings: Row, convert: Callable[[Row], _T]) -> list[_T]: ...


class StoreReads:
    """The part of the store that reads. See `Store` for the contract."""

    _queries: ModuleType
    """The queries by name; all dialects take the same values in the same order."""
    _read_notification: Callable[[Row], Notification]

    @abstractmethod
    async def _all(self, sql: str, bindings: Row, convert: Callable[[Row], _T]) -> list[_T]:
        """See `Read`."""

    @abstractmethod
    async def _at_one_moment(self, reading: Callable[[Read], Awaitable[_T]]) -> _T:
        """What this reads is of one moment, whatever is committed meanwhile. It may be done again if it fails."""

    async def _one(self, sql: str, bindings: Row, convert: Callable[[Row], _T]) -> _T | None:
        found = await self._all(sql, bindings, convert)
        return found[0] if found else None

    async def load(self, session_id: str) -> SessionSnapshot:
        return await self._at_one_moment(partial(self._loaded, session_id))

    async def _loaded(self, session_id: str, read: Read) -> SessionSnapshot:
        key, queries = (session_id,), self._queries
        links = await read(queries.LINKS, key, tables.LINK.read)
        last_mails = await read(queries.LAST_MAILS, key, tuple)
        tasks = await read(queries.OPEN_TASKS, key, tables.TASK.read)
        waits = await read(queries.WAITS, key, tables.WAIT.read)
        totals = await read(queries.AGENT_TOTALS, key, tables.AGENT_TOTAL.read)
        arrivals = [arrival for _, _, arrival in last_mails]
        arrivals += [*(task.arrival for task in tasks), *(wait.arrival for wait in waits)]
        arrivals += await read(queries.LAST_ARRIVALS, key, lambda row: row[0] or 0)
        return SessionSnapshot(
            agents=tuple(await read(queries.AGENTS, key, readers.agent_reader())),
            tasks=tuple(tasks),
            mails=tuple(await read(queries.OPEN_MAIL, key, tables.MAIL.read)),
            timers=tuple(await read(queries.TIMERS, key, tables.TIMER.read)),
            waits=tuple(waits),
            locks=tuple(await read(queries.LOCKS, key, tables.LOCK.read)),
            approvals=tuple(await read(queries.OPEN_APPROVALS, key, tables.APPROVAL.read)),
            questions=tuple(await read(queries.OPEN_QUESTIONS, key, tables.QUESTION.read)),
            schedules=tuple(await read(queries.SCHEDULES, key, tables.SCHEDULE.read)),
            rooms=tuple(await read(queries.ROOMS, key, tables.ROOM.read)),
            mails_received=readers.mails_received(links),
            mail_sequences={sender: sequence for sender, sequence, _ in last_mails},
            totals={each.agent_id: each for each in totals},
            rooms_last_at=dict(await read(queries.ROOMS_LAST_AT, key, lambda row: (row[0], row[1]))),
            links=tuple(links),
            dead_tasks=dict(await read(queries.DEAD_TASK_COUNTS, key, lambda row: (row[0], int(row[1])))),
            dead_mails=(await read(queries.DEAD_MAIL_COUNT, key, lambda row: int(row[0])))[0],
            last_arrival=max(arrivals, default=0),
            last_seq=(await read(queries.LAST_SEQ, key, lambda row: int(row[0])))[0],
            last_at=next(iter(await read(queries.LAST_AT, key, lambda row: float(row[0]))), 0.0),
            erasures=tuple(await read(queries.ERASURES, key, tables.ERASURE.read)),
            has_marks=bool(await read(queries.HAS_MARKS, key, bool)),
            first_seq=next(iter(await read(queries.FIRST_SEQ, key, lambda row: int(row[0]))), 1),
            fork=next(iter(await read(queries.FORK, key, tables.FORK.read)), None),
        )

    async def session(self, session_id: str) -> SessionRecord | None:
        return await self._one(self._queries.SESSION, (session_id,), tables.SESSION.read)

    async def sessions(self, owner: str, *, after: tuple[float, str] | None = None, limit: int) -> list[SessionSummary]:
        if after is None:
            return await self._all(self._queries.SESSIONS, (owner, limit), readers.summary_from)
        return await self._all(self._queries.SESSIONS_AFTER, (owner, *after, limit), readers.summary_from)

    async def limits(self, session_id: str) -> SessionLimits:
        return await self._one(self._queries.LIMITS, (session_id,), tables.LIMITS.read) or SessionLimits()

    async def agents_in(self, session_id: str) -> int:
        return (await self._all(self._queries.AGENTS_IN_SESSION, (session_id,), lambda row: int(row[0])))[0]

    async def unlisted_sessions(self) -> list[str]:
        return await self._all(self._queries.UNLISTED_SESSIONS, (), lambda row: str(row[0]))

    async def sessions_with_work(self) -> list[str]:
        return await self._all(self._queries.SESSIONS_WITH_WORK, (), lambda row: str(row[0]))

    async def task(self, session_id: str, task_id: str) -> TaskRecord | None:
        return await self._one(self._queries.TASK, (session_id, task_id), tables.TASK.read)

    async def tasks(self, session_id: str, *, limit: int) -> list[TaskRecord]:
        return await self._all(self._queries.TASKS, (session_id, limit), tables.TASK.read)

    async def tasks_of_agent(self, session_id: str, agent_id: str, *, limit: int) -> list[TaskRecord]:
        return await self._all(self._queries.TASKS_OF_AGENT, (session_id, agent_id, limit), tables.TASK.read)

    async def tasks_of_thread(
        self, session_id: str, agent_id: str, thread_id: str, *, arrival: int = 0, began_at: float = 0.0
    ) -> list[TaskRecord]:
        bindings = (session_id, agent_id, thread_id, arrival, began_at)
        return await self._all(self._queries.TASKS_OF_THREAD, bindings, tables.TASK.read)

    async def compacted_thread(self, session_id: str, agent_id: str, thread_id: str) -> CompactedThread | None:
        return await self._one(self._queries.COMPACTED_THREAD, (session_id, agent_id, thread_id), tables.COMPACTED.read)

    async def tasks_of_tree(self, session_id: str, root_id: str) -> list[TaskRecord]:
        return await self._all(self._queries.TASKS_OF_TREE, (session_id, root_id), tables.TASK.read)

    async def ids_of_tree(self, session_id: str, root_id: str) -> list[str]:
        return await self._all(self._queries.IDS_OF_TREE, (session_id, root_id), lambda row: str(row[0]))

    async def failures_since(self, session_id: str, since: float) -> list[tuple[str, str, float]]:
        return await self._all(
            self._queries.FAILURES_SINCE, (session_id, since), lambda row: (row[0], row[1] or "", row[2])
        )

    async def threads_of_agent(self, session_id: str, agent_id: str) -> list[ThreadSummary]:
        return await self._all(
            self._queries.THREADS_OF_AGENT,
            (session_id, agent_id),
            lambda row: ThreadSummary(id=row[0], tasks=row[1], first_at=row[2], last_at=row[3]),
        )

    async def has_thread(self, session_id: str, agent_id: str, thread_id: str) -> bool:
        return bool(await self._all(self._queries.THREAD_OF_AGENT, (session_id, agent_id, thread_id), bool))

    async def latest_threads(self, session_id: str, agent_id: str, *, limit: int) -> list[str]:
        return await self._all(self._queries.LATEST_THREADS, (session_id, agent_id, limit), lambda row: str(row[0]))

    async def dead_tasks(self, session_id: str) -> list[TaskRecord]:
        return await self._all(self._queries.DEAD_TASKS, (session_id,), tables.TASK.read)

    async def steps(self, session_id: str, task_id: str, *, after: int = 0) -> list[StepRecord]:
        return await self._all(self._queries.STEPS, (session_id, task_id, after), tables.STEP.read)

    async def open_steps(self, session_id: str) -> dict[str, list[StepRecord]]:
        return await self._by_task(self._queries.OPEN_STEPS, (session_id,))

    async def steps_of_thread(
        self, session_id: str, agent_id: str, thread_id: str, *, arrival: int = 0, began_at: float = 0.0
    ) -> dict[str, list[StepRecord]]:
        return await self._by_task(self._queries.STEPS_OF_THREAD, (session_id, agent_id, thread_id, arrival, began_at))

    async def _by_task(self, sql: str, bindings: Row) -> dict[str, list[StepRecord]]:
        found: dict[str, list[StepRecord]] = {}
        for step in await self._all(sql, bindings, tables.STEP.read):
            found.setdefault(step.task_id, []).append(step)
        return found

    async def mail(self, session_id: str, mail_id: str) -> MailRecord | None:
        return await self._one(self._queries.MAIL, (session_id, mail_id), tables.MAIL.read)

    async def mailbox(self, session_id: str, recipient: str, *, limit: int) -> list[MailRecord]:
        return await self._all(self._queries.MAILBOX, (session_id, recipient, limit), tables.MAIL.read)

    async def inbox(self, session_id: str) -> list[InboxMail]:
        return await self._all(self._queries.INBOX, (session_id,), readers.inbox_from)

    async def sent_mail(self, session_id: str, sender: str, *, limit: int) -> list[MailRecord]:
        return await self._all(self._queries.SENT_MAIL, (session_id, sender, limit), tables.MAIL.read)

    async def dead_mail(self, session_id: str) -> list[MailRecord]:
        return await self._all(self._queries.DEAD_MAIL, (session_id,), tables.MAIL.read)

    async def ids_beginning(self, session_id: str, kind: IdKind, beginning: str, *, limit: int) -> list[str]:
        bindings = (session_id, beginning, f"{beginning}{_LAST_CHARACTER}", limit)
        return await self._all(self._queries.IDS_BEGINNING[kind], bindings, lambda row: str(row[0]))

    async def approval(self, session_id: str, approval_id: str) -> ApprovalRecord | None:
        return await self._one(self._queries.APPROVAL, (session_id, approval_id), tables.APPROVAL.read)

    async def approvals(self, session_id: str, *, state: ApprovalState | None, limit: int) -> list[ApprovalRecord]:
        return await self._all(self._queries.APPROVALS, (session_id, state, limit), tables.APPROVAL.read)

    async def question(self, session_id: str, question_id: str) -> QuestionRecord | None:
        return await self._one(self._queries.QUESTION, (session_id, question_id), tables.QUESTION.read)

    async def questions(self, session_id: str, *, state: QuestionState | None, limit: int) -> list[QuestionRecord]:
        return await self._all(self._queries.QUESTIONS, (session_id, state, limit), tables.QUESTION.read)

    async def event(self, session_id: str, event_id: str) -> EventRecord | None:
        return await self._one(self._queries.EVENT, (session_id, event_id), tables.EVENT.read)

    async def events(self, session_id: str, *, limit: int) -> list[EventRecord]:
        return await self._all(self._queries.EVENTS, (session_id, limit), tables.EVENT.read)

    async def message(self, session_id: str, message_id: str) -> MessageRecord | None:
        return await self._one(self._queries.MESSAGE, (session_id, message_id), tables.MESSAGE.read)

    async def messages(self, session_id: str, room_id: str, *, after: int, limit: int) -> list[MessageRecord]:
        return await self._all(self._queries.MESSAGES_AFTER, (session_id, room_id, after, limit), tables.MESSAGE.read)

    async def attachments(self, session_id: str, *, limit: int) -> list[AttachmentRecord]:
        return await self._all(self._queries.ATTACHMENTS, (session_id, limit), tables.ATTACHMENT.read)

    async def attachment(self, session_id: str, digest: str) -> AttachmentRecord | None:
        return await self._one(self._queries.ATTACHMENT, (session_id, digest), tables.ATTACHMENT.read)

    async def attachment_digests(self, session_id: str) -> list[str]:
        return await self._all(self._queries.ATTACHMENT_DIGESTS, (session_id,), lambda row: str(row[0]))

    async def notifications(
        self, session_id: str, *, after: int, limit: int, max_bytes: int | None = None
    ) -> list[Notification]:
        most = limit if max_bytes is None else await self._notes_within(session_id, after, limit, max_bytes)
        return await self._all(self._queries.NOTIFICATIONS_AFTER, (session_id, after, most), self._read_notification)

    async def notifications_naming(
        self, session_id: str, agent_id: str, *, after: int, before: int, limit: int
    ) -> list[Notification]:
        bindings = (session_id, after, before, *_texts_of(agent_id), limit)
        return await self._all(self._queries.NOTIFICATIONS_NAMING, bindings, self._read_notification)

    async def last_notifications_naming(
        self, session_id: str, agent_id: str, *, after: int, before: int, limit: int
    ) -> list[Notification]:
        bindings = (session_id, after, before, *_texts_of(agent_id), limit)
        return await self._all(self._queries.LAST_NOTIFICATIONS_NAMING, bindings, self._read_notification)

    async def _notes_within(self, session_id: str, after: int, limit: int, max_bytes: int) -> int:
        """How many of the notifications together take so many bytes."""
        sizes = await self._all(
            self._queries.NOTIFICATION_SIZES_AFTER, (session_id, after, limit), lambda row: int(row[0])
        )
        return max(sum(end <= max_bytes for end in accumulate(sizes)), 1)


def _texts_of(agent_id: str) -> tuple[bytes, str]:
    """The id as it stands in what is packed, and in JSON."""
    return msgspec.msgpack.encode(agent_id), f'"{agent_id}"'

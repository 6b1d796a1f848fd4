"""The SQLite store: a file for one process, or a database in memory for tests."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import accumulate
from pathlib import Path
from typing import Literal, TypeVar

import apsw
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
from ai_whisperer.errors import StoreCorruptError
from ai_whisperer.store import tables
from ai_whisperer.store.base import FailureListener, Listener, SessionSnapshot, StoreHealth, Unit
from ai_whisperer.store.folder_lock import lock_folder
from ai_whisperer.store.groups import GroupCommit
from ai_whisperer.store.layout import keep_out_of_git
from ai_whisperer.store.packing import Packing
from ai_whisperer.store.sqlite import opening, queries, readers
from ai_whisperer.store.sqlite.acknowledged import Acknowledged
from ai_whisperer.store.sqlite.committers import Committer, InlineCommitter, ThreadCommitter
from ai_whisperer.store.sqlite.custody import Custody
from ai_whisperer.store.sqlite.deletion import SqliteDeletion
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from ai_whisperer.store.sqlite.importing import SqliteImport
from ai_whisperer.store.sqlite.retention import SqliteRetention
from ai_whisperer.store.sqlite.writing import SqliteWriter
from ai_whisperer.store.tables import Row

_LAST_CHARACTER = "\U0010ffff"

_T = TypeVar("_T")


class SqliteStore(SqliteDeletion, SqliteImport, SqliteRetention):
    """See `Store` for the contract. Made by `open` or `in_memory`."""

    def __init__(
        self,
        writing: apsw.Connection,
        reading: apsw.Connection,
        committer: Committer,
        *,
        path: Path,
        custody: Custody | None = None,
    ) -> None:
        self._writing = writing
        self._reading = reading
        self._committer = committer
        self._path = path
        self._custody = custody
        SqliteDeletion.__init__(self)
        SqliteImport.__init__(self)
        self._gives_back = opening.gives_back(writing)
        self._writer = SqliteWriter(writing, committer, custody)
        packing = Packing(self._all(queries.SHAPES, (), tables.SHAPE.read))
        self._read_notification = readers.notification_reader(packing)
        self._groups = GroupCommit(self._writer, packing)

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        vfs: str | None = None,
        committer: Committer | None = None,
        synchronous: Literal["FULL", "OFF"] = "FULL",
    ) -> SqliteStore:
        """Open the database in the folder, or make both; raises a `StoreError` that says what to do.

        Something that was acknowledged and is missing is such an error, `StoreLostError`: see `accept_loss`.
        `synchronous="OFF"` gives up durability for speed, for tests on simulated disks.
        """
        folder = Path(folder)
        path = folder / DATABASE_NAME
        with ExitStack() as undo:
            lock = lock_folder(folder)
            undo.callback(lock.release)
            keep_out_of_git(folder)
            writing = opening.open_database(path, vfs=vfs)
            undo.callback(_closed, writing)
            try:
                writing.pragma("synchronous", synchronous)
                reading = opening.open_reader(path, vfs=vfs)
            except apsw.Error as error:
                raise opening.explained(error, path) from error
            undo.callback(_closed, reading)
            acknowledged = Acknowledged(folder, synced=synchronous == "FULL")
            undo.callback(acknowledged.close)
            if committer is None:
                committer = ThreadCommitter()
                committer.prepare(writing)
            custody = Custody(path, writing, lock, acknowledged)
            store = cls(writing, reading, committer, path=path, custody=custody)
            undo.pop_all()
        return store

    @classmethod
    def in_memory(cls) -> SqliteStore:
        """A store that ends when it is closed."""
        uri = f"file:/{uuid.uuid4().hex}?vfs=memdb"
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        writing = apsw.Connection(uri, flags=flags)
        opening.migrate(writing)
        return cls(writing, apsw.Connection(uri, flags=flags), InlineCommitter(), path=Path(":memory:"))

    @property
    def commits(self) -> int:
        """How many groups were committed since the store was opened."""
        return self._groups.commits

    def submit(self, unit: Unit) -> asyncio.Future[None]:
        return self._groups.submit(unit)

    def listen(self, session_id: str, on_committed: Listener, on_failure: FailureListener) -> None:
        self._check_not_deleting(session_id)
        self._groups.listen(session_id, on_committed, on_failure)

    def unlisten(self, session_id: str) -> None:
        self._groups.unlisten(session_id)

    def watch(self, on_failure: FailureListener) -> None:
        self._groups.watch(on_failure)

    @property
    def health(self) -> StoreHealth:
        return StoreHealth(self._groups.failure, self._groups.commit_seconds, self._committer.warning)

    @property
    def is_flushed(self) -> bool:
        return self._groups.is_flushed

    async def flushed(self) -> None:
        await self._groups.flushed()

    def flushing(self) -> asyncio.Future[None]:
        return self._groups.flushing()

    def on_their_way(self, session_id: str) -> tuple[int, float | None]:
        return self._groups.on_their_way(session_id)

    async def database_bytes(self) -> tuple[int, int]:
        ((pages, free, size),) = self._all(queries.DATABASE_SIZE, (), tuple)
        return pages * size, free * size

    async def close(self) -> None:
        try:
            if self._undoing:
                await asyncio.wait(self._undoing)
            await self._groups.flushed()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the database at once: what is not committed is lost, as when the process dies.

        Raises `StoreFailedError` if the disk does not answer. Nothing is let go of then: a commit may be under way.
        """
        self._committer.close()
        _closed(self._reading)
        _closed(self._writing)
        if self._custody is not None:
            self._custody.close()

    async def load(self, session_id: str) -> SessionSnapshot:
        key = (session_id,)
        links = self._all(queries.LINKS, key, tables.LINK.read)
        last_mails = self._all(queries.LAST_MAILS, key, tuple)
        tasks = self._all(queries.OPEN_TASKS, key, tables.TASK.read)
        waits = self._all(queries.WAITS, key, tables.WAIT.read)
        arrivals = [arrival for _, _, arrival in last_mails]
        arrivals += [*(task.arrival for task in tasks), *(wait.arrival for wait in waits)]
        arrivals += self._all(queries.LAST_ARRIVALS, key, lambda row: row[0] or 0)
        return SessionSnapshot(
            agents=tuple(self._all(queries.AGENTS, key, readers.agent_reader())),
            tasks=tuple(tasks),
            mails=tuple(self._all(queries.OPEN_MAIL, key, tables.MAIL.read)),
            timers=tuple(self._all(queries.TIMERS, key, tables.TIMER.read)),
            waits=tuple(waits),
            locks=tuple(self._all(queries.LOCKS, key, tables.LOCK.read)),
            approvals=tuple(self._all(queries.OPEN_APPROVALS, key, tables.APPROVAL.read)),
            questions=tuple(self._all(queries.OPEN_QUESTIONS, key, tables.QUESTION.read)),
            schedules=tuple(self._all(queries.SCHEDULES, key, tables.SCHEDULE.read)),
            rooms=tuple(self._all(queries.ROOMS, key, tables.ROOM.read)),
            mails_received=readers.mails_received(links),
            mail_sequences={sender: sequence for sender, sequence, _ in last_mails},
            totals={each.agent_id: each for each in self._all(queries.AGENT_TOTALS, key, tables.AGENT_TOTAL.read)},
            rooms_last_at=dict(self._all(queries.ROOMS_LAST_AT, key, lambda row: (row[0], row[1]))),
            links=tuple(links),
            dead_tasks=dict(self._all(queries.DEAD_TASK_COUNTS, key, lambda row: (row[0], int(row[1])))),
            dead_mails=self._all(queries.DEAD_MAIL_COUNT, key, lambda row: int(row[0]))[0],
            last_arrival=max(arrivals, default=0),
            last_seq=self._all(queries.LAST_SEQ, key, lambda row: int(row[0]))[0],
            last_at=next(iter(self._all(queries.LAST_AT, key, lambda row: float(row[0]))), 0.0),
            erasures=tuple(await self.erasures(session_id)),
            has_marks=bool(self._all(queries.HAS_MARKS, key, bool)),
            first_seq=next(iter(self._all(queries.FIRST_SEQ, key, lambda row: int(row[0]))), 1),
        )

    async def session(self, session_id: str) -> SessionRecord | None:
        return self._one(queries.SESSION, (session_id,), tables.SESSION.read)

    async def sessions(self, owner: str, *, after: tuple[float, str] | None = None, limit: int) -> list[SessionSummary]:
        if after is None:
            return self._all(queries.SESSIONS, (owner, limit), readers.summary_from)
        return self._all(queries.SESSIONS_AFTER, (owner, *after, limit), readers.summary_from)

    async def limits(self, session_id: str) -> SessionLimits:
        return self._one(queries.LIMITS, (session_id,), tables.LIMITS.read) or SessionLimits()

    async def agents_in(self, session_id: str) -> int:
        return self._all(queries.AGENTS_IN_SESSION, (session_id,), lambda row: int(row[0]))[0]

    async def unlisted_sessions(self) -> list[str]:
        return self._all(queries.UNLISTED_SESSIONS, (), lambda row: str(row[0]))

    async def sessions_with_work(self) -> list[str]:
        return self._all(queries.SESSIONS_WITH_WORK, (), lambda row: str(row[0]))

    async def task(self, session_id: str, task_id: str) -> TaskRecord | None:
        return self._one(queries.TASK, (session_id, task_id), tables.TASK.read)

    async def tasks(self, session_id: str, *, limit: int) -> list[TaskRecord]:
        return self._all(queries.TASKS, (session_id, limit), tables.TASK.read)

    async def tasks_of_agent(self, session_id: str, agent_id: str, *, limit: int) -> list[TaskRecord]:
        return self._all(queries.TASKS_OF_AGENT, (session_id, agent_id, limit), tables.TASK.read)

    async def tasks_of_thread(
        self, session_id: str, agent_id: str, thread_id: str, *, arrival: int = 0, began_at: float = 0.0
    ) -> list[TaskRecord]:
        bindings = (session_id, agent_id, thread_id, arrival, began_at)
        return self._all(queries.TASKS_OF_THREAD, bindings, tables.TASK.read)

    async def compacted_thread(self, session_id: str, agent_id: str, thread_id: str) -> CompactedThread | None:
        return self._one(queries.COMPACTED_THREAD, (session_id, agent_id, thread_id), tables.COMPACTED.read)

    async def tasks_of_tree(self, session_id: str, root_id: str) -> list[TaskRecord]:
        return self._all(queries.TASKS_OF_TREE, (session_id, root_id), tables.TASK.read)

    async def ids_of_tree(self, session_id: str, root_id: str) -> list[str]:
        return self._all(queries.IDS_OF_TREE, (session_id, root_id), lambda row: str(row[0]))

    async def failures_since(self, session_id: str, since: float) -> list[tuple[str, str, float]]:
        return self._all(queries.FAILURES_SINCE, (session_id, since), lambda row: (row[0], row[1] or "", row[2]))

    async def threads_of_agent(self, session_id: str, agent_id: str) -> list[ThreadSummary]:
        return self._all(
            queries.THREADS_OF_AGENT,
            (session_id, agent_id),
            lambda row: ThreadSummary(id=row[0], tasks=row[1], first_at=row[2], last_at=row[3]),
        )

    async def has_thread(self, session_id: str, agent_id: str, thread_id: str) -> bool:
        return bool(self._all(queries.THREAD_OF_AGENT, (session_id, agent_id, thread_id), bool))

    async def latest_threads(self, session_id: str, agent_id: str, *, limit: int) -> list[str]:
        return self._all(queries.LATEST_THREADS, (session_id, agent_id, limit), lambda row: str(row[0]))

    async def dead_tasks(self, session_id: str) -> list[TaskRecord]:
        return self._all(queries.DEAD_TASKS, (session_id,), tables.TASK.read)

    async def steps(self, session_id: str, task_id: str, *, after: int = 0) -> list[StepRecord]:
        return self._all(queries.STEPS, (session_id, task_id, after), tables.STEP.read)

    async def open_steps(self, session_id: str) -> dict[str, list[StepRecord]]:
        return self._by_task(queries.OPEN_STEPS, (session_id,))

    async def steps_of_thread(
        self, session_id: str, agent_id: str, thread_id: str, *, arrival: int = 0, began_at: float = 0.0
    ) -> dict[str, list[StepRecord]]:
        return self._by_task(queries.STEPS_OF_THREAD, (session_id, agent_id, thread_id, arrival, began_at))

    def _by_task(self, sql: str, bindings: Row) -> dict[str, list[StepRecord]]:
        found: dict[str, list[StepRecord]] = {}
        for step in self._all(sql, bindings, tables.STEP.read):
            found.setdefault(step.task_id, []).append(step)
        return found

    async def mail(self, session_id: str, mail_id: str) -> MailRecord | None:
        return self._one(queries.MAIL, (session_id, mail_id), tables.MAIL.read)

    async def mailbox(self, session_id: str, recipient: str, *, limit: int) -> list[MailRecord]:
        return self._all(queries.MAILBOX, (session_id, recipient, limit), tables.MAIL.read)

    async def inbox(self, session_id: str) -> list[InboxMail]:
        return self._all(queries.INBOX, (session_id,), readers.inbox_from)

    async def sent_mail(self, session_id: str, sender: str, *, limit: int) -> list[MailRecord]:
        return self._all(queries.SENT_MAIL, (session_id, sender, limit), tables.MAIL.read)

    async def dead_mail(self, session_id: str) -> list[MailRecord]:
        return self._all(queries.DEAD_MAIL, (session_id,), tables.MAIL.read)

    async def ids_beginning(self, session_id: str, kind: IdKind, beginning: str, *, limit: int) -> list[str]:
        bindings = (session_id, beginning, f"{beginning}{_LAST_CHARACTER}", limit)
        return self._all(queries.IDS_BEGINNING[kind], bindings, lambda row: str(row[0]))

    async def approval(self, session_id: str, approval_id: str) -> ApprovalRecord | None:
        return self._one(queries.APPROVAL, (session_id, approval_id), tables.APPROVAL.read)

    async def approvals(self, session_id: str, *, state: ApprovalState | None, limit: int) -> list[ApprovalRecord]:
        return self._all(queries.APPROVALS, (session_id, state, limit), tables.APPROVAL.read)

    async def question(self, session_id: str, question_id: str) -> QuestionRecord | None:
        return self._one(queries.QUESTION, (session_id, question_id), tables.QUESTION.read)

    async def questions(self, session_id: str, *, state: QuestionState | None, limit: int) -> list[QuestionRecord]:
        return self._all(queries.QUESTIONS, (session_id, state, limit), tables.QUESTION.read)

    async def event(self, session_id: str, event_id: str) -> EventRecord | None:
        return self._one(queries.EVENT, (session_id, event_id), tables.EVENT.read)

    async def events(self, session_id: str, *, limit: int) -> list[EventRecord]:
        return self._all(queries.EVENTS, (session_id, limit), tables.EVENT.read)

    async def message(self, session_id: str, message_id: str) -> MessageRecord | None:
        return self._one(queries.MESSAGE, (session_id, message_id), tables.MESSAGE.read)

    async def messages(self, session_id: str, room_id: str, *, after: int, limit: int) -> list[MessageRecord]:
        return self._all(queries.MESSAGES_AFTER, (session_id, room_id, after, limit), tables.MESSAGE.read)

    async def attachments(self, session_id: str, *, limit: int) -> list[AttachmentRecord]:
        return self._all(queries.ATTACHMENTS, (session_id, limit), tables.ATTACHMENT.read)

    async def attachment(self, session_id: str, digest: str) -> AttachmentRecord | None:
        return self._one(queries.ATTACHMENT, (session_id, digest), tables.ATTACHMENT.read)

    async def attachment_digests(self, session_id: str) -> list[str]:
        return self._all(queries.ATTACHMENT_DIGESTS, (session_id,), lambda row: str(row[0]))

    async def notifications(
        self, session_id: str, *, after: int, limit: int, max_bytes: int | None = None
    ) -> list[Notification]:
        most = limit if max_bytes is None else self._notes_within(session_id, after, limit, max_bytes)
        return self._all(queries.NOTIFICATIONS_AFTER, (session_id, after, most), self._read_notification)

    async def notifications_naming(
        self, session_id: str, agent_id: str, *, after: int, before: int, limit: int
    ) -> list[Notification]:
        bindings = (session_id, after, before, *_texts_of(agent_id), limit)
        return self._all(queries.NOTIFICATIONS_NAMING, bindings, self._read_notification)

    async def last_notifications_naming(
        self, session_id: str, agent_id: str, *, after: int, before: int, limit: int
    ) -> list[Notification]:
        bindings = (session_id, after, before, *_texts_of(agent_id), limit)
        return self._all(queries.LAST_NOTIFICATIONS_NAMING, bindings, self._read_notification)

    def _notes_within(self, session_id: str, after: int, limit: int, max_bytes: int) -> int:
        """How many of the notifications together take so many bytes."""
        sizes = self._all(queries.NOTIFICATION_SIZES_AFTER, (session_id, after, limit), lambda row: int(row[0]))
        return max(sum(end <= max_bytes for end in accumulate(sizes)), 1)

    def _all(self, sql: str, bindings: Row, convert: Callable[[Row], _T]) -> list[_T]:
        try:
            return [convert(row) for row in self._reading.execute(sql, bindings)]
        except apsw.Error as error:
            raise opening.explained(error, self._path) from error
        except (msgspec.MsgspecError, ValueError) as error:
            raise StoreCorruptError(
                f"'{self._path}' holds a row that cannot be read ({error}). Restore a backup; nothing was changed."
            ) from error

    def _one(self, sql: str, bindings: Row, convert: Callable[[Row], _T]) -> _T | None:
        found = self._all(sql, bindings, convert)
        return found[0] if found else None


def _texts_of(agent_id: str) -> tuple[bytes, str]:
    """The id as it stands in what is packed, and in JSON."""
    return msgspec.msgpack.encode(agent_id), f'"{agent_id}"'


def _closed(connection: apsw.Connection) -> None:
    with suppress(apsw.Error):
        connection.close()  # on a failing disk the checkpoint at the end fails; the log has everything

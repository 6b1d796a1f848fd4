"""The contract of a store: units of work go in, records and numbered notifications come out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from ai_whisperer.domain.agents import AgentRecord
from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.domain.attachments import AttachmentRecord
from ai_whisperer.domain.clock import Clock
from ai_whisperer.domain.compactions import CompactedThread
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.forks import Fork
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.locks import LockRecord
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.sessions import LogErased
from ai_whisperer.domain.questions import QuestionRecord, QuestionState
from ai_whisperer.domain.record import Record
from ai_whisperer.domain.retention import Erased, Erasure, Horizon, StoredPart, ThreadStanding
from ai_whisperer.domain.rooms import MessageRecord, RoomRecord
from ai_whisperer.domain.schedules import ScheduleRecord
from ai_whisperer.domain.sessions import IdKind, SessionRecord, SessionSummary
from ai_whisperer.domain.snapshot import InboxMail, Link
from ai_whisperer.domain.tasks import StepRecord, TaskRecord, ThreadSummary
from ai_whisperer.domain.timers import TimerRecord
from ai_whisperer.domain.usage import AgentTotals
from ai_whisperer.domain.waits import WaitRecord
from ai_whisperer.errors import StoreError
from ai_whisperer.store import operations
from ai_whisperer.store.operations import Operation
from ai_whisperer.store.tables import Row, Table

if TYPE_CHECKING:
    from ai_whisperer.store.archive import Progress, TransferReport

Change = tuple[Operation, Row]

SERVER = ""
"""In place of the id of a session: the limits of the server, which are those of all its sessions."""

Listener = Callable[[Sequence[Note], Sequence[int]], None]
"""Is told of what was just committed, and about how many bytes each takes."""

Spared = Callable[[str], bool]
"""Whether the mail of this id is in use now, and so must stay."""

_ALL_ROWS = 1 << 40

FailureListener = Callable[[BaseException], None]


class Unit(msgspec.Struct, eq=False):
    """Changes and the notifications that tell of them, written in one transaction or not at all.

    A change is an operation and its values. What cannot be written as JSON raises when it is added, so that whoever
    decides finds out before memory changes. Notifications get their numbers when the unit is committed, in the order of
    the commits.

    `on_refused` is called if the store refuses this unit. Later units with the same one are refused too, for whoever
    decided them has memory that is ahead of the disk for good.
    """

    on_refused: FailureListener | None = None
    changes: list[Change] = msgspec.field(default_factory=list)
    notes: list[Note] = msgspec.field(default_factory=list)
    deleted_sessions: tuple[str, ...] = ()
    horizons: tuple[Horizon, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes or self.notes)

    def __len__(self) -> int:
        """How many changes and notifications there are so far."""
        return len(self.changes) + len(self.notes)

    def begin_deletion(self, session_id: str) -> None:
        """Let the session be gone, and keep in mind that what was in it has to go too. It must be closed."""
        self.changes += ((operations.PUT_DELETION, (session_id,)), (operations.DELETE_SESSION, (session_id,)))
        self.deleted_sessions += (session_id,)

    def delete_some(self, session_id: str, table: Table[Any], *, limit: int) -> None:
        """Delete so many rows of a session that is being deleted."""
        self.changes.append((operations.DELETE_SOME[table], (session_id, limit)))

    def end_deletion(self, session_id: str) -> None:
        self.changes.append((operations.DELETE_DELETION, (session_id,)))

    def set_horizon(self, horizon: Horizon) -> None:
        """Let the log begin there, and what ended before that time be erased; see `Store.erase`."""
        self.put_horizon(horizon)
        self.horizons += (horizon,)

    def erase_task(self, session_id: str, task_id: str, *, at: float) -> None:
        """Let nothing be left of a task but its standing, and of what people were asked for it. Its steps are gone."""
        self.changes += (
            (operations.ERASE_TASK, ("", "", None, None, None, None, at, session_id, task_id)),
            (operations.DELETE_APPROVALS, (session_id, task_id, _ALL_ROWS)),
            (operations.DELETE_QUESTIONS, (session_id, task_id, _ALL_ROWS)),
            (operations.DELETE_ATTACHMENTS, (session_id, f"task:{task_id}", _ALL_ROWS)),
        )

    def delete_compacted(self, session_id: str, agent_id: str, thread_id: str) -> None:
        """Forget how the thread was made shorter, or all threads of the agent if none is named."""
        if thread_id:
            key = (session_id, agent_id, thread_id, _ALL_ROWS)
            self.changes.append((operations.DELETE_COMPACTED_OF_THREAD, key))
        else:
            self.changes.append((operations.DELETE_COMPACTED_OF_AGENT, (session_id, agent_id, _ALL_ROWS)))

    def delete_steps(self, session_id: str, task_id: str, *, limit: int) -> None:
        self.changes.append((operations.DELETE_STEPS, (session_id, task_id, limit)))

    def erase_mail(self, session_id: str, mail_id: str, *, at: float) -> None:
        self.changes.append((operations.ERASE_MAIL, ("", "", at, session_id, mail_id)))

    def erase_event(self, session_id: str, event_id: str, *, at: float) -> None:
        self.changes.append((operations.ERASE_EVENT, ("null", at, session_id, event_id)))

    def erase_message(self, session_id: str, room_id: str, number: int, *, message_id: str, at: float) -> None:
        self.changes += (
            (operations.ERASE_MESSAGE, ("", None, at, session_id, room_id, number)),
            (operations.DELETE_ATTACHMENTS, (session_id, f"message:{message_id}", _ALL_ROWS)),
        )

    def erase_notification(self, session_id: str, seq: int) -> None:
        """Let the entry of the log say nothing but that it was erased."""
        values = (LogErased.wire_name, "", "{}", None, None, session_id, seq)
        self.changes.append((operations.ERASE_NOTIFICATION, values))

    def delete_notifications(self, session_id: str, *, below: int, limit: int) -> None:
        self.changes.append((operations.DELETE_NOTIFICATIONS, (session_id, below, limit)))

    def delete_timer(self, session_id: str, timer_id: str) -> None:
        self.changes.append((operations.DELETE_TIMER, (session_id, timer_id)))

    def insert_task(self, task: TaskRecord) -> None:
        """Add a new task, which is counted in its thread."""
        self._insert_task(task)
        at = task.created_at
        thread = (task.session_id, task.agent_id, task.thread_id, task.arrival, 1, at, at)
        self.changes.append((operations.COUNT_IN_THREAD, thread))

    insert_session = operations.INSERT_SESSION.adder()
    insert_fork = operations.INSERT_FORK.adder()
    put_horizon = operations.PUT_HORIZON.adder()
    put_erasure = operations.PUT_ERASURE.adder()
    delete_erasure = operations.DELETE_ERASURE.adder()
    delete_agent = operations.DELETE_AGENT.adder()
    insert_agent = operations.INSERT_AGENT.adder()
    update_agent = operations.UPDATE_AGENT.adder()
    update_definition = operations.UPDATE_DEFINITION.adder()
    put_totals = operations.PUT_TOTALS.adder()
    _insert_task = operations.INSERT_TASK.adder()
    update_task = operations.UPDATE_TASK.adder()
    update_joined = operations.UPDATE_JOINED.adder()
    update_dismissal = operations.UPDATE_DISMISSAL.adder()
    update_notes = operations.UPDATE_NOTES.adder()
    put_step = operations.PUT_STEP.adder()
    begin_step = operations.BEGIN_STEP.adder()
    put_compacted = operations.PUT_COMPACTED.adder()
    insert_mail = operations.INSERT_MAIL.adder()
    update_mail = operations.UPDATE_MAIL.adder()
    put_timer = operations.PUT_TIMER.adder()
    put_wait = operations.PUT_WAIT.adder()
    delete_wait = operations.DELETE_WAIT.adder()
    put_approval = operations.PUT_APPROVAL.adder()
    put_question = operations.PUT_QUESTION.adder()
    put_lock = operations.PUT_LOCK.adder()
    delete_lock = operations.DELETE_LOCK.adder()
    insert_event = operations.INSERT_EVENT.adder()
    put_schedule = operations.PUT_SCHEDULE.adder()
    delete_schedule = operations.DELETE_SCHEDULE.adder()
    put_room = operations.PUT_ROOM.adder()
    insert_message = operations.INSERT_MESSAGE.adder()
    insert_attachment = operations.INSERT_ATTACHMENT.adder()
    put_shape = operations.PUT_SHAPE.adder()
    put_link = operations.PUT_LINK.adder_beside()
    update_link = operations.UPDATE_LINK.adder_beside()
    put_limits = operations.PUT_LIMITS.adder_beside()
    """What the session states; under `SERVER` what the server does."""


class SessionSnapshot(Record, frozen=True, kw_only=True):
    """What is needed to take a session up where it was: its agents and all that is not finished.

    `approvals` are those that are pending and those that were given, of the tasks that have not ended; `questions` are
    those that are pending. `totals` are by agent, as they were put last. `mails_received` and `mail_sequences`, the
    number of the last mail of a sender, know those mails that have a link. `rooms_last_at` is when something was said
    last in a room. `dead_tasks` counts the tasks that wait for a person, by agent. `first_seq` is where the log begins;
    `erasures` are those of which something may be left, `has_marks` is whether there is anything to erase.
    `fork` says what effects a session that was forked may have. It `was_cut_off` if its
    process did not end by itself, as far as others could tell: then no task can have killed it.
    """

    agents: tuple[AgentRecord, ...]
    tasks: tuple[TaskRecord, ...]
    mails: tuple[MailRecord, ...]
    timers: tuple[TimerRecord, ...]
    waits: tuple[WaitRecord, ...]
    locks: tuple[LockRecord, ...]
    approvals: tuple[ApprovalRecord, ...]
    questions: tuple[QuestionRecord, ...]
    schedules: tuple[ScheduleRecord, ...]
    rooms: tuple[RoomRecord, ...]
    mails_received: dict[str, int]
    mail_sequences: dict[str, int]
    totals: dict[str, AgentTotals]
    rooms_last_at: dict[str, float]
    links: tuple[Link, ...]
    dead_tasks: dict[str, int]
    dead_mails: int
    last_arrival: int
    last_seq: int
    last_at: float
    first_seq: int
    erasures: tuple[Erasure, ...]
    has_marks: bool
    fork: Fork | None = None
    was_cut_off: bool = False


class StoreHealth(NamedTuple):
    """How a store does: why it has failed, if it has, how long the commit under way has taken so far, and a warning.

    A warning is about what a person should see to while everything still works.
    """

    failure: StoreError | None
    commit_seconds: float
    warning: str | None


class Store(Protocol):
    """A durable store. Reads see what is committed, nothing else.

    A read may take time, and what is committed meanwhile may be missing in it. All who share it go by its `clock`;
    without one by that of their machine.
    """

    @property
    def clock(self) -> Clock | None: ...

    @property
    def is_far(self) -> bool:
        """Whether each read waits for an answer of another process: to begin one and give it up costs a connection."""
        ...

    def submit(self, unit: Unit) -> asyncio.Future[None]:
        """Hand over a unit. Units are committed in the order of submission, several in one group.

        The future is done when the unit is on disk; it raises if the unit was refused, alone, or when the store has
        failed as a whole (`StoreFailedError`), after which nothing more is taken.
        """
        ...

    async def claim(self, session_id: str) -> bool:
        """Have a session for this process, before it is opened, made or deleted; returns whether it was not so before.

        A store that one process has for itself has all its sessions. Raises `SessionElsewhereError` if another node has
        it.
        """
        ...

    async def release(self, session_id: str, *, files_left: bool = False) -> None:
        """Let other nodes have the session, once all that was submitted is on disk.

        `files_left` is whether there are files here of a session that was deleted, which could not be removed: that is
        kept in mind, so that they are removed later.
        """
        ...

    def pinned(self, session_id: str) -> AbstractContextManager[None]:
        """Within, a session that is ours stays ours, whoever lets it go."""
        ...

    async def is_ours(self, session_id: str) -> bool:
        """Whether this process still has the session, as far as the database knows."""
        ...

    def listen(self, session_id: str, on_committed: Listener, on_failure: FailureListener) -> None:
        """Call back with the numbered notifications of a session after each commit, in order.

        Raises `StoreInUseError` if somebody listens already: a session is open once. So it does for a session that is
        being deleted.
        """
        ...

    def unlisten(self, session_id: str) -> None: ...

    def watch(self, on_failure: FailureListener) -> None:
        """Call back, once, when the store has failed as a whole, or at once if it has already."""
        ...

    @property
    def health(self) -> StoreHealth: ...

    @property
    def is_flushed(self) -> bool:
        """Whether `flushed` has nothing to wait for."""
        ...

    async def flushed(self) -> None:
        """Wait until all that was submitted so far is on disk or refused."""
        ...

    def flushing(self) -> asyncio.Future[None]:
        """Is done when `flushed` would return."""
        ...

    def on_their_way(self, session_id: str) -> tuple[int, float | None]:
        """How many notifications were submitted and not called back with yet, and when the last of these was."""
        ...

    async def delete_session(self, session_id: str) -> None:
        """Delete all that there is of a session; one of the same id begins anew, its log at 1.

        The session is gone at once, what was in it goes in slices, so that nobody is held up, and the file becomes
        smaller by it. If the process ends in between, the rest goes when the store is opened again. Until this returns
        nothing may be written to a session of this id. Raises `StoreInUseError` while somebody listens to it, and if it
        is being deleted already.
        """
        ...

    def is_closed_off(self, session_id: str) -> bool:
        """Whether a session of this id is being deleted or imported: nobody can make or open one now."""
        ...

    async def import_session(
        self, file: Path, *, owner: str, data: Path, session_id: str | None, on_progress: Progress
    ) -> TransferReport:
        """Bring an exported session in, under its own id or another, with its files into the data folder.

        It is there when this returns, whole, or not at all: what was written is deleted again if this fails, and if the
        process ends in between, when the store is opened again. Raises `DuplicateIdError`, `StoreInUseError` while one
        of the id is being deleted or imported, and an `ArchiveError` for what cannot be read.
        """
        ...

    async def erase(self, session_id: str, *, spared: Spared) -> Erased:
        """Erase what is marked in a session (`Unit.set_horizon`, `Unit.put_erasure`), and let the file become smaller.

        It goes in slices, so that nobody is held up. If the process ends in between, the marks are there, and what is
        left goes when this is called again. Of tasks, mails, events and messages the rows stay, without their content.
        """
        ...

    async def erasures(self, session_id: str) -> list[Erasure]:
        """The conversations of which something may be left."""
        ...

    async def horizon(self, session_id: str) -> Horizon | None: ...

    async def erasable(self, horizon: Horizon) -> Erased:
        """What would be erased before a horizon beside whole threads; nothing is changed."""
        ...

    async def first_since(self, session_id: str, before: float) -> int:
        """The number of the first notification that is not before this time; that of the next one if all are."""
        ...

    async def thread_standings(
        self, session_id: str, *, before: float, after: tuple[str, str], limit: int
    ) -> list[ThreadStanding]:
        """The threads after this agent and thread, in order; fewer than `limit` if there are no more.

        Of those with something that is newer than `before` no more than that is told.
        """
        ...

    async def aged_sessions(self, before: float) -> list[str]:
        """The ids of the sessions whose log has something from before that time."""
        ...

    async def stored_parts(self, session_id: str) -> list[StoredPart]:
        """How much of what a session has, and about how many bytes that takes."""
        ...

    async def database_bytes(self) -> tuple[int, int]:
        """How large the database of all sessions is, and how much of it holds nothing."""
        ...

    async def close(self) -> None:
        """Commit what was submitted and let go of the database."""
        ...

    async def load(self, session_id: str) -> SessionSnapshot:
        """The session as it was left. Mail to the person is not part of it: nothing waits for that to be read."""
        ...

    async def session(self, session_id: str) -> SessionRecord | None: ...

    async def limits(self, session_id: str) -> SessionLimits:
        """The limits that the session states; under `SERVER` those of the server."""
        ...

    async def agents_in(self, session_id: str) -> int:
        """How many agents the session has."""
        ...

    async def sessions(self, owner: str, *, after: tuple[float, str] | None = None, limit: int) -> list[SessionSummary]:
        """The sessions of an owner, the newest first; `after` is the `created_at` and the `id` of the one read last."""
        ...

    async def unlisted_sessions(self) -> list[str]:
        """The ids under which there are agents or notifications but no session: made without a server."""
        ...

    async def sessions_with_work(self) -> list[str]:
        """The ids of the sessions that do something by themselves once they are open, now or when it is due."""
        ...

    async def task(self, session_id: str, task_id: str) -> TaskRecord | None: ...

    async def tasks(self, session_id: str, *, limit: int) -> list[TaskRecord]:
        """The tasks of all agents, the newest first."""
        ...

    async def tasks_of_agent(self, session_id: str, agent_id: str, *, limit: int) -> list[TaskRecord]: ...

    async def tasks_of_thread(
        self, session_id: str, agent_id: str, thread_id: str, *, arrival: int = 0, began_at: float = 0.0
    ) -> list[TaskRecord]:
        """Those that have begun, in the order in which they did, of this arrival and this time or later ones."""
        ...

    async def compacted_thread(self, session_id: str, agent_id: str, thread_id: str) -> CompactedThread | None:
        """The latest compaction of the thread."""
        ...

    async def tasks_of_tree(self, session_id: str, root_id: str) -> list[TaskRecord]:
        """The task at the root and all that it caused, the oldest first."""
        ...

    async def ids_of_tree(self, session_id: str, root_id: str) -> list[str]:
        """The ids of the tasks in the tree but that of its root."""
        ...

    async def failures_since(self, session_id: str, since: float) -> list[tuple[str, str, float]]:
        """Whose tasks failed after that time, with which error code, and when, in order."""
        ...

    async def threads_of_agent(self, session_id: str, agent_id: str) -> list[ThreadSummary]:
        """In the order in which they began."""
        ...

    async def has_thread(self, session_id: str, agent_id: str, thread_id: str) -> bool: ...

    async def latest_threads(self, session_id: str, agent_id: str, *, limit: int) -> list[str]:
        """Their ids, the one first in which the agent was given something last."""
        ...

    async def dead_tasks(self, session_id: str) -> list[TaskRecord]: ...

    async def steps(self, session_id: str, task_id: str, *, after: int = 0) -> list[StepRecord]: ...

    async def open_steps(self, session_id: str) -> dict[str, list[StepRecord]]:
        """The steps of the tasks that have not ended, in order, by the task."""
        ...

    async def steps_of_thread(
        self, session_id: str, agent_id: str, thread_id: str, *, arrival: int = 0, began_at: float = 0.0
    ) -> dict[str, list[StepRecord]]:
        """The steps of those tasks that `tasks_of_thread` has, in order, by the task."""
        ...

    async def mail(self, session_id: str, mail_id: str) -> MailRecord | None: ...

    async def mailbox(self, session_id: str, recipient: str, *, limit: int) -> list[MailRecord]: ...

    async def inbox(self, session_id: str) -> list[InboxMail]:
        """The mails of the user that are neither archived nor dead, the oldest first."""
        ...

    async def sent_mail(self, session_id: str, sender: str, *, limit: int) -> list[MailRecord]: ...

    async def dead_mail(self, session_id: str) -> list[MailRecord]: ...

    async def ids_beginning(self, session_id: str, kind: IdKind, beginning: str, *, limit: int) -> list[str]:
        """The ids of what is of that kind which begin so, in order."""
        ...

    async def approval(self, session_id: str, approval_id: str) -> ApprovalRecord | None: ...

    async def approvals(self, session_id: str, *, state: ApprovalState | None, limit: int) -> list[ApprovalRecord]:
        """What people were asked about, in this state or any, the newest first."""
        ...

    async def question(self, session_id: str, question_id: str) -> QuestionRecord | None: ...

    async def questions(self, session_id: str, *, state: QuestionState | None, limit: int) -> list[QuestionRecord]:
        """What agents have asked people, in this state or any, the newest first."""
        ...

    async def event(self, session_id: str, event_id: str) -> EventRecord | None: ...

    async def events(self, session_id: str, *, limit: int) -> list[EventRecord]: ...

    async def message(self, session_id: str, message_id: str) -> MessageRecord | None: ...

    async def messages(self, session_id: str, room_id: str, *, after: int, limit: int) -> list[MessageRecord]: ...

    async def attachments(self, session_id: str, *, limit: int) -> list[AttachmentRecord]:
        """Where images and files were given, the newest first."""
        ...

    async def attachment(self, session_id: str, digest: str) -> AttachmentRecord | None:
        """Where this content was given last; None if it was not."""
        ...

    async def attachment_digests(self, session_id: str) -> list[str]:
        """All contents that something names."""
        ...

    async def notifications(
        self, session_id: str, *, after: int, limit: int, max_bytes: int | None = None
    ) -> list[Notification]:
        """Those that follow the number, in order; with `max_bytes` about so much of them, but one at least."""
        ...

    async def notifications_naming(
        self, session_id: str, agent_id: str, *, after: int, before: int, limit: int
    ) -> list[Notification]:
        """The first of those between the two numbers in whose params the agent's id stands as a text, in order.

        All between the numbers are looked at: keep them close to each other. One may be among them that only seems to.
        """
        ...

    async def last_notifications_naming(
        self, session_id: str, agent_id: str, *, after: int, before: int, limit: int
    ) -> list[Notification]:
        """The same for the last of them, the last one first."""
        ...

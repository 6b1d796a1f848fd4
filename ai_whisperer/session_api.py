# mypy: disable-error-code="empty-body"
"""What can be done in a session, in process by its manager and over a connection by a client: said once.

The manager writes the bodies. Of the client, and of what the server answers it, all that only passes these calls on is
made from the signatures here and from the one line in `protocol` that names the call. Both have their docstrings here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from inspect import Signature, signature
from typing import Any, Generic, TypedDict, TypeVar, Unpack, overload

from ai_whisperer.core.definitions import Config
from ai_whisperer.core.limits import Stated
from ai_whisperer.core.rooms import RoomRef
from ai_whisperer.core.schedules import ScheduleRef
from ai_whisperer.core.sleeping import Time
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.domain.attachments import AttachmentContent, AttachmentRecord, InputPart
from ai_whisperer.domain.compactions import ContextReport
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.limits import LimitsReport
from ai_whisperer.domain.locks import LockCheck, LockRecord, LockSummary
from ai_whisperer.domain.mail import USER, DeadLetters, MailDraft, MailRecord, MailState
from ai_whisperer.domain.mcp import McpServerStatus
from ai_whisperer.domain.memory import MemoryFile, MemoryText
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.providers import ProviderAccount
from ai_whisperer.domain.questions import QuestionRecord, QuestionState
from ai_whisperer.domain.retention import PruneReport, StorageReport
from ai_whisperer.domain.rooms import MessageRecord, RoomRecord
from ai_whisperer.domain.schedules import MissedRuns, ScheduleRecord
from ai_whisperer.domain.sessions import IdKind
from ai_whisperer.domain.snapshot import Snapshot
from ai_whisperer.domain.tasks import Budget, Deliver, Priority, RetriedTasks, StepRecord, TaskRecord, ThreadSummary
from ai_whisperer.domain.usage import UsageReport
from ai_whisperer.domain.waits import ResourceStatus
from ai_whisperer.task_stream import TaskStream
from ai_whisperer.templates.library import TemplateEntry

AgentRef = TypeVar("AgentRef")
"""What names an agent: any of its names as text, or what the manager or the client returned about it."""

TaskRef = str | TaskRecord
"""A task: its id or its record, as it is or was."""


T = TypeVar("T")

OutputType = type[Any] | Mapping[str, Any]
"""What the answer of a task has to be: a type, or a JSON Schema."""


class TaskTerms(TypedDict, total=False):
    """What `run_task` takes beside the prompt and the output."""

    priority: Priority | str
    thread_id: str | None
    task_id: str | None
    timeout_seconds: float | None
    budget: Budget | None
    parts: Sequence[InputPart]


class SessionApi(Generic[AgentRef]):
    """The calls that the manager and the client share. Those of the manager that read memory alone are not awaited.

    Nothing is done here. It is no `typing.Protocol`, since type checkers would then take the client, which is given its
    calls when its class is made, for one that lacks them.
    """

    async def create_agent(
        self, agent_id: str, config: Config = None, *, template: str | None = None, auto_start: bool = True
    ) -> AgentStatus:
        """Create an agent and, unless told otherwise, start it.

        `config` overrides the fields of `template`; without a template it is the whole definition. With neither, the
        template that is called like the agent is used, if there is one.
        """

    async def start_agent(
        self, agent_id: AgentRef, config: Config = None, *, template: str | None = None
    ) -> AgentStatus:
        """Start an agent; one that does not exist yet is created as `create_agent` does.

        One that is started already continues as it is. A given config or template, or both as for `create_agent`,
        replaces the definition, and so only that of an agent that is not started.
        """

    async def pause_agent(self, agent_id: AgentRef, *, reason: str = "") -> AgentStatus:
        """Let no new step begin. The step under way runs to its end, mail keeps arriving."""

    async def interrupt_agent(self, agent_id: AgentRef, *, reason: str = "") -> AgentStatus:
        """Pause at once, also one that is being paused: the request in flight is cancelled, and repeated later."""

    async def resume_agent(self, agent_id: AgentRef) -> AgentStatus:
        """Resume where the agent was paused."""

    async def stop_agent(self, agent_id: AgentRef, *, reason: str = "") -> AgentStatus:
        """Cancel what runs and free everything. When this returns, tools have ended; mail and queue are kept.

        One that is stopped already stays so, with the reason that it has.
        """

    async def sleep_agent(
        self,
        agent_id: AgentRef,
        *,
        duration_seconds: float | None = None,
        until: Time | None = None,
        wake_events: Sequence[str] = (),
        reason: str = "",
    ) -> AgentStatus:
        """Let the agent sleep for a time, until a time or until an event, whichever comes first.

        `until` is in seconds since the epoch, a datetime with its zone, or ISO 8601 text with its zone.
        """

    async def wake_agent(self, agent_id: AgentRef, *, reason: str = "woken by the user") -> AgentStatus:
        """End the agent's sleep; it is told the reason."""

    async def delete_agent(self, agent_id: AgentRef) -> AgentStatus:
        """Stop the agent and delete it with its conversations, mail, schedules and files, for good.

        What runs is cancelled, what waits for it is cancelled or archived, its locks are free, and whoever waits for
        its answer is told that there is none. It leaves its groups; a room in which it is alone goes with it. What it
        used still counts for the session. Its tasks stay known by their ids, without content: nothing is done twice.
        """

    async def get_agent_status(self, agent_id: AgentRef) -> AgentStatus:
        """What one agent is doing."""

    async def agent_threads(self) -> dict[str, Sequence[str]]:
        """The agents that are started by id, each with the ids of the tasks that it runs now, in loops of their own."""

    async def list_agents(self) -> list[AgentStatus]:
        """What all agents are doing."""

    async def send_task(
        self,
        agent_id: AgentRef,
        prompt: str,
        *,
        priority: Priority | str = Priority.NORMAL,
        thread_id: str | None = None,
        task_id: str | None = None,
        timeout_seconds: float | None = None,
        budget: Budget | None = None,
        output: OutputType | None = None,
        parts: Sequence[InputPart] = (),
        deliver: Deliver | str = Deliver.IN_TURN,
    ) -> TaskRecord:
        """Give the agent a task. When this returns the task is on disk. Tasks of one thread share their history.

        `timeout_seconds` and `budget` hold for the task and for everything that it causes. A caller that gives a
        `task_id` may call again with the same content: the task is given once.

        `output` is what the answer has to be: a dataclass, a `msgspec.Struct`, a `TypedDict`, a pydantic model or a
        JSON Schema. The model is told the schema, and is asked once more if its answer does not fit. Then the value is
        in `result.output`, or the task has failed with the code `output`.

        `parts` are images and files for the agent: the path of a file, its content as bytes, or an `InputFile`. They
        are on disk when this returns, once for each content; `get_attachment` gives them out again.

        With `deliver="next_step"` the prompt is a message to the task at work in the thread, or without a `thread_id`
        to the one task at work: its model is told before its next step. Then this task is `joined`, and who waits for
        it waits for that one. If that one ends before, or there is none, it is done in its turn as any other.
        """

    async def wait_task(self, task: TaskRef) -> TaskRecord:
        """Wait until the task has ended and return it. A continued task has ended when its last continuation has.

        That one is returned then, with the answer of all of them in its `result`.

        A task of an agent that is stopped, paused, asleep or without its tools waits, and so does this: see the
        `reason` and `missing_tools` in its status, and use `asyncio.timeout` if you cannot wait.

        In a tool this raises `WaitCycleError` if the task cannot end before the tool has.
        """

    @overload
    async def run_task(
        self, agent_id: AgentRef, prompt: str, *, output: None = None, **terms: Unpack[TaskTerms]
    ) -> str: ...
    @overload
    async def run_task(self, agent_id: AgentRef, prompt: str, *, output: type[T], **terms: Unpack[TaskTerms]) -> T: ...
    @overload
    async def run_task(
        self, agent_id: AgentRef, prompt: str, *, output: Mapping[str, Any], **terms: Unpack[TaskTerms]
    ) -> Any: ...
    async def run_task(
        self,
        agent_id: AgentRef,
        prompt: str,
        *,
        priority: Priority | str = Priority.NORMAL,
        thread_id: str | None = None,
        task_id: str | None = None,
        timeout_seconds: float | None = None,
        budget: Budget | None = None,
        output: OutputType | None = None,
        parts: Sequence[InputPart] = (),
    ) -> Any:
        """Give a task as `send_task` does, wait for it, return the final answer.

        With an `output` that is a type, the answer is returned as a value of it; with a JSON Schema as plain values.

        Raises `TaskEndedError` if there is none, for instance because `timeout_seconds` or the `budget` was used up.
        The answer of a task that was continued is the answers of all its parts. The same call again with the same
        `task_id`, also after a restart, waits for the same task.
        """

    async def cancel_task(self, task: TaskRef, *, reason: str = "cancelled by the user") -> TaskRecord:
        """End a task. When this returns, what it ran has ended. Raises `StateError` if it has ended already."""

    async def cancel_tree(self, task: TaskRef, *, reason: str = "cancelled by the user") -> list[TaskRecord]:
        """End a task and everything that it caused: delegated tasks, mail that waits, what others do because of it.

        Returns the tasks that were cancelled. Raises `StateError` if nothing of it is left to be cancelled.
        """

    async def retry_task(self, task: TaskRef) -> TaskRecord:
        """Take a failed, cancelled or dead task up again at the step where it ended; no finished step is repeated."""

    async def retry_failed_tasks(self, agent_id: AgentRef | None = None) -> RetriedTasks:
        """Retry all failed tasks of an agent, or of all agents, that nobody has dismissed; the oldest first.

        Those at which the process died are left alone, as are cancelled ones: these are retried one by one. Tasks that
        cannot be retried, since their time is over, their budget is spent or the queue is full, are told with the
        reason.
        """

    async def dismiss_task(self, task: TaskRef) -> TaskRecord:
        """Take a failed or dead task off the dead letters; the mail that it was for is archived.

        Everything about it is kept, and it can still be retried. Raises `StateError` if it is no dead letter.
        """

    async def get_task(self, task: TaskRef) -> TaskRecord:
        """The task as it is now; raises `UnknownTaskError`."""

    async def list_tasks(self, agent_id: AgentRef | None = None, *, limit: int = 100) -> list[TaskRecord]:
        """The tasks of an agent, or of all agents, the newest first."""

    async def get_task_tree(self, task: TaskRef) -> list[TaskRecord]:
        """All tasks of the tree that the task belongs to, the oldest first; `parent_id` says what caused what."""

    async def list_steps(self, task: TaskRef, *, after: int = 0) -> list[StepRecord]:
        """The journal of a task, or what follows the step of that number."""

    def stream(self, task: TaskRef) -> TaskStream:
        """An iterator over what happens to a task, from its beginning to its end: `async for event in …`.

        The events are the records of `ai_whisperer.domain.task_events`; the last is a `TaskEnded`. It works for a task
        that has ended too, also after a restart. Raises `UnknownTaskError`.
        """

    async def list_threads(self, agent_id: AgentRef) -> list[ThreadSummary]:
        """The conversations of an agent."""

    async def get_context(self, agent_id: AgentRef, *, thread_id: str | None = None) -> ContextReport:
        """What the agent's model would be shown of a thread now: how much that is, and how it was made shorter last.

        Without a thread it is the one in which the agent was given something last.
        """

    async def compact_context(
        self, agent_id: AgentRef, *, thread_id: str | None = None, task_id: str | None = None
    ) -> TaskRecord:
        """Make what the agent's model is shown of a thread as short as can be. Returns the task that does it.

        Without a thread it is the one in which the agent was given something last. Nothing is deleted: the journal
        keeps all of it. A caller that gives a `task_id` may call again: it is done once.
        """

    async def delete_thread(self, agent_id: AgentRef, thread_id: str) -> ThreadSummary:
        """Erase a conversation of an agent: what was said in it, its mails, and what the log tells of it, for good.

        Its tasks stay known by their ids, without content; dead letters in it are dismissed. Raises `StateError` while
        something in it waits or runs, and `UnknownThreadError`.
        """

    async def dead_letters(self) -> DeadLetters:
        """The tasks and mails that could not be done and wait for a person."""

    async def send_mail(
        self,
        to: AgentRef,
        subject: str,
        body: str,
        *,
        priority: Priority | str = Priority.NORMAL,
        thread_id: str | None = None,
        mail_id: str | None = None,
    ) -> MailRecord:
        """Send mail from the user to an agent. When this returns the mail is on disk.

        A caller that gives a `mail_id` may call again with the same content: the mail is sent once.
        """

    async def send_mails(self, mails: Sequence[MailDraft]) -> list[MailRecord]:
        """Send many mails from the user to agents at once, all of them or, if one cannot be sent, none.

        That takes much less time than one by one. When this returns they are on disk; they are returned in the order in
        which they were given. At most 1,000 go at once. A caller that gives each a `mail_id` may call again with the
        same content: each mail is sent once.
        """

    async def reply_mail(
        self,
        mail_id: str,
        body: str,
        *,
        priority: Priority | str = Priority.NORMAL,
        reply_id: str | None = None,
    ) -> MailRecord:
        """Answer a mail in the user's inbox. Under the same `reply_id` it is sent once, however often it is called."""

    async def mark_mail(self, mail_id: str, state: MailState | str) -> MailRecord:
        """Mark a mail in the user's inbox as read or archived."""

    async def mailbox(self, owner: AgentRef = USER, *, limit: int = 100) -> list[MailRecord]:  # type: ignore[assignment]
        """The mails of an agent or, by default, of the user, the newest first."""

    async def sent_mail(self, owner: AgentRef = USER, *, limit: int = 100) -> list[MailRecord]:  # type: ignore[assignment]
        """The mails that an agent or, by default, the user has sent, the newest first."""

    async def broadcast_event(self, event: str, data: Any = None, *, event_id: str | None = None) -> EventRecord:
        """Broadcast an event: it wakes the agents that sleep until it and becomes a task for those that subscribe.

        Under the same id it happens once, however often it is called.
        """

    async def list_events(self, *, limit: int = 100) -> list[EventRecord]:
        """The events that were broadcast, the newest first."""

    async def create_room(
        self, members: Iterable[AgentRef], *, title: str = "", hop_limit: int = 4, room_id: str | None = None
    ) -> RoomRecord:
        """Open a group. An answer that mentions members asks them in turn, up to `hop_limit` times in a row.

        A caller that gives an id may call again with the same content: the room is made once.
        """

    async def open_chat(self, agent_id: AgentRef) -> RoomRecord:
        """The 1-1 room of an agent. It is made when it is asked for the first time."""

    async def list_rooms(self) -> list[RoomRecord]:
        """All rooms, the oldest first."""

    async def get_room(self, room: RoomRef) -> RoomRecord:
        """The room as it is now; raises `UnknownRoomError`."""

    async def delete_room(self, room: RoomRef) -> RoomRecord:
        """Delete a room with all that was said in it, for good. Answers that are under way in it are cancelled.

        A room that is made later under the same id continues with its numbers.
        """

    async def add_member(self, room: RoomRef, agent_id: AgentRef) -> RoomRecord:
        """Let an agent into a group; it can see what was said before."""

    async def remove_member(self, room: RoomRef, agent_id: AgentRef) -> RoomRecord:
        """Take an agent out of a group. What it is about to answer is no longer posted."""

    async def post_message(
        self,
        room: RoomRef,
        text: str,
        *,
        message_id: str | None = None,
        parts: Sequence[InputPart] = (),
        deliver: Deliver | str = Deliver.IN_TURN,
    ) -> MessageRecord:
        """Say something in a room; `asked` of what is returned has the tasks in which members answer.

        In a group `@name` asks that member and `@all` all of them; without a mention all may answer or pass. Answers
        become messages of the room. A caller that gives an id may call again with the same text: it is posted once.
        `parts` are images and files as for `send_task`. With `deliver="next_step"` members that are about to answer in
        the room hear it before their next step.
        """

    async def room_messages(self, room: RoomRef, *, after: int = 0, limit: int = 100) -> list[MessageRecord]:
        """A page of the room's transcript: the messages after this number, in order."""

    async def create_schedule(
        self,
        agent_id: AgentRef | None = None,
        *,
        cron: str | None = None,
        interval_seconds: float | None = None,
        zone: str = "UTC",
        prompt: str | None = None,
        event: str | None = None,
        data: Any = None,
        missed: MissedRuns | str = MissedRuns.ONCE,
        wake: bool = False,
        schedule_id: str | None = None,
    ) -> ScheduleRecord:
        """Give the agent a prompt, or broadcast an event, at every time that `cron` or `interval_seconds` names.

        `cron` has five fields and is read in the time zone `zone`; intervals are counted from now on. `missed` says
        what becomes of due times that passed while nothing could fire: `skip`, `once` or `all`. With `wake` a prompt
        wakes its agent if it sleeps. When this returns the schedule is on disk. The same call again with the same
        `schedule_id` returns the schedule that is there. Raises `ScheduleError` that names the field which is wrong.
        """

    async def list_schedules(self, agent_id: AgentRef | None = None) -> list[ScheduleRecord]:
        """The schedules of an agent, or of the whole session, the oldest first."""

    async def get_schedule(self, schedule: ScheduleRef) -> ScheduleRecord:
        """The schedule as it is now; raises `UnknownScheduleError`."""

    async def pause_schedule(self, schedule: ScheduleRef) -> ScheduleRecord:
        """Let the schedule no longer fire until it is resumed."""

    async def resume_schedule(self, schedule: ScheduleRef) -> ScheduleRecord:
        """Let a paused schedule resume from now: what passed while it was paused does not fire and is not missed."""

    async def delete_schedule(self, schedule: ScheduleRef) -> ScheduleRecord:
        """Remove the schedule and return it as it was. Tasks that it has fired already stay."""

    async def list_locks(self) -> list[LockSummary]:
        """The locks that are held, by whom, and who waits for them."""

    async def acquire_lock(
        self, name: str, *, ttl_seconds: float = 60.0, wait_seconds: float = 0.0, holder: str | None = None
    ) -> LockRecord:
        """Take a lock for `ttl_seconds`, in the same order as the agents; its `token` renews and releases it.

        If it is held, wait for `wait_seconds` at most; raises `LockHeldError` if it is not free by then. `holder` is
        what others see of who has it, `user` by default. Whoever gives up waiting, by a cancellation for instance,
        has not got it. The lease lasts across restarts, a wait does not.
        """

    async def renew_lock(self, name: str, token: int, ttl_seconds: float = 60.0) -> LockRecord:
        """Let the lease last for `ttl_seconds` from now on; raises `LockNotHeldError` that says what became of it."""

    async def release_lock(self, name: str, token: int) -> LockRecord:
        """Give the lock back: the first that waits has it. Returns it as it was.

        Raises `LockNotHeldError` that says what became of it. Waits for a guarded block that is under way.
        """

    async def break_lock(self, name: str, reason: str = "") -> LockRecord:
        """Take the lock from whoever holds it: the first that waits has it. Returns it as it was.

        The old holder finds out when it uses its token: that fails, and says who broke the lock and why. Waits for a
        guarded block that is under way. Raises `LockNotHeldError` if nobody holds the lock.
        """

    async def check_lock(self, name: str, token: int) -> LockCheck:
        """Whether this is the current token of the lock, and what became of it if not."""

    async def list_approvals(
        self, *, state: ApprovalState | str | None = ApprovalState.PENDING, limit: int = 100
    ) -> list[ApprovalRecord]:
        """What people are asked about: by default what waits for a decision, the oldest first.

        Those of another state, or of all (None), come with the newest first.
        """

    async def get_approval(self, approval_id: str) -> ApprovalRecord:
        """The approval as it is now, with the exact arguments of the call; raises `UnknownApprovalError`."""

    async def approve(self, approval_id: str, *, digest: str | None = None, reason: str = "") -> ApprovalRecord:
        """Allow the call, exactly as it is: nobody can change its arguments. It runs as soon as its agent may.

        A `digest` that is given must be that of the call, see `ApprovalRecord.digest`. The same decision again changes
        nothing; raises `StateError` if it was decided otherwise or the task has ended.
        """

    async def refuse(self, approval_id: str, *, reason: str = "") -> ApprovalRecord:
        """Refuse the call: its model is told so, with the reason, and continues.

        The same decision again changes nothing; raises `StateError` if it was decided otherwise.
        """

    async def list_questions(
        self, *, state: QuestionState | str | None = QuestionState.PENDING, limit: int = 100
    ) -> list[QuestionRecord]:
        """What agents ask people with their tool `ask_user`: by default what waits for an answer, the oldest first.

        Those of another state, or of all (None), come with the newest first.
        """

    async def get_question(self, question_id: str) -> QuestionRecord:
        """The question as it is now, with the form of its answer; raises `UnknownQuestionError`."""

    async def answer_question(self, question_id: str, answer: Any) -> QuestionRecord:
        """Answer a question: the values of its form by name, or the value alone if there is one field.

        Raises `AnswerError` that names the fields that do not fit; the question stays open then. The same answer again
        changes nothing; raises `StateError` if it was answered otherwise or nobody waits for the answer by then.
        """

    async def refuse_question(self, question_id: str, *, reason: str = "") -> QuestionRecord:
        """Do not answer a question: its agent is told so, with the reason, and continues."""

    async def get_limits(self, agent_id: AgentRef | None = None) -> LimitsReport:
        """The limits of an agent, or of the session with the defaults of its agents.

        Each with the place where it was stated and, where that can be told, what is used of it now.
        """

    async def set_limits(self, limits: Stated, *, agent_id: AgentRef | None = None) -> LimitsReport:
        """Change limits of an agent, or of the session: numbers by name. It takes effect at once and is kept.

        None in place of a number takes the limit back, so that what the session, the server or the default says holds
        again. Limits that are not named stay as they are. Those of an agent are part of its definition. What waits for
        room resumes when a limit is raised, and so does an agent that was paused for it.
        """

    async def list_provider_accounts(self) -> list[ProviderAccount]:
        """The accounts of providers that the session has asked: how many requests are under way, and who waits.

        All sessions of the process share them.
        """

    async def list_mcp_servers(self) -> list[McpServerStatus]:
        """The servers that agents can be granted tools of, by name, with the tools that they have listed so far."""

    async def list_attachments(self, *, limit: int = 100) -> list[AttachmentRecord]:
        """The images and files that came with tasks and messages, the newest first."""

    async def get_attachment(self, digest: str) -> AttachmentContent:
        """An image or a file with its content, by its digest in tasks and messages; raises `UnknownFileError`."""

    async def list_memory(self, agent_id: AgentRef) -> list[MemoryFile]:
        """The files that an agent keeps for itself with the tool `memory`, by path."""

    async def read_memory(self, agent_id: AgentRef, path: str) -> MemoryText:
        """A file of an agent's memory, up to a megabyte of it; raises `UnknownFileError`."""

    async def start_mcp_server(self, name: str) -> McpServerStatus:
        """Start a server now and have it list its tools: otherwise that happens when an agent needs it.

        One that failed is started without the delay that it had to wait for. Raises `McpError` that says why it cannot
        be started.
        """

    async def notifications(self, *, after: int = 0, limit: int = 1000) -> list[Notification]:
        """A page of the numbered log."""

    async def at_rest(self) -> None:
        """Wait until no agent has anything left to do; then all that they did is on disk.

        An agent that is paused, asleep, stopped or without its tools is at rest, whatever waits for it.
        """

    async def list_templates(self) -> list[TemplateEntry]:
        """The templates that agents can be made of, and the files that cannot be used, each with its error."""

    async def list_resources(self) -> list[ResourceStatus]:
        """The resources that tools touch now: who holds them, and who waits for them."""

    async def find_ids(self, kind: IdKind | str, beginning: str, *, limit: int = 10) -> list[str]:
        """The ids of what is of that kind (`task`, `mail` …) which begin so; one that is just this comes first."""

    async def fork_points(self, near: int, *, limit: int = 2) -> list[int]:
        """After which entries of the log the session can be forked: those around entry `near`, in order.

        Empty if there are none: the beginning of the log was pruned, or something was deleted before.
        """

    async def prune(self, *, older_than: str | float = "30d", dry_run: bool = False) -> PruneReport:
        """Erase the content of conversations that ended longer ago, of mails and messages, and the log before that.

        `older_than` is written as `30d`, `12h` and the like, or in seconds. What is open stays, and so do dead letters,
        the user's mail until it is archived, and all that was used. Tasks, mails and messages stay known by their ids,
        without content. With `dry_run` nothing is changed, and the report tells what would be.
        """

    async def storage(self) -> StorageReport:
        """How much room the session takes, by what is in it, and the database of all sessions."""

    async def usage(self, task: TaskRef | None = None) -> UsageReport:
        """What the agents of the session have used, each and together; of a task, what all its tree has used."""

    async def snapshot(self) -> Snapshot:
        """Everything that is to be seen of the session, as it is after one notification; it is on disk by then.

        Whoever subscribes after that notification and keeps count knows from there on what the session is like.
        """


@cache
def call_named(name: str) -> Signature:
    """How the call is made, without `self`."""
    whole = signature(getattr(SessionApi, name))
    return whole.replace(parameters=[each for each in whole.parameters.values() if each.name != "self"])


def arguments_of(name: str, fields: Iterable[str]) -> dict[str, str]:
    """The parameters of the call by the fields of the params that carry them.

    A field can say of what it is, where Python need not: `task_id` for `task`, `approval_state` for `state`,
    `output_schema` for `output`.
    """
    parameters = call_named(name).parameters
    return {
        field: field
        if field in parameters
        else next(
            each for each in parameters if field in (f"{each}_id", f"{each}_schema") or field.endswith(f"_{each}")
        )
        for field in fields
    }


K = TypeVar("K", bound=type)


def told(kind: K) -> K:
    """Give the methods of the class that say nothing themselves the docstrings that they have in `SessionApi`."""
    for name, said in vars(SessionApi).items():
        member = getattr(kind, name, None)
        if not name.startswith("_") and member is not None and member.__doc__ is None:
            member.__doc__ = said.__doc__
    return kind

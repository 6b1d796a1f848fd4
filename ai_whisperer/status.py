"""What a session shows of itself at a glance: what its agents do, and what waits for a person."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ai_whisperer.base_record import Record
from ai_whisperer.conversation import Usage
from ai_whisperer.definition import Access
from ai_whisperer.records import AgentState, MailRecord, TaskRecord, TaskState


class AgentStatus(Record, frozen=True, kw_only=True):
    """What an agent is doing. `current_task` is the kind of the task that has run longest.

    It runs since `running_since`, and a step of it ended last at `last_step_at`: one that hangs shows itself there.
    `last_activity_at` is when a task of it last began or ended, or a step of one ended; at first, when it was created.
    `waiting_for` names what its loops wait for: agents, locks as `lock:name`, people as `approval:id`; `paused_for` the
    resources that its tools wait for, since others touch them now: it continues by itself. While there are
    `missing_tools` the agent waits for them: provide them with `give_tools`. One with a `paused_limit` resumes when
    that limit is raised. `sleeping_until` is what the wall clock shows when the sleep is over: if that clock is set, it
    changes, unless the agent is `sleeping_by_wall_clock`, until just that time. While the task that has run longest
    waits to ask its model again, `retry_at` says until when and `retry_reason` why: the provider is down, say.
    `dead_tasks` counts its tasks that failed and wait for a person.
    """

    agent_id: str
    state: AgentState
    current_task: str | None
    queue_size: int
    sleeping_until: float | None
    started: bool
    reason: str
    unread_mail: int
    running_tasks: tuple[str, ...]
    progress_percent: float | None
    progress_note: str
    tasks: int
    usage: Usage
    name: str
    description: str
    wake_events: tuple[str, ...] = ()
    waiting_for: tuple[str, ...] = ()
    paused_for: tuple[str, ...] = ()
    missing_tools: tuple[str, ...] = ()
    paused_limit: str | None = None
    running_since: float | None = None
    last_step_at: float | None = None
    last_activity_at: float = 0.0
    sleeping_by_wall_clock: bool = False
    retry_at: float | None = None
    dead_tasks: int = 0
    retry_reason: str = ""


class ResourceUse(Record, frozen=True, kw_only=True):
    """A tool call that touches a resource since then, or waits for it since then."""

    agent_id: str
    task_id: str
    step_id: str
    access: Access
    since: float


class ResourceStatus(Record, frozen=True, kw_only=True):
    """A resource that is touched now: who holds it, and who waits for it, in the order in which they came."""

    resource: str
    holders: tuple[ResourceUse, ...]
    waiting: tuple[ResourceUse, ...]


class UsageTotals(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks were begun, what they used, how many mails came in.

    `context_bytes` is what conversations take in memory now.
    """

    tasks: int
    usage: Usage
    mails_received: int
    context_bytes: int


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was used, by agent and in total. `cost_usd` is null where the price of no model is known.

    The mails that the user was sent count in the total of a session.
    """

    agents: dict[str, UsageTotals]
    total: UsageTotals


class IdKind(StrEnum):
    """What an id is of. Mail is that in the user's inbox."""

    TASK = "task"
    MAIL = "mail"
    APPROVAL = "approval"
    ROOM = "room"
    SCHEDULE = "schedule"


class ToolKind(StrEnum):
    """`coordination` tools touch only the session, `machine` tools come with the package, `own` were provided."""

    COORDINATION = "coordination"
    MACHINE = "machine"
    OWN = "own"


class Extent(StrEnum):
    """Of which calls something holds; `sometimes`: it depends on the arguments."""

    NEVER = "never"
    SOMETIMES = "sometimes"
    ALWAYS = "always"


class ToolEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that agents can be granted or, with an `error`, a tool file that cannot be used, or not all of it.

    `source` is the file that it is from; empty for a tool of the package or of the program that runs the server.
    """

    name: str
    kind: ToolKind
    source: str = ""
    description: str = ""
    idempotent: Extent = Extent.NEVER
    needs_approval: Extent = Extent.NEVER
    touches: tuple[str, ...] = ()
    untrusted: bool = False
    error: str | None = None


class ThreadSummary(Record, frozen=True, kw_only=True):
    """A conversation of one agent, as the tasks in it tell."""

    id: str
    tasks: int
    first_at: float
    last_at: float

    @property
    def thread_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id


class DeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """What could not be done and waits for a person: `retry_task` takes it up again, `dismiss_task` off the list."""

    tasks: list[TaskRecord]
    mails: list[MailRecord]


class Retried(StrEnum):
    """What was begun again: a model request that failed, a loop that crashed, a task by a person."""

    REQUEST = "request"
    LOOP = "loop"
    TASK = "task"


class WorkCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of the work of a session since it was opened, and what waits for a person now.

    `ended` counts tasks by the state that they ended in, `retried` what was begun again.
    """

    ended: dict[TaskState, int]
    retried: dict[Retried, int]
    dead_tasks: int
    dead_mails: int
    pending_approvals: int


class RetriedTasks(msgspec.Struct, frozen=True, kw_only=True):
    """What came of retrying all failed tasks: how many were queued again, and why others were not, by task id."""

    retried: int
    not_retried: int
    task_ids: tuple[str, ...]
    reasons: dict[str, str]


class LimitScope(StrEnum):
    """Whom a limit holds for: an agent, a task and all that it causes, a session, or all sessions of a server."""

    AGENT = "agent"
    TREE = "tree"
    SESSION = "session"
    SERVER = "server"


class LimitAction(StrEnum):
    """What happens at a limit: a call is refused, a task fails, its agent is paused for a person, or work waits.

    A result that is too long is cut.
    """

    REFUSED = "refused"
    FAILED = "failed"
    PAUSED = "paused"
    WAITING = "waiting"
    CUT = "cut"


class LimitSource(StrEnum):
    """Where a limit that holds was stated; `setting` is what the server, or the session manager, was started with."""

    AGENT = "agent"
    SESSION = "session"
    SERVER = "server"
    SETTING = "setting"
    DEFAULT = "default"


class LimitState(Record, frozen=True, kw_only=True):
    """A limit that holds. `used` is what is used of it now, where that can be told; 0 as a value means no limit.

    `reached` counts how often it was reached since the session was opened.
    """

    name: str
    value: float
    source: LimitSource
    used: float | None = None
    reached: int = 0


class LimitsReport(Record, frozen=True, kw_only=True):
    """The limits of an agent, or of a session: what it may use in all, and the defaults of its agents."""

    scope: LimitScope
    agent_id: str | None = None
    limits: tuple[LimitState, ...] = ()

"""The tools for working in a team: delegation, help, sleep, events, locks, and seeing how far the others are."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ai_whisperer.core.locking import in_words
from ai_whisperer.core.marks import as_json
from ai_whisperer.core.tasks import is_delegated
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.tasks import Priority
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.tools.desk import Arguments, CoordinationTool, Desk, Wanted
from ai_whisperer.tools.mail_tools import Seconds

HELP_REQUESTED = "help_requested"
"""The event that asks whoever subscribes to it for help."""

_HELP_SUBJECT_CHARACTERS = 100


class DelegateTask(Arguments, frozen=True, kw_only=True):
    """Give an agent a task. The result comes as mail."""

    to_agent: str
    task: str
    priority: Priority = Priority.NORMAL
    timeout_seconds: Seconds | None = None

    def run(self, desk: Desk) -> ToolResult:
        task = desk.delegate(
            to=self.to_agent, prompt=self.task, priority=self.priority, timeout_seconds=self.timeout_seconds
        )
        return ToolResult(content=f"Delegated to {task.agent_id} as task {task.id}. Its result will come as mail.")


class RequestHelp(Arguments, frozen=True, kw_only=True):
    """Ask for help: an agent, else whoever offers it."""

    problem: str
    to_agent: str | None = None

    def run(self, desk: Desk) -> ToolResult:
        if not self.problem.strip():
            raise InvalidInputError("The problem is empty; nobody was asked. Say what you need help with.")
        subject = f"Help wanted: {' '.join(self.problem.split())[:_HELP_SUBJECT_CHARACTERS]}"
        if self.to_agent is not None:
            mail = desk.send_mail(to=self.to_agent, subject=subject, body=self.problem, priority=Priority.HIGH)
            told = f"Asked {mail.recipient} for help as mail {mail.id}. An answer will come as mail."
            return ToolResult(content=told, mails_sent=1)
        helpers = desk.listeners(HELP_REQUESTED)
        desk.broadcast(
            event=HELP_REQUESTED, data={"problem": self.problem, "answer": "by send_mail to whoever broadcast this"}
        )
        if helpers:
            return ToolResult(content=f"Asked {helpers} agent(s) that offer help. An answer will come as mail.")
        mail = desk.send_mail(to=USER, subject=subject, body=self.problem, priority=Priority.HIGH)
        return ToolResult(content=f"No agent offers help, so the user was asked as mail {mail.id}.", mails_sent=1)


class Sleep(Arguments, frozen=True, kw_only=True):
    """Sleep after this task, until a time (ISO 8601 with zone) or an event."""

    duration_seconds: float | None = None
    until: str | None = None
    wake_events: tuple[str, ...] = ()
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = ""

    def run(self, desk: Desk) -> ToolResult:
        words = desk.sleep(
            duration_seconds=self.duration_seconds,
            until=self.until,
            wake_events=self.wake_events,
            reason=self.reason,
        )
        return ToolResult(content=f"You will sleep {words} as soon as your present work has ended. So end it now.")


class WakeAgent(Arguments, frozen=True, kw_only=True):
    """Wake an agent."""

    agent: str
    reason: Annotated[str, msgspec.Meta(max_length=1000)]

    def run(self, desk: Desk) -> ToolResult:
        desk.wake(agent=self.agent, reason=self.reason)
        return ToolResult(content=f"Woke {self.agent}.")


class BroadcastEvent(Arguments, frozen=True, kw_only=True):
    """Tell subscribers, and wake who sleeps for it."""

    event: str
    data: Any = None

    def run(self, desk: Desk) -> ToolResult:
        event = desk.broadcast(event=self.event, data=self.data)
        return ToolResult(
            content=f"Broadcast '{event.name}': {event.woken} agent(s) woken, {event.notified} subscriber(s) told."
        )


class AcquireLock(Arguments, frozen=True, kw_only=True):
    """Take a lock, or keep yours, for ttl_seconds (60)."""

    name: str
    ttl_seconds: Seconds = 60.0
    wait_seconds: Seconds | None = None

    def run(self, desk: Desk) -> ToolResult | None:
        lock = desk.acquire_lock(name=self.name, ttl_seconds=self.ttl_seconds, wait_seconds=self.wait_seconds)
        return None if lock is None else ToolResult(content=in_words(lock, self.ttl_seconds))


class RenewLock(Arguments, frozen=True, kw_only=True):
    """Keep your lock for ttl_seconds (60) more."""

    name: str
    ttl_seconds: Seconds = 60.0

    def run(self, desk: Desk) -> ToolResult:
        lock = desk.renew_lock(self.name, self.ttl_seconds)
        return ToolResult(
            content=f"Lock '{lock.name}' with token {lock.token} is yours for {self.ttl_seconds:g} seconds more."
        )


class ReleaseLock(Arguments, frozen=True, kw_only=True):
    """Give your lock back."""

    name: str

    def run(self, desk: Desk) -> ToolResult:
        desk.release_lock(self.name)
        return ToolResult(content=f"Released lock '{self.name}'.")


class ListLocks(Arguments, frozen=True, kw_only=True):
    """Who holds locks, and who waits."""

    def run(self, desk: Desk) -> ToolResult:
        return _json(
            [
                {
                    "name": lock.name,
                    "holder": lock.holder,
                    "token": lock.token,
                    "expires_at": lock.expires_at,
                    "waiting": [each.waiter for each in lock.waiting],
                }
                for lock in desk.locks()
            ]
        )


class ListAgents(Arguments, frozen=True, kw_only=True):
    """All agents and what they do."""

    def run(self, desk: Desk) -> ToolResult:
        return _json(desk.agents())


class AgentStatusOf(Arguments, frozen=True, kw_only=True):
    """State of an agent or given task."""

    agent: str

    def wants(self) -> Wanted:
        return Wanted(task_id=self.agent if is_delegated(self.agent) else "")

    def run(self, desk: Desk) -> ToolResult:
        if is_delegated(self.agent):
            return _json(desk.task_status(self.agent))
        return _json(desk.agent_status(self.agent))


class CreateAgent(Arguments, frozen=True, kw_only=True):
    """Create an agent and start it: of a template, or with a prompt that says what it is and does.

    It has no more rights than you. Without a template and a prompt it is made of the template that is called like it,
    if there is one.
    """

    agent_id: str
    template: str | None = None
    prompt: str | None = None
    description: Annotated[str, msgspec.Meta(max_length=1000)] = ""

    def run(self, desk: Desk) -> ToolResult:
        agent_id = desk.create_agent(
            self.agent_id, template=self.template, prompt=self.prompt, description=self.description
        )
        return ToolResult(content=f"Created and started {agent_id}. Give it work with delegate_task or send_mail.")


class ReportProgress(Arguments, frozen=True, kw_only=True):
    """Tell how far your task is."""

    percent: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    note: Annotated[str, msgspec.Meta(max_length=500)] = ""

    def run(self, desk: Desk) -> ToolResult:
        desk.report_progress(self.percent, self.note)
        return ToolResult(content="Noted.")


def _json(value: Any) -> ToolResult:
    return ToolResult(content=as_json(value))


TEAM_TOOLS = (
    CoordinationTool("delegate_task", DelegateTask),
    CoordinationTool("request_help", RequestHelp),
    CoordinationTool("sleep", Sleep),
    CoordinationTool("wake_agent", WakeAgent),
    CoordinationTool("broadcast_event", BroadcastEvent),
    CoordinationTool("acquire_lock", AcquireLock),
    CoordinationTool("release_lock", ReleaseLock),
    CoordinationTool("list_agents", ListAgents),
    CoordinationTool("agent_status", AgentStatusOf),
    CoordinationTool("report_progress", ReportProgress),
)

CREATE_AGENT_TOOL = CoordinationTool("create_agent", CreateAgent)
LOCK_TOOLS = (CoordinationTool("renew_lock", RenewLock), CoordinationTool("list_locks", ListLocks))
"""What few need: taking a lock that is one's own keeps it too."""

"""The tools for working in a team: delegation, help, sleep, events, locks, and seeing how far the others are."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ai_whisperer.core.locking import in_words
from ai_whisperer.core.marks import as_json
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.tasks import Priority
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.tools.desk import Arguments, CoordinationTool, Desk
from ai_whisperer.tools.mail_tools import Seconds

HELP_REQUESTED = "help_requested"
"""The event that asks whoever subscribes to it for help."""

_HELP_SUBJECT_CHARACTERS = 100


class DelegateTask(Arguments, frozen=True, kw_only=True):
    to_agent: str
    task: str
    priority: Priority = Priority.NORMAL
    timeout_seconds: Seconds | None = None


class RequestHelp(Arguments, frozen=True, kw_only=True):
    problem: str
    to_agent: str | None = None


class Sleep(Arguments, frozen=True, kw_only=True):
    duration_seconds: float | None = None
    until: str | None = None
    wake_events: tuple[str, ...] = ()
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class WakeAgent(Arguments, frozen=True, kw_only=True):
    agent: str
    reason: Annotated[str, msgspec.Meta(max_length=1000)]


class BroadcastEvent(Arguments, frozen=True, kw_only=True):
    event: str
    data: Any = None


class AcquireLock(Arguments, frozen=True, kw_only=True):
    name: str
    ttl_seconds: Seconds = 60.0
    wait_seconds: Seconds | None = None


class RenewLock(Arguments, frozen=True, kw_only=True):
    name: str
    ttl_seconds: Seconds = 60.0


class ReleaseLock(Arguments, frozen=True, kw_only=True):
    name: str


class ListLocks(Arguments, frozen=True, kw_only=True):
    pass


class ListAgents(Arguments, frozen=True, kw_only=True):
    pass


class AgentStatusOf(Arguments, frozen=True, kw_only=True):
    agent: str


class CreateAgent(Arguments, frozen=True, kw_only=True):
    agent_id: str
    template: str | None = None
    prompt: str | None = None
    description: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class ReportProgress(Arguments, frozen=True, kw_only=True):
    percent: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    note: Annotated[str, msgspec.Meta(max_length=500)] = ""


def _delegate_task(desk: Desk, given: DelegateTask) -> ToolResult:
    task = desk.delegate(
        to=given.to_agent, prompt=given.task, priority=given.priority, timeout_seconds=given.timeout_seconds
    )
    return ToolResult(content=f"Delegated to {task.agent_id} as task {task.id}. Its result will come as mail.")


def _request_help(desk: Desk, given: RequestHelp) -> ToolResult:
    if not given.problem.strip():
        raise InvalidInputError("The problem is empty; nobody was asked. Say what you need help with.")
    subject = f"Help wanted: {' '.join(given.problem.split())[:_HELP_SUBJECT_CHARACTERS]}"
    if given.to_agent is not None:
        mail = desk.send_mail(to=given.to_agent, subject=subject, body=given.problem, priority=Priority.HIGH)
        told = f"Asked {mail.recipient} for help as mail {mail.id}. An answer will come as mail."
        return ToolResult(content=told, mails_sent=1)
    helpers = desk.listeners(HELP_REQUESTED)
    desk.broadcast(
        event=HELP_REQUESTED, data={"problem": given.problem, "answer": "by send_mail to whoever broadcast this"}
    )
    if helpers:
        return ToolResult(content=f"Asked {helpers} agent(s) that offer help. An answer will come as mail.")
    mail = desk.send_mail(to=USER, subject=subject, body=given.problem, priority=Priority.HIGH)
    return ToolResult(content=f"No agent offers help, so the user was asked as mail {mail.id}.", mails_sent=1)


def _sleep(desk: Desk, given: Sleep) -> ToolResult:
    words = desk.sleep(
        duration_seconds=given.duration_seconds,
        until=given.until,
        wake_events=given.wake_events,
        reason=given.reason,
    )
    return ToolResult(content=f"You will sleep {words} as soon as your present work has ended. So end it now.")


def _wake_agent(desk: Desk, given: WakeAgent) -> ToolResult:
    desk.wake(agent=given.agent, reason=given.reason)
    return ToolResult(content=f"Woke {given.agent}.")


def _broadcast_event(desk: Desk, given: BroadcastEvent) -> ToolResult:
    event = desk.broadcast(event=given.event, data=given.data)
    return ToolResult(
        content=f"Broadcast '{event.name}': {event.woken} agent(s) woken, {event.notified} subscriber(s) told."
    )


def _acquire_lock(desk: Desk, given: AcquireLock) -> ToolResult | None:
    lock = desk.acquire_lock(name=given.name, ttl_seconds=given.ttl_seconds, wait_seconds=given.wait_seconds)
    return None if lock is None else ToolResult(content=in_words(lock, given.ttl_seconds))


def _renew_lock(desk: Desk, given: RenewLock) -> ToolResult:
    lock = desk.renew_lock(given.name, given.ttl_seconds)
    return ToolResult(
        content=f"Lock '{lock.name}' with token {lock.token} is yours for {given.ttl_seconds:g} seconds more."
    )


def _release_lock(desk: Desk, given: ReleaseLock) -> ToolResult:
    desk.release_lock(given.name)
    return ToolResult(content=f"Released lock '{given.name}'.")


def _list_locks(desk: Desk, given: ListLocks) -> ToolResult:
    del given
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


def _list_agents(desk: Desk, given: ListAgents) -> ToolResult:
    del given
    return _json(desk.agents())


def _agent_status(desk: Desk, given: AgentStatusOf) -> ToolResult:
    return _json(desk.agent_status(given.agent))


def _create_agent(desk: Desk, given: CreateAgent) -> ToolResult:
    agent_id = desk.create_agent(
        given.agent_id, template=given.template, prompt=given.prompt, description=given.description
    )
    return ToolResult(content=f"Created and started {agent_id}. Give it work with delegate_task or send_mail.")


def _report_progress(desk: Desk, given: ReportProgress) -> ToolResult:
    desk.report_progress(given.percent, given.note)
    return ToolResult(content="Noted.")


def _json(value: Any) -> ToolResult:
    return ToolResult(content=as_json(value))


TEAM_TOOLS = (
    CoordinationTool(
        "delegate_task",
        "Give a task to another agent. You get its id at once and continue; the result comes to you as mail.",
        DelegateTask,
        _delegate_task,
    ),
    CoordinationTool(
        "request_help",
        "Ask for help with a problem: an agent by name, or whoever offers help, else the user. The answer is a mail.",
        RequestHelp,
        _request_help,
    ),
    CoordinationTool(
        "sleep",
        "Sleep once your present work has ended: for duration_seconds, until a time (ISO 8601 with zone, for instance "
        "2030-01-31T09:00:00+01:00), or until one of wake_events, whichever comes first.",
        Sleep,
        _sleep,
    ),
    CoordinationTool("wake_agent", "Wake a sleeping agent and tell it why.", WakeAgent, _wake_agent),
    CoordinationTool(
        "broadcast_event",
        "Broadcast a named event, with data if you like. It wakes agents that sleep until it and reaches subscribers.",
        BroadcastEvent,
        _broadcast_event,
    ),
    CoordinationTool(
        "acquire_lock",
        "Take a lock on something that others use too, and wait for it if another has it. It is yours for ttl_seconds "
        "at most; taking it again renews it. You are told a token: write_file and edit_file take it together with the "
        "lock, and write only while the lock is yours.",
        AcquireLock,
        _acquire_lock,
    ),
    CoordinationTool(
        "renew_lock",
        "Keep a lock that you hold: it is yours for ttl_seconds from now on.",
        RenewLock,
        _renew_lock,
    ),
    CoordinationTool(
        "release_lock",
        "Give a lock back that you hold. Do it after the writes that it guards have ended, in a later answer.",
        ReleaseLock,
        _release_lock,
    ),
    CoordinationTool("list_locks", "List the locks that are held, by whom, and who waits.", ListLocks, _list_locks),
    CoordinationTool("list_agents", "List the agents of this session and what they do.", ListAgents, _list_agents),
    CoordinationTool(
        "agent_status", "See the state, the work and the progress of one agent.", AgentStatusOf, _agent_status
    ),
    CoordinationTool("report_progress", "Tell others how far your present task is.", ReportProgress, _report_progress),
)

CREATE_AGENT_TOOL = CoordinationTool(
    "create_agent",
    "Create an agent and start it: of a template, or with a prompt that says what it is and does. It has no more "
    "rights than you. Without a template and a prompt it is made of the template that is called like it, if there is "
    "one.",
    CreateAgent,
    _create_agent,
)

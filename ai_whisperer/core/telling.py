"""What a notification says, in words: for people who watch, and for the lines of logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ai_whisperer.core.moments import moment
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.notifications import NOTIFICATIONS
from ai_whisperer.domain.notifications.agents import (
    AgentFailing,
    AgentPaused,
    AgentResumed,
    AgentStateChanged,
    AgentStopped,
    AgentToolsMissing,
)
from ai_whisperer.domain.notifications.approvals import (
    ApprovalApproved,
    ApprovalRefused,
    ApprovalRequested,
    ApprovalWithdrawn,
)
from ai_whisperer.domain.notifications.base import Told
from ai_whisperer.domain.notifications.events import EventBroadcast
from ai_whisperer.domain.notifications.locks import LockBroken, LockExpired, LockWaiting
from ai_whisperer.domain.notifications.mail import MailSent
from ai_whisperer.domain.notifications.resources import ResourceGranted, ResourceWaiting
from ai_whisperer.domain.notifications.rooms import RoomAbsent, RoomMessage, RoomPassed, RoomUnanswered
from ai_whisperer.domain.notifications.schedules import ScheduleFired, ScheduleMissed
from ai_whisperer.domain.notifications.steps import StepFinished, StepOutput, StepRetried
from ai_whisperer.domain.notifications.switch import SwitchBegan, SwitchEnded
from ai_whisperer.domain.notifications.tasks import (
    TaskCancelled,
    TaskCompleted,
    TaskDismissed,
    TaskFailed,
    TaskProgress,
    TaskRestarting,
    TaskStarted,
)

_Params = dict[str, Any]


def told(name: str, params: _Params) -> tuple[str, str] | None:
    """Who did what; None for what is of no interest to a person who watches."""
    kind = NOTIFICATIONS.get(name)
    return None if kind is None or kind not in _TELLERS else _TELLERS[kind](params)


def _mail(params: _Params) -> tuple[str, str] | None:
    if params["sender"] == USER:
        return None
    return params["sender"], f"mails {params['recipient']}: {params['subject']}"


def _step(params: _Params) -> tuple[str, str] | None:
    if "tool" not in params:
        return None
    return params["agentId"], f"used {params['tool']}" + (", which failed" if "isError" in params else "")


def _output(params: _Params) -> tuple[str, str] | None:
    """The last line of what a tool writes; those before it went by."""
    lines = [line for line in params["text"].splitlines() if line.strip()]
    return (params["agentId"], f"| {lines[-1]}") if lines else None


def _progress(params: _Params) -> tuple[str, str]:
    percent = "" if params["percent"] is None else f" {params['percent']:g} %"
    return params["agentId"], f"reports{percent}: {params['note']}"


def _state(params: _Params) -> tuple[str, str] | None:
    if params["to"] == AgentState.SLEEPING:
        return params["agentId"], "falls asleep"
    if params["from"] == AgentState.SLEEPING and params["action"] == "wake":
        return params["agentId"], f"wakes up: {params.get('reason', 'no reason was given')}"
    return None


def _room(params: _Params) -> tuple[str, str] | None:
    return None if params["sender"] == USER else (params["sender"], f"says: {params['text']}")


def _missing(params: _Params) -> tuple[str, str]:
    return params["agentId"], f"lacks its tools: {', '.join(params['tools'])}"


def _lock_broken(params: _Params) -> tuple[str, str]:
    why = f": {params['reason']}" if params["reason"] else ""
    return params["by"], f"breaks the lock {params['name']}, which {params['holder']} held{why}"


def _turn(params: _Params) -> tuple[str, str]:
    before = f" (before it: {', '.join(params['holders'])})" if params["holders"] else ""
    return params["agentId"], f"is paused for {', '.join(params['resources'])}{before}"


def _schedule(words: str) -> Callable[[_Params], tuple[str, str]]:
    def tell(params: _Params) -> tuple[str, str]:
        return params["agentId"] or "the clock", words.format_map(params)

    return tell


def _of_agent(words: str) -> Callable[[_Params], tuple[str, str]]:
    def tell(params: _Params) -> tuple[str, str]:
        error = {"error": params["error"]["message"]} if "error" in params else {}
        why = {"why": f": {params['reason']}" if params.get("reason") else ""}
        return params["agentId"], words.format_map({**params, **error, **why})

    return tell


def _retry(params: _Params) -> tuple[str, str]:
    at, error = moment(params["retryAt"]), params["error"]["message"]
    return params["agentId"], f"waits for its provider, next try at {at}: {error}"


_TELLERS: dict[type[Told], Callable[[_Params], tuple[str, str] | None]] = {
    AgentStateChanged: _state,
    AgentPaused: _of_agent("is paused{why}"),
    AgentResumed: _of_agent("resumes"),
    AgentStopped: _of_agent("is stopped{why}"),
    AgentFailing: _of_agent("fails too often{why}"),
    AgentToolsMissing: _missing,
    ApprovalRequested: _of_agent("waits for your approval of {tool}: whisperer approvals show {approvalId}"),
    ApprovalApproved: _of_agent("may use {tool}{why}"),
    ApprovalRefused: _of_agent("may not use {tool}{why}"),
    ApprovalWithdrawn: _of_agent("no longer asks to use {tool}{why}"),
    TaskStarted: _of_agent("starts a task ({kind})"),
    TaskProgress: _progress,
    TaskCompleted: _of_agent("finishes its task"),
    TaskFailed: _of_agent("fails: {error}"),
    TaskCancelled: _of_agent("leaves its task, which was cancelled{why}"),
    TaskDismissed: _of_agent("no longer has to do its task {taskId}, which was dismissed"),
    TaskRestarting: _of_agent("begins its task again: {error}"),
    EventBroadcast: lambda params: (params["sender"], f"broadcasts {params['event']}"),
    LockBroken: _lock_broken,
    LockExpired: lambda params: (params["holder"], f"lost the lock {params['name']} because its lease ran out"),
    LockWaiting: lambda params: (
        params["waiter"],
        f"waits for the lock {params['name']}, which {params['holder']} holds",
    ),
    MailSent: _mail,
    ResourceWaiting: _turn,
    ResourceGranted: _of_agent("has its turn and continues"),
    RoomMessage: _room,
    RoomPassed: _of_agent("passes"),
    RoomUnanswered: _of_agent("does not answer: {error}"),
    RoomAbsent: _of_agent("is not asked: it is {reason}"),
    ScheduleFired: _schedule("is reached by the schedule {scheduleId}"),
    ScheduleMissed: _schedule("was not reached {count} times by the schedule {scheduleId}: {reason}"),
    StepFinished: _step,
    StepOutput: _output,
    StepRetried: _retry,
    SwitchBegan: _of_agent("waits for {toAgent}"),
    SwitchEnded: _of_agent("no longer waits for {toAgent}: {outcome}"),
}

"""What happens in a session, told line by line for people who watch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ai_whisperer.cli.output import moment
from ai_whisperer.cli.printable import printable
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.notification import Notification

_Params = dict[str, Any]


def line_of(note: Notification) -> str | None:
    """The notification in one line; None for what is of no interest to a person who watches."""
    tell = _TELLERS.get(note.name)
    told = None if tell is None else tell(note.params)
    return None if told is None else f"{note.seq or '':>4}  {told[0]:<10} {told[1]}"


def shown_line(note: Notification, *, width: int) -> str | None:
    """The same, made fit for a terminal and cut at a width."""
    line = line_of(note)
    return None if line is None else printable(" ".join(line.splitlines()))[:width]


def way_out(state: AgentState, agent_id: str) -> str | None:
    """The command that lets an agent in this state go on; None if it needs none."""
    command = {AgentState.PAUSED: "resume", AgentState.SLEEPING: "wake", AgentState.STOPPED: "start"}.get(state)
    return None if command is None else f"whisperer {command} {agent_id}"


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


_TELLERS: dict[str, Callable[[_Params], tuple[str, str] | None]] = {
    "agent.state_changed": _state,
    "agent.paused": _of_agent("is paused{why}"),
    "agent.resumed": _of_agent("resumes"),
    "agent.stopped": _of_agent("is stopped{why}"),
    "agent.failing": _of_agent("fails too often{why}"),
    "agent.tools_missing": _missing,
    "approval.requested": _of_agent("waits for your approval of {tool}: whisperer approvals show {approvalId}"),
    "approval.approved": _of_agent("may use {tool}{why}"),
    "approval.refused": _of_agent("may not use {tool}{why}"),
    "approval.withdrawn": _of_agent("no longer asks to use {tool}{why}"),
    "async.task.started": _of_agent("starts a task ({kind})"),
    "async.task.progress": _progress,
    "async.task.completed": _of_agent("finishes its task"),
    "async.task.error": _of_agent("fails: {error}"),
    "async.task.cancelled": _of_agent("leaves its task, which was cancelled{why}"),
    "async.task.dismissed": _of_agent("no longer has to do its task {taskId}, which was dismissed"),
    "async.task.restarting": _of_agent("begins its task again: {error}"),
    "event.broadcast": lambda params: (params["sender"], f"broadcasts {params['event']}"),
    "lock.broken": _lock_broken,
    "lock.expired": lambda params: (params["holder"], f"lost the lock {params['name']} because its lease ran out"),
    "lock.waiting": lambda params: (
        params["waiter"],
        f"waits for the lock {params['name']}, which {params['holder']} holds",
    ),
    "mail.sent": _mail,
    "resource.waiting": _turn,
    "resource.granted": _of_agent("has its turn and continues"),
    "room.message": _room,
    "room.passed": _of_agent("passes"),
    "room.unanswered": _of_agent("does not answer: {error}"),
    "room.absent": _of_agent("is not asked: it is {reason}"),
    "schedule.fired": _schedule("is reached by the schedule {scheduleId}"),
    "schedule.missed": _schedule("was not reached {count} times by the schedule {scheduleId}: {reason}"),
    "step.finished": _step,
    "step.output": _output,
    "step.retried": _retry,
    "switch.began": _of_agent("waits for {toAgent}"),
    "switch.ended": _of_agent("no longer waits for {toAgent}: {outcome}"),
}

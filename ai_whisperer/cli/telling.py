"""What happens in a session, told line by line for people who watch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ai_whisperer.cli.printable import printable
from ai_whisperer.records import USER, AgentState, Notification

_Params = dict[str, Any]


def line_of(note: Notification) -> str | None:
    """The notification in one line; None for what is of no interest to a person who watches."""
    tell = _TELLERS.get(note.name)
    told = None if tell is None else tell(note.params)
    return None if told is None else f"{note.seq:4}  {told[0]:<10} {told[1]}"


def shown_line(note: Notification, *, width: int) -> str | None:
    """The same, made fit for a terminal and cut at a width."""
    line = line_of(note)
    return None if line is None else printable(" ".join(line.splitlines()))[:width]


def _mail(params: _Params) -> tuple[str, str] | None:
    if params["sender"] == USER:
        return None
    return params["sender"], f"mails {params['recipient']}: {params['subject']}"


def _step(params: _Params) -> tuple[str, str] | None:
    if "tool" not in params:
        return None
    return params["agentId"], f"used {params['tool']}" + (", which failed" if "isError" in params else "")


def _progress(params: _Params) -> tuple[str, str]:
    percent = "" if params["percent"] is None else f" {params['percent']:g} %"
    return params["agentId"], f"reports{percent}: {params['note']}"


def _state(params: _Params) -> tuple[str, str] | None:
    if params["to"] == AgentState.SLEEPING:
        return params["agentId"], "falls asleep"
    if params["from"] == AgentState.SLEEPING and params["action"] == "wake":
        return params["agentId"], f"wakes up: {params.get('reason', 'no reason was given')}"
    return None


def _of_agent(words: str) -> Callable[[_Params], tuple[str, str]]:
    def tell(params: _Params) -> tuple[str, str]:
        error = {"error": params["error"]["message"]} if "error" in params else {}
        return params["agentId"], words.format_map({**params, **error})

    return tell


_TELLERS: dict[str, Callable[[_Params], tuple[str, str] | None]] = {
    "agent.state_changed": _state,
    "agent.stopped": _of_agent("is stopped"),
    "async.task.started": _of_agent("starts a task ({kind})"),
    "async.task.progress": _progress,
    "async.task.completed": _of_agent("finishes its task"),
    "async.task.error": _of_agent("fails: {error}"),
    "event.broadcast": lambda params: (params["sender"], f"broadcasts {params['event']}"),
    "mail.sent": _mail,
    "step.finished": _step,
    "step.retried": _of_agent("retries: {error}"),
    "switch.began": _of_agent("waits for {toAgent}"),
    "switch.ended": _of_agent("no longer waits for {toAgent}: {outcome}"),
}

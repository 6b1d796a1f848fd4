"""What happens in a session, told line by line for people who watch."""

from __future__ import annotations

from ai_whisperer.cli.printable import printable
from ai_whisperer.core.telling import told
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications import NOTIFICATIONS
from ai_whisperer.domain.notifications.agents import AgentStateChanged
from ai_whisperer.domain.notifications.approvals import ApprovalRequested
from ai_whisperer.domain.notifications.mail import MailSent
from ai_whisperer.domain.notifications.questions import QuestionAsked
from ai_whisperer.domain.notifications.rooms import RoomMessage
from ai_whisperer.domain.notifications.steps import StepFinished

WAS_REASONING = "(That was the model's reasoning: it left the opening tag out. The answer follows.)"
"""Told of what was shown of an answer and turned out to be none."""


def line_of(note: Notification) -> str | None:
    """The notification in one line; None for what is of no interest to a person who watches."""
    words = told(note.name, note.params) if _is_watched(note) else None
    if words is None:
        return None
    return f"{note.seq or '':>4}  {words[0]:<10} {words[1]}{_way_on(note)}"


def _way_on(note: Notification) -> str:
    """The command with which a person who is waited for goes on, if somebody waits."""
    if note.name == ApprovalRequested.wire_name:
        return f": whisperer approvals show {note.params['approvalId']}"
    if note.name == QuestionAsked.wire_name:
        return f" (whisperer questions answer {note.params['questionId']})"
    return ""


def shown_line(note: Notification, *, width: int) -> str | None:
    """The same, made fit for a terminal and cut at a width."""
    line = line_of(note)
    return None if line is None else printable(" ".join(line.splitlines()))[:width]


def _is_watched(note: Notification) -> bool:
    """Not what people do themselves, nor what a model does step by step."""
    params, kind = note.params, NOTIFICATIONS.get(note.name)
    if kind in (MailSent, RoomMessage):
        return bool(params["sender"] != USER)
    if kind is AgentStateChanged:
        return AgentState.SLEEPING in (params["to"], params["from"] if params["action"] == "wake" else None)
    if kind is StepFinished:
        return "tool" in params
    return kind is not None and kind.watched


def way_out(state: AgentState, agent_id: str) -> str | None:
    """The command that lets an agent in this state go on; None if it needs none."""
    command = {AgentState.PAUSED: "resume", AgentState.SLEEPING: "wake", AgentState.STOPPED: "start"}.get(state)
    return None if command is None else f"whisperer {command} {agent_id}"

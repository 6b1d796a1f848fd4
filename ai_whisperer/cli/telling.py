"""What happens in a session, told line by line for people who watch."""

from __future__ import annotations

from ai_whisperer.cli.printable import printable
from ai_whisperer.core.telling import told
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.notification import Notification


def line_of(note: Notification) -> str | None:
    """The notification in one line; None for what is of no interest to a person who watches."""
    words = told(note.name, note.params)
    return None if words is None else f"{note.seq or '':>4}  {words[0]:<10} {words[1]}"


def shown_line(note: Notification, *, width: int) -> str | None:
    """The same, made fit for a terminal and cut at a width."""
    line = line_of(note)
    return None if line is None else printable(" ".join(line.splitlines()))[:width]


def way_out(state: AgentState, agent_id: str) -> str | None:
    """The command that lets an agent in this state go on; None if it needs none."""
    command = {AgentState.PAUSED: "resume", AgentState.SLEEPING: "wake", AgentState.STOPPED: "start"}.get(state)
    return None if command is None else f"whisperer {command} {agent_id}"

"""Agents as commands show them: what they are doing, how far they are, what they have used, their definitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ai_whisperer.cli.output import Column
from ai_whisperer.cli.printable import as_json
from ai_whisperer.cli.telling import way_out
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.agents import AgentState, AgentStatus
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.definition import INHERIT, AgentDefinition, CutAnswers
from ai_whisperer.domain.limits import Limits
from ai_whisperer.domain.schedules import ScheduleDefinition
from ai_whisperer.domain.tasks import TaskRecord, TaskState

_BAR_WIDTH = 10
_STYLES = {
    AgentState.ACTIVE: "green",
    AgentState.PAUSED: "yellow",
    AgentState.SLEEPING: "blue",
    AgentState.STOPPED: "red",
    TaskState.RUNNING: "green",
    TaskState.FAILED: "red",
    TaskState.DEAD: "red",
    TaskState.CANCELLED: "yellow",
}


def hindrance(status: AgentStatus) -> str | None:
    """Why the agent takes no work now, and what to do about it; None if it does."""
    name = status.agent_id
    if status.missing_tools:
        missing = ", ".join(status.missing_tools)
        return f"{name} waits for tools that nobody has provided: {missing}. Start the program that has them."
    command = way_out(status.state, name) or f"whisperer start {name}"
    if status.started and status.state in (AgentState.IDLE, AgentState.ACTIVE):
        return None
    if status.paused_limit is not None:
        command = larger_limit(name, status.paused_limit)
    described = status.state if status.started or status.state is AgentState.STOPPED else "not started"
    reason = f" ({status.reason})" if status.reason else ""
    return f"{name} is {described}{reason} and takes no work now. To change that: {command}"


def larger_limit(agent_id: str, limit: str) -> str:
    """The command that resumes an agent that is paused for that limit."""
    whose = f"--agent {agent_id} " if limit in Limits.__struct_fields__ else ""
    return f"whisperer limits set {whose}{limit}=NUMBER"


def style_of(state: str) -> str:
    """How a state of an agent or of a task looks in a terminal."""
    return next((style for known, style in _STYLES.items() if known == state), "")


def tokens(usage: Usage) -> str:
    """All tokens that were used."""
    return f"{usage.input_tokens + usage.output_tokens:,}"


def cost(usage: Usage) -> str:
    """What it cost, with a plus if there is more to it whose price is not known; empty if nothing is known."""
    more = "+" if usage.unpriced_tokens else ""
    return "" if usage.cost_usd is None else f"${usage.cost_usd:.4f}{more}"


def progress(of: AgentStatus | TaskRecord) -> str:
    """How far something is: a bar if that can be told, and the agent's words."""
    if of.progress_percent is None:
        return of.progress_note
    done = round(min(max(of.progress_percent, 0.0), 100.0) * _BAR_WIDTH / 100)
    bar = "█" * done + "░" * (_BAR_WIDTH - done)
    return f"{of.progress_percent:.0f} % {bar} {of.progress_note}".rstrip()


def waiting(status: AgentStatus) -> str:
    """What an agent waits for, if it waits: others, locks, its turn, tools, a time, events."""
    parts = [f"waits for {', '.join(status.waiting_for)}"] if status.waiting_for else []
    if status.paused_for:
        parts.append(f"paused for {', '.join(status.paused_for)}")
    if status.retry_at is not None:
        parts.append(f"waits for its provider, next try at {moment(status.retry_at)}: {status.retry_reason}")
    if status.missing_tools:
        parts.append(f"lacks its tools: {', '.join(status.missing_tools)}")
    if status.state is AgentState.SLEEPING:
        until = [f"until {moment(status.sleeping_until)}"] if status.sleeping_until is not None else []
        events = [f"for {', '.join(status.wake_events)}"] if status.wake_events else []
        parts.append(" or ".join([*until, *events]))
    if status.reason and status.state in (AgentState.PAUSED, AgentState.STOPPED, AgentState.SLEEPING):
        parts.append(status.reason)
    return "; ".join(parts)


def facts_of(definition: AgentDefinition, *, inherited: str = "") -> Iterator[tuple[str, str]]:
    """What the definition states, beside its names and its prompt. `inherited` is the model of the server."""
    names = (f"{inherited} (the server's)" if name == INHERIT and inherited else name for name in definition.models)
    yield "model", ", then ".join(names)
    yield "settings", _stated(definition.settings)
    yield "cut_answers", definition.cut_answers if definition.cut_answers is not CutAnswers.CONTINUE else ""
    yield "context", _stated(definition.context)
    yield "tools", _tools(definition.tools)
    yield "approve", ", ".join(definition.approve)
    yield "folders", ", ".join(f"{name} ({access})" for name, access in definition.folders.items())
    yield "working_folder", definition.working_folder
    yield "network", ", ".join(definition.network)
    yield "aliases", ", ".join(definition.aliases)
    yield "limits", _stated(definition.limits)
    yield "retry", _stated(definition.retry)
    yield "supervision", _stated(definition.supervision)
    yield "subscribes", ", ".join(definition.subscribes)
    yield "schedule", "; ".join(_schedule(each) for each in definition.schedule)
    schema = definition.output_schema
    yield "output_schema", "" if schema is None else msgspec.json.encode(schema).decode()


def _tools(granted: tuple[str, ...] | None) -> str:
    if granted is None:
        return "all but those that reach the machine or the network"
    return ", ".join(granted) or "none"


def _stated(values: Any) -> str:
    """The fields that differ from the default."""
    fields = msgspec.to_builtins(values)
    return ", ".join(f"{name}={value if isinstance(value, str) else as_json(value)}" for name, value in fields.items())


def _schedule(schedule: ScheduleDefinition) -> str:
    when = schedule.cron or f"every {schedule.interval_seconds:g} s"
    zone = f" ({schedule.zone})" if schedule.by_wall_clock else ""
    what = f"event {schedule.event}" if schedule.prompt is None else schedule.prompt
    return f"{when}{zone}: {what}"


FLEET: Sequence[Column[AgentStatus]] = (
    Column("AGENT", lambda each: each.agent_id, whole=True),
    Column("STATE", lambda each: each.state, whole=True, style=style_of),
    Column("QUEUE", lambda each: str(each.queue_size), right=True),
    Column("TASK", lambda each: each.current_task or ""),
    Column("PROGRESS", progress),
    Column("TASKS", lambda each: str(each.tasks), right=True),
    Column("TOKENS", lambda each: tokens(each.usage), right=True),
    Column("COST", lambda each: cost(each.usage), right=True),
    Column("WAITING", waiting),
)

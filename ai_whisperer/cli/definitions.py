"""The definition of an agent as commands show it: every field that says something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ai_whisperer.cli.printable import as_json
from ai_whisperer.domain.definition import INHERIT, AgentDefinition
from ai_whisperer.domain.schedules import ScheduleDefinition


def facts_of(definition: AgentDefinition, *, inherited: str = "") -> Iterator[tuple[str, str]]:
    """What the definition states, beside its names and its prompt. `inherited` is the model of the server."""
    model = definition.model
    yield "model", f"{inherited} (the server's)" if model == INHERIT and inherited else model
    yield "settings", _stated(definition.settings)
    yield "tools", _tools(definition.tools)
    yield "approve", ", ".join(definition.approve)
    yield "folders", ", ".join(f"{name} ({access})" for name, access in definition.folders.items())
    yield "network", ", ".join(definition.network)
    yield "aliases", ", ".join(definition.aliases)
    yield "limits", _stated(definition.limits)
    yield "retry", _stated(definition.retry)
    yield "supervision", _stated(definition.supervision)
    yield "subscribes", ", ".join(definition.subscribes)
    yield "schedule", "; ".join(_schedule(each) for each in definition.schedule)


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

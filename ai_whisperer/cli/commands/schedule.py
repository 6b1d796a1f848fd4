"""`whisperer schedule` and `whisperer events`: what happens by the clock, and signals to all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from ai_whisperer.cli.arguments import LimitOption, json_of, once_option, seconds_option
from ai_whisperer.cli.calling import Call, Connected, group
from ai_whisperer.cli.connecting import AgentOption, agent_names
from ai_whisperer.cli.output import Column
from ai_whisperer.cli.printable import readable_json
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.schedules import MissedRuns, ScheduleRecord
from ai_whisperer.domain.sessions import IdKind
from ai_whisperer.errors import InvalidInputError

ScheduleId = Annotated[
    str, typer.Argument(metavar="SCHEDULE", help="The id of the schedule, or how it begins."), IdKind.SCHEDULE
]
EventData = Annotated[str | None, typer.Option("--payload", metavar="JSON", help="The data of the event.")]


def register(app: typer.Typer) -> None:
    told = "Show the schedules; create, pause or delete one."
    group(app, "schedule", list_schedules, create, pause, resume, delete, help=told)
    group(app, "events", list_events, send, help="Show the events; broadcast one.")


async def list_schedules(call: Connected, *, agent: AgentOption = None) -> None:
    """Show the schedules, the oldest first."""
    call.output.table(await call.client.list_schedules(agent), SCHEDULES, empty="There are no schedules.")


async def create(
    call: Call,
    agent: Annotated[
        str | None, typer.Argument(metavar="AGENT", help="Who gets the prompt.", autocompletion=agent_names)
    ] = None,
    *,
    cron: Annotated[
        str | None, typer.Option("--cron", metavar="FIELDS", help="Five fields, such as '0 9 * * 1-5'.")
    ] = None,
    every: Annotated[float | None, seconds_option("--every", help="How often to fire.")] = None,
    zone: Annotated[str, typer.Option("--zone", metavar="NAME", help="The time zone of --cron.")] = "UTC",
    prompt: Annotated[str | None, typer.Option("--prompt", metavar="TEXT", help="What the agent should do.")] = None,
    event: Annotated[str | None, typer.Option("--event", metavar="NAME", help="An event to broadcast.")] = None,
    payload: EventData = None,
    missed: Annotated[MissedRuns, typer.Option("--missed", help="What happens to missed times.")] = (MissedRuns.ONCE),
    wake: Annotated[bool, typer.Option("--wake", help="Let the prompt wake the agent if it sleeps.")] = False,
    schedule_id: Annotated[str | None, once_option("created")] = None,
) -> None:
    """Give an agent a prompt, or broadcast an event, on a schedule."""
    data = json_of(payload, option="--payload")
    _check_one_of({"--cron": cron, "--every": every})
    _check_one_of({"--prompt": prompt, "--event": event})
    async with call.server() as client:
        record = await client.create_schedule(
            agent,
            cron=cron,
            interval_seconds=every,
            zone=zone,
            prompt=prompt,
            event=event,
            data=data,
            missed=missed,
            wake=wake,
            schedule_id=schedule_id,
        )
    _tell_next(call, record)


def _check_one_of(options: Mapping[str, object]) -> None:
    given = [name for name, value in options.items() if value is not None]
    if len(given) != 1:
        what = "not both" if given else "one of them is needed"
        raise InvalidInputError(f"Give {' or '.join(options)}: {what}.")


async def pause(call: Connected, schedule: ScheduleId) -> None:
    """Pause a schedule: it does not fire until it is resumed."""
    record = await call.client.pause_schedule(schedule)
    call.output.told(record, f"Schedule {record.id} is paused.")


async def resume(call: Connected, schedule: ScheduleId) -> None:
    """Resume a paused schedule from now on."""
    _tell_next(call, await call.client.resume_schedule(schedule))


def _tell_next(call: Call, record: ScheduleRecord) -> None:
    call.output.told(record, f"Schedule {record.id} fires next at {moment(record.next_at) or 'no time'}.")


async def delete(call: Connected, schedule: ScheduleId) -> None:
    """Delete a schedule. Tasks that it has fired already stay."""
    record = await call.client.delete_schedule(schedule)
    call.output.told(record, f"Deleted schedule {record.id}.")


async def list_events(call: Connected, *, limit: LimitOption = 100) -> None:
    """Show the events that were broadcast, the newest first."""
    events = await call.client.list_events(limit=limit)
    call.output.table(events, EVENTS, empty="No event was broadcast yet.", limit=limit)


async def send(
    call: Call,
    event: Annotated[str, typer.Argument(metavar="NAME", help="What has happened, such as data_ready.")],
    *,
    payload: EventData = None,
    event_id: Annotated[str | None, once_option("broadcast")] = None,
) -> None:
    """Broadcast an event: it wakes agents that sleep until it, and becomes a task for those that subscribe."""
    data = json_of(payload, option="--payload")
    async with call.server() as client:
        record = await client.broadcast_event(event, data, event_id=event_id)
    told = f"{record.name} was broadcast: {record.woken} woken and {record.notified} more told, each with a task."
    call.output.told(record, told)


def _when(schedule: ScheduleRecord) -> str:
    definition = schedule.definition
    if definition.cron is None:
        return f"every {definition.interval_seconds:g} s"
    return f"{definition.cron} {definition.zone}"


def _what(schedule: ScheduleRecord) -> str:
    definition = schedule.definition
    return f"event {definition.event}" if definition.prompt is None else definition.prompt


SCHEDULES: Sequence[Column[ScheduleRecord]] = (
    Column("SCHEDULE", lambda each: each.id, whole=True),
    Column("AGENT", lambda each: each.agent_id or ""),
    Column("WHEN", _when),
    Column("NEXT", lambda each: "paused" if each.paused else moment(each.next_at)),
    Column("LAST", lambda each: moment(each.last_at)),
    Column("FIRED", lambda each: str(each.fired), right=True),
    Column("WHAT", _what),
)
EVENTS: Sequence[Column[EventRecord]] = (
    Column("EVENT", lambda each: each.name, whole=True),
    Column("FROM", lambda each: each.sender),
    Column("AT", lambda each: moment(each.created_at)),
    Column("WOKEN", lambda each: str(each.woken), right=True),
    Column("TASKS", lambda each: str(each.notified), right=True),
    Column("DATA", lambda each: "" if each.data is None else readable_json(each.data)),
)

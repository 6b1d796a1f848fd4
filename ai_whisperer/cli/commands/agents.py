"""`whisperer agents`, and the commands that change what an agent is doing."""

from __future__ import annotations

import os
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from ai_whisperer.cli.arguments import ReasonOption, YesOption, object_of, reason_option, seconds_option
from ai_whisperer.cli.calling import Call, Connected, command, group
from ai_whisperer.cli.confirming import confirmed
from ai_whisperer.cli.connecting import AgentName, template_names
from ai_whisperer.cli.fleet import FLEET, cost, facts_of, larger_limit, progress, tokens, waiting
from ai_whisperer.cli.long_waits import tools_of, with_a_word
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.definition import INHERIT, AgentDefinition
from ai_whisperer.errors import ModelNameError, TemplateError, UnknownTemplateError

if TYPE_CHECKING:
    from ai_whisperer.client import Client
    from ai_whisperer.protocol.sessions import TemplateDetails

NO_AGENTS = "There are no agents yet. Create one: whisperer agents create NAME, or: whisperer templates"

ConfigOption = Annotated[
    str | None, typer.Option("--config", "-c", metavar="JSON", help="Fields of its definition, as a template has them.")
]

TemplateOption = Annotated[
    str | None,
    typer.Option(
        "--template", "-t", metavar="NAME", help="Create it from this template.", autocompletion=template_names
    ),
]


def register(app: typer.Typer) -> None:
    group(app, "agents", list_agents, create, show, delete, help="Show the agents; create or delete one.")
    command(app, start, pause, resume, stop, sleep, wake)


async def list_agents(call: Connected) -> None:
    """Show the agents and what they are doing."""
    call.output.table(await call.client.list_agents(), FLEET, empty=NO_AGENTS)


async def create(
    call: Call,
    agent: Annotated[str, typer.Argument(metavar="NAME", help="The id that it gets.")],
    *,
    template: TemplateOption = None,
    config: ConfigOption = None,
    auto_start: Annotated[bool, typer.Option("--start/--no-start", help="Start it at once.")] = True,
) -> None:
    """Create an agent.

    Without --template and --config it is created from the template with the same name, if there is one.
    """
    definition = object_of(config, option="--config")
    async with call.server() as client:
        status = await client.create_agent(agent, definition, template=template, auto_start=auto_start)
        if template is not None or definition is None:
            await _tell_ignored(call, client, template or agent)
        if template is None and definition is None:
            await _tell_nearest(call, client, status.agent_id)
        await _tell_missing_key(call, client, status.agent_id)
    call.output.told(status, f"Created {status.agent_id}{' and started it' if status.started else ''}.")


async def _tell_ignored(call: Call, client: Client, template: str) -> None:
    """Say what of the file that an agent was made of means nothing here."""
    with suppress(UnknownTemplateError, TemplateError):
        details = await client.get_template(template)
        if details.ignored:
            call.output.note(f"In {details.source} these mean nothing here: {', '.join(details.ignored)}.")
        if await _sees_no_project(client, details):
            from ai_whisperer.cli.template_check import NEEDS_CLAUDE_FOLDER

            call.output.note(f"Of {details.source}: {NEEDS_CLAUDE_FOLDER}")


async def _sees_no_project(client: Client, details: TemplateDetails) -> bool:
    """Whether it is a file for Claude Code whose agent has tools for files, and only a folder of its own."""
    from ai_whisperer.templates.folders import TemplateKind
    from ai_whisperer.tools.machine import MACHINE_TOOLS

    definition = details.definition
    if definition.working_folder or MACHINE_TOOLS.keys().isdisjoint(definition.tools or ()):
        return False
    kinds = {entry.name: entry.kind for entry in await client.list_templates()}
    return kinds.get(details.name) == TemplateKind.CLAUDE


async def _tell_missing_key(call: Call, client: Client, agent_id: str) -> None:
    """Say that the model of an agent needs a key or a package that is not here, as far as this command can see."""
    from ai_whisperer.cli.model_choice import check_model

    models = (await client.get_agent(agent_id)).definition.models
    if len(models) > 1:
        return  # the server tells which of several are passed over
    try:
        if models[0] != INHERIT:
            check_model(models[0], os.environ)
    except ModelNameError as error:
        call.output.note(f"{error.message} It is the server that needs it; this command looked where it runs itself.")


async def _tell_nearest(call: Call, client: Client, agent_id: str) -> None:
    """Say which template may have been meant by the name of an agent that no template is called like."""
    if (await client.get_agent(agent_id)).definition != AgentDefinition():
        return
    names = [entry.name for entry in await client.list_templates() if entry.error is None]
    near = get_close_matches(agent_id.lower(), names, n=1, cutoff=0.75)
    if near:
        call.output.note(
            f"No template is called '{agent_id}', so it has no definition. Did you mean '{near[0]}'? Then: "
            f"whisperer stop {agent_id}, and whisperer start {agent_id} --template {near[0]}"
        )


async def show(call: Connected, agent: AgentName) -> None:
    """Show an agent: what it is doing, what it used, its definition."""
    details = await call.client.get_agent(agent)
    inherited = (await call.client.server_info()).model if INHERIT in details.definition.models else ""
    status, definition = details.status, details.definition
    call.output.details(
        details,
        [
            ("agent", status.agent_id),
            ("name", definition.name),
            ("description", definition.description),
            ("state", status.state),
            ("waiting", waiting(status)),
            ("task", status.current_task or ""),
            ("progress", progress(status)),
            ("queue", str(status.queue_size)),
            ("unread mail", str(status.unread_mail)),
            ("tasks", str(status.tasks)),
            ("tokens", tokens(status.usage)),
            ("cost", cost(status.usage)),
            *facts_of(definition, inherited=inherited),
            ("created", moment(details.created_at)),
        ],
        body=definition.prompt,
    )


async def delete(call: Connected, agent: AgentName, *, yes: YesOption = False) -> None:
    """Stop an agent and delete it with its conversations, mail, schedules and files, for good."""
    status = await call.client.get_agent_status(agent)
    await confirmed(call, f"Delete agent {status.agent_id} with all that it did, for good?", yes=yes)
    status = await call.client.delete_agent(status.agent_id)
    call.output.told(status, f"Deleted {status.agent_id}. What it used still counts.")


async def start(call: Call, agent: AgentName, *, template: TemplateOption = None, config: ConfigOption = None) -> None:
    """Let an agent take work.

    With --template or --config an agent that does not exist yet is created, and one that is stopped gets a new
    definition: a template that was changed is applied so.
    """
    definition = object_of(config, option="--config")
    async with call.server() as client:
        if definition is None and template is None:
            await client.get_agent_status(agent)  # a name that is misspelt is an error, not a new agent
        _tell(call, await client.start_agent(agent, definition, template=template))


async def pause(
    call: Connected,
    agent: AgentName,
    *,
    now: Annotated[
        bool, typer.Option("--now", help="Cancel the model request under way; it is repeated later.")
    ] = False,
    reason: ReasonOption = "",
) -> None:
    """Let no new step of an agent begin. The step under way runs to its end, mail keeps arriving."""
    act = call.client.interrupt_agent if now else call.client.pause_agent
    _tell(call, await act(agent, reason=reason))


async def resume(call: Connected, agent: AgentName) -> None:
    """Let a paused agent resume where it was."""
    limit = (await call.client.get_agent_status(agent)).paused_limit
    status = await call.client.resume_agent(agent)
    if limit is None:
        _tell(call, status)
    else:
        command = larger_limit(status.agent_id, limit)
        _tell(
            call, status, more=f"It has reached {limit} and pauses again at its next step. Raise the limit: {command}"
        )


async def stop(call: Connected, agent: AgentName, *, reason: ReasonOption = "") -> None:
    """Cancel what an agent runs and free everything. Its mail and its queue are kept."""
    running = (await call.client.get_agent_status(agent)).running_tasks
    stopping = call.client.stop_agent(agent, reason=reason)
    _tell(call, await with_a_word(stopping, lambda: tools_of(call.client, running), call.output))


async def sleep(
    call: Connected,
    agent: AgentName,
    *,
    seconds: Annotated[
        float | None, seconds_option("--for", help="For so long: 90 (seconds), 15min, 1h 30min, 2d.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Until this time: ISO 8601 with a time zone.")
    ] = None,
    events: Annotated[
        list[str] | None, typer.Option("--event", metavar="NAME", help="Until this event; may be repeated.")
    ] = None,
    reason: ReasonOption = "",
) -> None:
    """Let an agent sleep for a time, until a time, or until an event, whichever comes first."""
    status = await call.client.sleep_agent(
        agent, duration_seconds=seconds, until=until, wake_events=tuple(events or ()), reason=reason
    )
    _tell(call, status, more="It sleeps as soon as its work has ended." if status.running_tasks else "")


async def wake(
    call: Connected,
    agent: AgentName,
    *,
    reason: Annotated[str, reason_option("the agent is told")] = "woken by the user",
) -> None:
    """End the sleep of an agent."""
    _tell(call, await call.client.wake_agent(agent, reason=reason))


def _tell(call: Call, status: AgentStatus, *, more: str = "") -> None:
    awaited = waiting(status)
    sentence = f"{status.agent_id} is {status.state}{f' ({awaited})' if awaited else ''}."
    call.output.told(status, f"{sentence} {more}".rstrip())

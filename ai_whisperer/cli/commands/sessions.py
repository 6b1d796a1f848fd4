"""`whisperer sessions`, `templates` and `usage`."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ai_whisperer.cli.arguments import YesOption
from ai_whisperer.cli.calling import Call, Connected, command, group
from ai_whisperer.cli.commands.limits import numbers_of
from ai_whisperer.cli.confirming import confirmed
from ai_whisperer.cli.connecting import known_address, session_names, template_names
from ai_whisperer.cli.fleet import cost, facts_of, tokens
from ai_whisperer.cli.output import Column
from ai_whisperer.cli.printable import one_line
from ai_whisperer.cli.short_ids import whole_session_id
from ai_whisperer.core.moments import moment
from ai_whisperer.core.tags import listed
from ai_whisperer.domain.sessions import IdKind, SessionSummary
from ai_whisperer.domain.usage import UsageTotals
from ai_whisperer.templates.library import TemplateEntry

if TYPE_CHECKING:
    from ai_whisperer.protocol.sessions import TemplateDetails
    from ai_whisperer.settings import Settings


def register(app: typer.Typer) -> None:
    group(app, "sessions", list_sessions, create, needs, delete, help="Show your sessions; create or delete one.")
    templates = group(
        app,
        "templates",
        list_templates,
        show_template,
        help="Show the templates that agents can be made of; check them.",
    )
    command(templates, check_templates, settings=("templates", "tools", "mcp", "folders", "claude_folder"))
    command(app, usage)


async def list_sessions(call: Connected) -> None:
    """Show your sessions, the newest first."""
    call.output.table(await call.client.list_sessions(), SESSIONS, empty="There are no sessions.")


async def create(
    call: Connected,
    session_id: Annotated[str | None, typer.Argument(metavar="ID", help="Its id; chosen if none is given.")] = None,
    *,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="What it is about.")] = "",
    limits: Annotated[
        str | None,
        typer.Option("--limits", metavar="NAME=NUMBER,…", help="What its agents, and all of it, may use."),
    ] = None,
    need: Annotated[
        list[str] | None,
        typer.Option("--need", metavar="TAG", help="A tag that nodes must have to take it; several times for several."),
    ] = None,
) -> None:
    """Create a session: a workspace with agents of its own."""
    session = await call.client.create_session(session_id, title=title, limits=numbers_of(limits), needs=need or ())
    call.output.told(session, f"Created session {session.id}. Use it with --session {shlex.quote(session.id)}.")


async def needs(
    call: Connected,
    session_id: Annotated[str, typer.Argument(metavar="ID", help="The session.", autocompletion=session_names)],
    tags: Annotated[
        list[str] | None, typer.Argument(metavar="TAG", help="The tags that it needs, all of them.")
    ] = None,
    *,
    nothing: Annotated[bool, typer.Option("--nothing", help="Let it need no tags.")] = False,
) -> None:
    """Let a session need tags of its node, and go to one that has them. `cluster status` shows which nodes have which.

    These take the place of those that it needed. The steps under way may finish before it goes.
    """
    if bool(tags) == nothing:
        raise typer.BadParameter("Name the tags that the session needs, or give --nothing.")
    session = await call.client.set_needs(tags or (), session_id=await whole_session_id(call.client, session_id))
    what = listed(session.needs) if session.needs else "no tags"
    call.output.told(session, f"The session {session.id} needs {what}. Where it is: whisperer cluster status")


async def delete(
    call: Connected,
    session_id: Annotated[str, typer.Argument(metavar="ID", help="The session.", autocompletion=session_names)],
    *,
    yes: YesOption = False,
) -> None:
    """Stop all agents of a session and delete everything in it, for good."""
    session = await call.client.get_session(await whole_session_id(call.client, session_id))
    question = f"Delete session {session.id} with {session.agents} agents and all their work, for good?"
    await confirmed(call, question, yes=yes)
    session = await call.client.delete_session(session.id)
    call.output.told(session, f"Deleted session {session.id}.")


async def list_templates(call: Call) -> None:
    """Show the templates that agents can be made of, and the files that have a mistake.

    Without a server the files are read as one that is started here would read them.
    """
    if known_address(call.settings.values) is None:
        from ai_whisperer.server.serving import templates_of

        found = await asyncio.to_thread(lambda: templates_of(call.settings.values).list())
    else:
        async with call.server() as client:
            found = await client.list_templates()
    call.output.table(found, TEMPLATES, empty="There are no templates.")


async def show_template(
    call: Call,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the template.", autocompletion=template_names)
    ],
) -> None:
    """Show a template: its definition and its prompt, and what of its file means nothing here.

    Without a server the files are read as one that is started here would read them.
    """
    if known_address(call.settings.values) is None:
        template = await asyncio.to_thread(_template_here, call.settings.values, name)
    else:
        async with call.server() as client:
            template = await client.get_template(name)
    definition = template.definition
    call.output.details(
        template,
        [
            ("template", template.name),
            ("description", definition.description),
            ("file", template.source),
            *facts_of(definition),
            ("ignored", ", ".join(template.ignored)),
        ],
        body=definition.prompt,
    )


def _template_here(settings: Settings, name: str) -> TemplateDetails:
    from ai_whisperer.server.serving import templates_of, toolbox_of
    from ai_whisperer.server.template_details import details_of

    return details_of(
        templates_of(settings).get(name),
        offered=toolbox_of(settings).tools,
        servers=tuple(settings.mcp),
        claude_folder=settings.claude_folder,
    )


def check_templates(call: Call) -> int:
    """Look for mistakes in all files of templates, and for what in them means nothing here. No server is needed.

    It leaves with 1 if no agent can be made of one of them, else with 0. Names that clash are told, and which tools and
    fields of files for Claude Code mean nothing here.
    """
    from ai_whisperer.cli.template_check import Surroundings, checked_templates
    from ai_whisperer.server.serving import templates_of, toolbox_of

    values = call.settings.values
    around = Surroundings(
        tools=toolbox_of(values).tools,
        servers=tuple(values.mcp),
        folders=tuple(values.folders),
        claude_folder=values.claude_folder,
    )
    checked = checked_templates(templates_of(values), around)
    broken = sum(bool(each.problems) for each in checked)
    if call.output.as_json:
        call.output.json({"ok": not broken, "templates": checked})
    else:
        for each in checked:
            level = "problem" if each.problems else "note" if each.notes else "ok"
            said = "".join(f"\n         {one_line(line)}" for line in (*each.problems, *each.notes))
            call.output.text(f"{level:<8} {each.name}  {each.path}{said}")
        call.output.note(f"{len(checked)} files, {broken} of which cannot be used.")
    return 1 if broken else 0


async def usage(
    call: Connected,
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="TASK", help="Only what this task and all it belongs to have used."),
        IdKind.TASK,
    ] = None,
) -> None:
    """Show what the agents have used, each and together."""
    report = await call.client.usage(task)
    used = [_Used(name, each) for name, each in report.agents.items()]
    call.output.table([*used, _Used("TOTAL", report.total)], USED, of=report)


class _Used(NamedTuple):
    agent: str
    totals: UsageTotals


SESSIONS: Sequence[Column[SessionSummary]] = (
    Column("SESSION", lambda each: each.id, whole=True),
    Column("AGENTS", lambda each: str(each.agents), right=True),
    Column("CREATED", lambda each: moment(each.created_at)),
    Column("NEEDS", lambda each: ", ".join(each.needs)),
    Column("TITLE", lambda each: each.title),
)
TEMPLATES: Sequence[Column[TemplateEntry]] = (
    Column("TEMPLATE", lambda each: each.name, whole=True),
    Column("KIND", lambda each: each.kind),
    Column("DESCRIPTION", lambda each: each.description if each.error is None else f"ERROR: {each.error}"),
)
USED: Sequence[Column[_Used]] = (
    Column("AGENT", lambda each: each.agent, whole=True),
    Column("TASKS", lambda each: str(each.totals.tasks), right=True),
    Column("CALLS", lambda each: f"{each.totals.usage.model_calls:,}", right=True),
    Column("INPUT", lambda each: f"{each.totals.usage.input_tokens:,}", right=True),
    Column("CACHED %", lambda each: f"{each.totals.usage.cached_share:.0%}", right=True),
    Column("OUTPUT", lambda each: f"{each.totals.usage.output_tokens:,}", right=True),
    Column("CACHED", lambda each: f"{each.totals.usage.cached_tokens:,}", right=True),
    Column("TOKENS", lambda each: tokens(each.totals.usage), right=True),
    Column("COST", lambda each: cost(each.totals.usage), right=True),
    Column("TOOLS", lambda each: f"{each.totals.usage.tool_calls:,}", right=True),
    Column("WALL S", lambda each: f"{each.totals.usage.wall_seconds:,.1f}", right=True),
    Column("CPU S", lambda each: f"{each.totals.usage.cpu_seconds:,.1f}", right=True),
    Column("MIB", lambda each: f"{each.totals.usage.memory_bytes / (1 << 20):,.0f}", right=True),
    Column("CONTEXT", lambda each: f"{each.totals.context_bytes:,}", right=True),
    Column("SENT", lambda each: f"{each.totals.usage.mails_sent:,}", right=True),
    Column("RECEIVED", lambda each: f"{each.totals.mails_received:,}", right=True),
)

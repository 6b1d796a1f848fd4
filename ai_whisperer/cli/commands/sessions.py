"""`whisperer sessions`, `templates` and `usage`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ai_whisperer.cli.calling import Call, command, group
from ai_whisperer.cli.commands.limits import numbers_of
from ai_whisperer.cli.connecting import session_names, template_names
from ai_whisperer.cli.definitions import facts_of
from ai_whisperer.cli.fleet import cost, tokens
from ai_whisperer.cli.output import Column
from ai_whisperer.cli.short_ids import whole_id, whole_session_id
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.sessions import IdKind, SessionSummary

if TYPE_CHECKING:
    from ai_whisperer.domain.usage import UsageTotals
from ai_whisperer.templates.library import TemplateEntry


def register(app: typer.Typer) -> None:
    below = group(app, "sessions", help="Show your sessions; create or delete one.")(list_sessions)
    command(below)(create)
    command(below)(delete)
    command(group(app, "templates", help="Show the templates that agents can be made of.")(list_templates), "show")(
        show_template
    )
    command(app)(usage)


async def list_sessions(call: Call) -> None:
    """Show your sessions, the newest first."""
    async with call.server() as client:
        sessions = await client.list_sessions()
    call.output.table(sessions, SESSIONS, empty="There are no sessions.")


async def create(
    call: Call,
    session_id: Annotated[str | None, typer.Argument(metavar="ID", help="Its id; chosen if none is given.")] = None,
    *,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="What it is about.")] = "",
    limits: Annotated[
        str | None,
        typer.Option("--limits", metavar="NAME=NUMBER,…", help="What its agents, and all of it, may use."),
    ] = None,
) -> None:
    """Create a session: a workspace with agents of its own."""
    async with call.server() as client:
        session = await client.create_session(session_id, title=title, limits=numbers_of(limits))
    call.output.told(session, f"Created session {session.id}. Use it with --session {shlex.quote(session.id)}.")


async def delete(
    call: Call,
    session_id: Annotated[str, typer.Argument(metavar="ID", help="The session.", autocompletion=session_names)],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
) -> None:
    """Stop all agents of a session and delete everything in it, for good."""
    async with call.server() as client:
        session = await client.get_session(await whole_session_id(client, session_id))
        if not yes:
            if call.output.as_json:
                raise typer.BadParameter("--json cannot ask for confirmation. Pass --yes to delete the session.")
            question = f"Delete session {session.id} with {session.agents} agents and all their work, for good?"
            await call.output.ask(question)
        session = await client.delete_session(session.id)
    call.output.told(session, f"Deleted session {session.id}.")


async def list_templates(call: Call) -> None:
    """Show the templates that agents can be made of, and the files that have a mistake."""
    async with call.server() as client:
        templates = await client.list_templates()
    call.output.table(templates, TEMPLATES, empty="There are no templates.")


async def show_template(
    call: Call,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the template.", autocompletion=template_names)
    ],
) -> None:
    """Show a template: its definition and its prompt, and what of its file means nothing here."""
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


async def usage(
    call: Call,
    task: Annotated[
        str | None, typer.Option("--task", metavar="TASK", help="Only what this task and all it belongs to have used.")
    ] = None,
) -> None:
    """Show what the agents have used, each and together."""
    async with call.server() as client:
        report = await client.usage(None if task is None else await whole_id(client, IdKind.TASK, task))
    if call.output.as_json:
        call.output.json(report)
        return
    used = [_Used(name, each) for name, each in report.agents.items()]
    call.output.rows([*used, _Used("TOTAL", report.total)], USED)


class _Used(NamedTuple):
    agent: str
    totals: UsageTotals

    @property
    def usage(self) -> Usage:
        return self.totals.usage


SESSIONS: Sequence[Column[SessionSummary]] = (
    Column("SESSION", lambda each: each.id, whole=True),
    Column("AGENTS", lambda each: str(each.agents), right=True),
    Column("CREATED", lambda each: moment(each.created_at)),
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
    Column("CALLS", lambda each: f"{each.usage.model_calls:,}", right=True),
    Column("INPUT", lambda each: f"{each.usage.input_tokens:,}", right=True),
    Column("OUTPUT", lambda each: f"{each.usage.output_tokens:,}", right=True),
    Column("CACHED", lambda each: f"{each.usage.cached_tokens:,}", right=True),
    Column("TOKENS", lambda each: tokens(each.usage), right=True),
    Column("COST", lambda each: cost(each.usage), right=True),
    Column("TOOLS", lambda each: f"{each.usage.tool_calls:,}", right=True),
    Column("WALL S", lambda each: f"{each.usage.wall_seconds:,.1f}", right=True),
    Column("CPU S", lambda each: f"{each.usage.cpu_seconds:,.1f}", right=True),
    Column("MIB", lambda each: f"{each.usage.memory_bytes / (1 << 20):,.0f}", right=True),
    Column("CONTEXT", lambda each: f"{each.totals.context_bytes:,}", right=True),
    Column("SENT", lambda each: f"{each.usage.mails_sent:,}", right=True),
    Column("RECEIVED", lambda each: f"{each.totals.mails_received:,}", right=True),
)

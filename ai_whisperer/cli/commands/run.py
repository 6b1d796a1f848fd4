"""`whisperer run`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ai_whisperer.choices import nearest
from ai_whisperer.cli.arguments import AttachOption, SchemaOption, TimeoutOption, schema_in, text_argument
from ai_whisperer.cli.calling import Call, Serving, command
from ai_whisperer.cli.connecting import CONNECTION, names_to_run
from ai_whisperer.cli.output import Column
from ai_whisperer.errors import ConnectionLostError, TaskEndedError, UnknownTemplateError, WhispererError

if TYPE_CHECKING:
    from ai_whisperer.cli.any_server import AnyServer
    from ai_whisperer.cli.one_shot import Outcome, TemplateRun, WorkflowRun
    from ai_whisperer.cli.screen import Screen
    from ai_whisperer.cli.signals import Leaving
    from ai_whisperer.templates.library import TemplateEntry
    from ai_whisperer.tools.function import Tool

_CANCELLING_SECONDS = 5.0


def register(app: typer.Typer) -> None:
    command(app, run, settings=(*CONNECTION, "model", "templates"))


async def run(
    call: Serving,
    what: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A template, an agent or a workflow.", autocompletion=names_to_run),
    ] = None,
    prompt: Annotated[str | None, text_argument("PROMPT", "What to do")] = None,
    *,
    timeout_seconds: TimeoutOption = None,
    output_schema: SchemaOption = None,
    attach: AttachOption = None,
    analysis: Annotated[bool, typer.Option("--analysis", help="Show the model's reasoning too.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Show the templates and the workflows.")] = False,
) -> int:
    """Do one thing and leave: give an agent one task, or play a workflow of the guide.

    The server of the data folder is used if one runs, else one is started for as long as it takes. An agent that does
    not exist is created from its template; the task is a conversation of its own. A workflow has a session of
    its own, and a prompt if none is given. The answer goes to the standard output, all else to the standard error. It
    leaves with 0, with 1 if the task failed, and with 130 after Ctrl-C, which cancels the task.
    """
    from ai_whisperer.cli.one_shot import TemplateRun, WorkflowRun
    from ai_whisperer.cli.screen import Screen
    from ai_whisperer.cli.signals import until_asked_to_leave
    from ai_whisperer.examples.workflows import WORKFLOWS

    if list_:
        await _list(call)
        return 0
    if what is None:
        raise typer.BadParameter("Name a template or a workflow; --list shows them.")
    workflow = WORKFLOWS.get(what)
    if workflow is None and prompt is None:
        meant = nearest(what, WORKFLOWS)
        if meant is not None:
            raise typer.BadParameter(f"There is no workflow '{what}'. Did you mean '{meant}'? --list shows all.")
        raise typer.BadParameter(f"Say what '{what}' should do.")
    work: TemplateRun | WorkflowRun
    if workflow is None:
        schema = schema_in(output_schema)
        work = TemplateRun(what, prompt or "", timeout_seconds=timeout_seconds, output=schema, parts=attach or ())
    else:
        if output_schema is not None or attach:
            raise typer.BadParameter(f"--output-schema and --attach go with a task; '{what}' is a workflow.")
        work = WorkflowRun(workflow, prompt or workflow.prompt, timeout_seconds=timeout_seconds)
    screen = Screen(call.output, analysis=analysis)
    with until_asked_to_leave(call.output, "Stopping: the work is being cancelled.") as leaving:
        try:
            outcome = await _played(call, work, screen, leaving=leaving, tools=workflow.tools if workflow else ())
        except UnknownTemplateError as error:
            raise UnknownTemplateError(f"{error.message} Workflows: {', '.join(WORKFLOWS)}.") from error
    return 128 + outcome if isinstance(outcome, signal.Signals) else _told(call, outcome, screen)


async def _played(
    call: Call, work: TemplateRun | WorkflowRun, screen: Screen, *, leaving: Leaving, tools: Sequence[Tool]
) -> Outcome | signal.Signals:
    """What has come of the work, which continues elsewhere if the server was another command's and left with it."""
    from ai_whisperer.cli.any_server import ServerLeftError, any_server
    from ai_whisperer.cli.racing import first_of

    while True:
        async with any_server(call, tools) as server:
            try:
                outcome: Outcome | signal.Signals | BaseException
                outcome = await first_of(work.play(server, screen), leaving.asked(), server.failure())
            except ConnectionLostError:
                if not server.is_temporary:
                    raise
                continue
            if isinstance(outcome, signal.Signals):
                await _cancel(call, work, server)
        if isinstance(outcome, ServerLeftError):
            continue
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


async def _cancel(call: Call, work: TemplateRun | WorkflowRun, server: AnyServer) -> None:
    try:
        async with asyncio.timeout(_CANCELLING_SECONDS):
            await work.cancel(server)
    except (TimeoutError, WhispererError):
        call.output.note("It could not be cancelled: the server does not answer.")
    else:
        if not call.output.as_json:
            call.output.note("It was cancelled.")


def _told(call: Call, outcome: Outcome, screen: Screen) -> int:
    if call.output.as_json:
        call.output.json(outcome.record)
        if outcome.failures:
            raise TaskEndedError(" ".join(outcome.failures))
    elif outcome.answer:
        screen.show_answer(outcome.answer)
    for failure in outcome.failures:
        call.output.note(f"whisperer: {failure}")
    return 1 if outcome.failures else 0


class _Entry(NamedTuple):
    name: str
    kind: str
    description: str


async def _list(call: Call) -> None:
    from ai_whisperer.examples.workflows import WORKFLOWS

    entries = [_Entry(each.name, "workflow", each.description) for each in WORKFLOWS.values()]
    entries += [
        _Entry(each.name, f"template ({each.kind})", each.description)
        for each in await _templates(call)
        if each.error is None
    ]
    call.output.table(entries, _COLUMNS, of=[entry._asdict() for entry in entries])


async def _templates(call: Call) -> Sequence[TemplateEntry]:
    """Those of the server that is meant; if none runs, those that one would have."""
    from ai_whisperer.server.serving import templates_of

    try:
        async with call.server() as client:
            return await client.list_templates()
    except ConnectionLostError:
        if call.settings.values.url is not None:
            raise
        return templates_of(call.settings.values).list()


_COLUMNS: Sequence[Column[_Entry]] = (
    Column("NAME", lambda each: each.name, whole=True),
    Column("KIND", lambda each: each.kind, whole=True),
    Column("WHAT IT DOES", lambda each: each.description),
)

"""`whisperer serve`."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from ai_whisperer.cli.calling import SERVING, Serving, command
from ai_whisperer.cli.output import Output

if TYPE_CHECKING:
    from ai_whisperer.domain.tasks import StepRecord
    from ai_whisperer.settings import Settings


_OTHER_FILES = 200


def register(app: typer.Typer) -> None:
    command(app, serve, settings=SERVING)


async def serve(
    call: Serving,
    *,
    accept_loss: Annotated[
        bool,
        typer.Option("--accept-loss", help="Start even if acknowledged data is missing from the data folder."),
    ] = False,
    use_folder: Annotated[
        bool,
        typer.Option("--use-folder", help="Use the sessions of a data folder that were copied to PostgreSQL."),
    ] = False,
) -> None:
    """Run the server until Ctrl-C or SIGTERM, or until its terminal is closed.

    When it takes requests it prints one line, `ready ADDRESS`: open that address in a browser. The first signal lets
    the steps under way finish and leaves with 0, a second one leaves at once with 128 and its number. A server that
    cannot leave, as its disk does not answer, is ended 5 seconds after the grace with 3, and one that is only slow 40
    seconds after it. One that cannot continue, as its disk is full or fails, says so and leaves with 1. Everything
    accepted is on disk in all these cases, and resumes at the next start.
    """
    from ai_whisperer.cli.model_choice import choose_model
    from ai_whisperer.cli.racing import first_of
    from ai_whisperer.cli.signals import LAST_SECONDS, until_asked_to_leave
    from ai_whisperer.examples.tools import TOOLS
    from ai_whisperer.models.names import SCRIPTED_DEMO
    from ai_whisperer.server import own_user
    from ai_whisperer.server.collector import settle_collector
    from ai_whisperer.server.process_log import setup_logging
    from ai_whisperer.server.serving import running
    from ai_whisperer.store.postgresql.addresses import shown

    settings = call.settings.values
    if settings.user is not None:
        own_user.become(settings.user, settings.data)
    if accept_loss and settings.store is None:
        _accept_loss(call.output, settings.data)
    if use_folder and settings.store is None:
        _use_folder(call.output, settings.data)
    grace = f"Stopping: the steps in progress may finish, for up to {settings.shutdown_grace_seconds:g} s."
    chosen = await asyncio.to_thread(choose_model, call.settings, os.environ)
    tools = TOOLS if chosen.model == SCRIPTED_DEMO else ()  # it plays the workflows of the guide, which need them
    log = setup_logging(
        settings.data, level=settings.log_level, max_bytes=settings.log_max_bytes, backups=settings.log_backups
    )
    _make_room_for(settings.max_connections)
    within = settings.shutdown_grace_seconds + LAST_SECONDS
    settle_collector()  # before sessions are opened: they end sooner than the process
    with closing(log), until_asked_to_leave(call.output, grace, within_seconds=within) as leaving:
        async with AsyncExitStack() as stack, running(replace(settings, model=chosen.model), tools=tools) as server:
            leaving.trouble = server.trouble
            where = f"The data is in {settings.data}."
            if settings.store is not None:
                where = f"The sessions are in {shown(settings.store)}, the files of agents in {settings.data}."
            call.output.note(f"{chosen.told('--model')}\n{where}\nCtrl-C ends the server.")
            for problem in await asyncio.to_thread(broken_templates, settings):
                call.output.note(problem)
            if own_user.is_root():
                server.warn(own_user.WARNING)
            address = server.address
            ready = {"ready": address.page, "url": address.url, "token": address.token, "pid": address.pid}
            call.output.told(ready, f"ready {address.page}")
            async with asyncio.TaskGroup() as group:
                trial = group.create_task(server.try_sandbox(), name="trial of the sandbox")
                await first_of(leaving.asked(), server.failure())
                leaving.begin()  # the end of the trial is waited for, too
                trial.cancel()
            await stack.enter_async_context(_telling_waits(call.output, server.steps_under_way()))
    if server.ended_by is not None:  # perhaps while it left
        raise server.ended_by


def broken_templates(settings: Settings) -> list[str]:
    """The files of templates of which no agent can be made: who meets one later has no time for it."""
    from ai_whisperer.server.serving import templates_of

    broken = [each for each in templates_of(settings).list() if each.error is not None]
    told = [f"This template cannot be used: {each.error}" for each in broken[:5]]
    more = f" and {len(broken) - 5} more" if len(broken) > 5 else ""
    return [*told, f"See all{more}: whisperer templates check"] if broken else []


def _accept_loss(output: Output, data: Path) -> None:
    """Say what is given up, and let the server start without it."""
    from ai_whisperer import accept_loss

    last = accept_loss(data)
    what = "nothing is known of it" if last is None else f"the last that was acknowledged is {last}"
    output.note(f"What is missing from '{data}' is given up for lost; {what}.")


def _use_folder(output: Output, data: Path) -> None:
    """Let the server start on what was copied, and say what that means."""
    from ai_whisperer import use_folder

    if use_folder(data):
        output.note(f"The sessions of '{data}' are used as they were when they were copied to PostgreSQL.")


def _telling_waits(
    output: Output, look: Callable[[], Awaitable[Sequence[StepRecord]]]
) -> AbstractAsyncContextManager[None]:
    """Say what the server that leaves waits for, if that takes long."""
    from ai_whisperer.cli.long_waits import a_word_later, waits_for

    async def word() -> str:
        return waits_for(await look())

    return a_word_later(word, output)


def _make_room_for(connections: int) -> None:
    """Let the process have so many files open, if the system lets it: each connection is one."""
    wanted = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

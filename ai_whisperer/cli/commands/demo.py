"""`whisperer demo`."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from ai_whisperer.cli.calling import Call, command

if TYPE_CHECKING:
    from ai_whisperer.cli.signals import Leaving
    from ai_whisperer.examples.account import Account
    from ai_whisperer.examples.server_process import ServerProcess


def register(app: typer.Typer) -> None:
    command(app, demo, settings=("model", "data"))


async def demo(
    call: Call,
    *,
    once: Annotated[bool, typer.Option("--once", help="No live view; exit when the work is done.")] = False,
    data: Annotated[
        str | None, typer.Option("--data", metavar="FOLDER", help="Keep the session here, not in a temporary folder.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="NUMBER",
            min=0,
            max=65535,
            help="Port that the server of the demo listens on; a free one if unset.",
        ),
    ] = None,
) -> int:
    """Watch eleven agents at work on the workflows of the guide, see the plug pulled, and see them resume.

    With the key of a provider in the environment, or a model server beside it, a real model is used, else the built-in
    scripted one. Afterwards the server stays, for you to open its page and talk to the agents, until Ctrl-C. With
    --once, and without a terminal, it leaves when the work is done: with 0, or with 1 if something was lost, repeated
    or failed.
    """
    from ai_whisperer.cli.model_choice import choose_model, for_workflows
    from ai_whisperer.cli.signals import until_asked_to_leave
    from ai_whisperer.examples.server_process import ServerProcess

    choice = await asyncio.to_thread(choose_model, call.settings, os.environ)
    if not call.output.as_json:
        call.output.text(choice.told("--model"))
    named = data or (call.settings.values.data if call.is_given("data") else None)
    with ExitStack() as stack:
        folder = named or stack.enter_context(tempfile.TemporaryDirectory(prefix="whisperer-demo-"))
        server = ServerProcess(
            Path(folder),
            port=port or 0,
            model=for_workflows(choice),
            event_loop=call.settings.values.event_loop,
        )

        def leave_at_once() -> None:
            server.kill()
            stack.close()

        with until_asked_to_leave(call.output, "Leaving.", at_once=leave_at_once) as leaving:
            try:
                await server.start()
                return await _play(call, server, way_back(named), leaving=leaving, once=once)
            finally:
                await server.stop()


async def _play(call: Call, server: ServerProcess, way_back: str, *, leaving: Leaving, once: bool) -> int:
    from ai_whisperer.cli.demo_view import summary
    from ai_whisperer.cli.racing import first_of

    headless = once or call.output.as_json
    outcome = await first_of(_watched(call, server, headless=headless), leaving.asked())
    if isinstance(outcome, signal.Signals):
        return 128 + outcome
    call.output.told(outcome, summary(outcome))
    if call.output.is_terminal and not headless:
        call.output.text(
            f"\nThe agents are still there: {server.address.page}\n"
            "See there what they did: Timeline shows all of it, the clock in the top bar replays it.\n"
            "Ctrl-C ends the demo."
        )
        ended = await first_of(leaving.asked(), server.failure())
        if isinstance(ended, BaseException):
            raise ended
        return 0
    if not call.output.as_json:
        call.output.text(f"\nThe demo has ended, and its server and its page with it. {way_back}")
    return 0 if outcome.is_well else 1


async def _watched(call: Call, server: ServerProcess, *, headless: bool) -> Account:
    from ai_whisperer.cli.demo_view import audience_of
    from ai_whisperer.examples.demo import show

    with audience_of(call.output, headless=headless) as audience:
        audience.say(f"Page: {server.address.page}")
        audience.say("Eleven agents work on four workflows at the same time. They talk only by mail.")
        return await show(server, audience)


def way_back(named: str | Path | None) -> str:
    """How somebody who comes after the demo can look at the agents, if a folder was named for it and if none was."""
    if named is not None:
        return f"Look at the agents again: whisperer serve --data {quote(str(named))}"
    return (
        "In a terminal and without --once they stay until Ctrl-C. With --data FOLDER the session is kept: "
        "`whisperer serve --data FOLDER` shows it."
    )

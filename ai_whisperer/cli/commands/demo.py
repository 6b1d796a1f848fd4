"""`whisperer demo`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ai_whisperer.cli.calling import Call, command
from ai_whisperer.settings import DEFAULT, LoadedSettings

if TYPE_CHECKING:
    from ai_whisperer.cli.demo.account import Account
    from ai_whisperer.cli.demo.plug import ServerProcess
    from ai_whisperer.cli.signals import Leaving


def register(app: typer.Typer) -> None:
    command(app, settings=("model", "port", "data"))(demo)


async def demo(
    call: Call,
    *,
    once: Annotated[bool, typer.Option("--once", help="No live view; leave when the work is done.")] = False,
    data: Annotated[
        str | None, typer.Option("--data", metavar="FOLDER", help="Keep the session here, not in a temporary folder.")
    ] = None,
) -> int:
    """Watch eleven agents at work on the workflows of the guide, see the plug pulled, and see them go on.

    With the key of a provider in the environment, or a model server beside it, a real model is used, else the built-in
    scripted one. Afterwards the server stays, for you to open its page and talk to the agents, until Ctrl-C. With
    --once, and without a terminal, it leaves when the work is done: with 0, or with 1 if something was lost, repeated
    or failed.
    """
    from ai_whisperer.cli.demo.plug import ServerProcess
    from ai_whisperer.cli.model_choice import choose_model
    from ai_whisperer.cli.signals import until_asked_to_leave

    choice = await asyncio.to_thread(choose_model, call.settings, os.environ)
    if not call.output.as_json:
        call.output.text(choice.told)
    port = 0 if call.settings.sources["port"] == DEFAULT else call.settings.values.port
    with _folder(call.settings, data) as folder, until_asked_to_leave() as leaving:
        server = ServerProcess(folder, port=port, model=choice.for_workflows)
        try:
            await server.start()
            watched = call.output.is_terminal or sys.stdin.isatty()
            stays = watched and not once and not call.output.as_json
            return await _play(call, server, folder, leaving=leaving, headless=once or call.output.as_json, stays=stays)
        finally:
            await server.stop()


async def _play(
    call: Call, server: ServerProcess, folder: Path, *, leaving: Leaving, headless: bool, stays: bool
) -> int:
    from ai_whisperer.cli.demo.summary import summary
    from ai_whisperer.cli.racing import first_of

    outcome = await first_of(_watched(call, server, folder, headless=headless), leaving.asked())
    if isinstance(outcome, signal.Signals):
        return 128 + outcome
    if call.output.as_json:
        call.output.json(outcome)
    else:
        call.output.text(summary(outcome))
    if stays:
        call.output.text(f"\nThe agents are still there: {server.address.page}\nCtrl-C ends the demo.")
        return 0 if isinstance(await first_of(leaving.asked(), server.ended()), signal.Signals) else 1
    return 0 if outcome.is_well else 1


async def _watched(call: Call, server: ServerProcess, folder: Path, *, headless: bool) -> Account:
    from ai_whisperer.cli.demo.audience import audience_of
    from ai_whisperer.cli.demo.show import show

    with audience_of(call.output, headless=headless) as audience:
        audience.say(f"Page: {server.address.page}")
        audience.say("Eleven agents work on four workflows at the same time. They talk only by mail.")
        return await show(server, folder, audience=audience)


@contextmanager
def _folder(settings: LoadedSettings, data: str | None) -> Iterator[Path]:
    """The folder that was named for the demo, which is kept, or a temporary one."""
    if data is not None:
        yield Path(data)
    elif settings.sources["data"].startswith("flag"):
        yield settings.values.data
    else:
        with tempfile.TemporaryDirectory(prefix="whisperer-demo-") as folder:
            yield Path(folder)

"""`whisperer page`."""

from __future__ import annotations

import webbrowser
from typing import Annotated
from urllib.parse import quote, urlencode

import typer

from ai_whisperer.cli.calling import Call, command
from ai_whisperer.cli.connecting import server_address


def register(app: typer.Typer) -> None:
    command(app)(page)


def page(
    call: Call,
    *,
    opened: Annotated[bool, typer.Option("--open", help="Open it in the browser of this machine.")] = False,
) -> None:
    """Print the address of the running server's page, with the token that lets you in.

    With --session it is the address of that session. Whoever has the address can do what you can do.
    """
    settings = call.settings.values
    address = server_address(settings)
    path = f"/s/{quote(settings.session, safe='')}" if call.is_given("session") else "/"
    query = f"?{urlencode({'token': address.token})}" if address.token else ""
    shown = f"{address.url.rstrip('/')}{path}{query}"
    if call.output.as_json:
        call.output.json({"page": shown})
    else:
        call.output.text(shown)
    if opened and not webbrowser.open(shown):
        call.output.note("No browser could be started here. Open the address by hand.")

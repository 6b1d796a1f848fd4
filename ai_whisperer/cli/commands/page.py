"""`whisperer page`."""

from __future__ import annotations

import os
import webbrowser
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, urlencode, urlsplit

import typer

from ai_whisperer.cli.calling import Call, command
from ai_whisperer.cli.connecting import ServerAddress, server_address
from ai_whisperer.errors import InvalidInputError

if TYPE_CHECKING:
    from ai_whisperer.client import address as client

DOOR = "page.html"
"""The file in the data folder that leads a browser to the page."""
_LEADS_ON = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}"><title>AI Whisperer</title>
<p><a href="{address}">Open the page</a></p></html>
"""


def register(app: typer.Typer) -> None:
    command(app, page)


def page(
    call: Call,
    *,
    opened: Annotated[bool, typer.Option("--open", help="Open it in the browser of this machine.")] = False,
) -> None:
    """Print the address of the running server's page, with the token that lets you in.

    With --session it is the address of that session. If --url names several nodes, each has a page, on a line of its
    own; --open opens the first. Whoever has the address can do what you can do.
    """
    settings = call.settings.values
    path = f"/s/{quote(settings.session, safe='')}" if call.is_given("session") else "/"
    pages = _pages_of(server_address(settings), path)
    others = {"others": pages[1:]} if len(pages) > 1 else {}
    call.output.told({"page": pages[0], **others}, "\n".join(pages))
    if opened and not _open(pages[0], settings.data):
        call.output.note("No browser could be started here. Open the address by hand.")


def _pages_of(server: ServerAddress, path: str) -> list[str]:
    """Where a browser finds that path, at each of the servers that are named; raises `InvalidInputError`."""
    from ai_whisperer.client.address import read_address

    address = read_address(server.url, server.token)
    return [_page_of(each, path) for each in (address, *address.others)]


def _page_of(address: client.ServerAddress, path: str) -> str:
    """Where a browser finds that path; raises `InvalidInputError` for an address at which no page can be."""
    root = address.url.removesuffix("/ws").replace("ws", "http", 1)
    if urlsplit(root).path:
        raise InvalidInputError(
            f"The page of a server is at the root of its host, and {root} is not. Use the address that "
            "`whisperer serve` printed, such as http://127.0.0.1:8642/."
        )
    return f"{root}{path}?{urlencode({'token': address.token})}" if address.token else f"{root}{path}"


def _open(address: str, data: Path) -> bool:
    """Open the address in a browser. Everybody on this machine sees what programs are started with: not the token."""
    if not urlsplit(address).query:
        return webbrowser.open(address)
    door = data.absolute() / DOOR
    try:
        door.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        door.unlink(missing_ok=True)
        descriptor = os.open(door, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(_LEADS_ON.format(address=escape(address)))
    except OSError as error:
        raise InvalidInputError(
            f"The browser opens the page through a file in the data folder, which cannot be written: {error}. Open the "
            "address by hand, or name another folder with --data."
        ) from error
    return webbrowser.open(door.as_uri())

"""The built page: its document, for all addresses that it knows, and its files."""

from __future__ import annotations

import mimetypes
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

PATHS = ("/", "/sessions", "/s/{rest:path}")
"""Where the page is. What stands behind `/s/` is read by the page itself: every selection has its address."""
ICON = "/icon.svg"
_FOR_EVER = "private, max-age=31536000, immutable"
_NOT_AT_ALL = "no-store"
_NOT_BUILT = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>AI Whisperer</title>
<h1>The page is not built</h1>
<p>This is a clone in which the page was not made yet. Run <code>make page</code> there and load this again.</p>
<p>The server itself is up: <code>whisperer watch</code> shows the agents in a terminal.</p></html>
"""


class Asset(msgspec.Struct, frozen=True):
    """A file of the page. Names of built files change with their content, so that these can be kept for ever."""

    content: bytes
    media_type: str
    cache: str


def document() -> bytes:
    """The page itself, or how to make it."""
    built = _folder() / "index.html"
    return built.read_bytes() if built.is_file() else _NOT_BUILT


def asset(path: str) -> Asset | None:
    """The file at `/icon.svg` or `/assets/NAME`; None if there is none.

    It is looked for among those that are there: what a client calls a file never becomes part of a path.
    """
    *folders, name = path.removeprefix("/").split("/")
    folder = _folder().joinpath(*folders)
    there = folder.iterdir() if folders in ([], ["assets"]) and folder.is_dir() else ()
    found = next((file for file in there if file.name == name and file.is_file()), None)
    if found is None:
        return None
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Asset(content=found.read_bytes(), media_type=media_type, cache=_FOR_EVER if folders else _NOT_AT_ALL)


def _folder() -> Traversable:
    return resources.files("ai_whisperer") / "web"

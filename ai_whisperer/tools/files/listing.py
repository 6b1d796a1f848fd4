"""`list_directory`: what lies in a folder."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Container, Iterator

from ai_whisperer.domain.definition import Access
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.files.beneath import DIRECTORY, Identities, Links, open_beneath
from ai_whisperer.tools.files.opening import opened, shown
from ai_whisperer.tools.files.searcher import DRAFT_PREFIX
from ai_whisperer.tools.function import ToolContext, tool
from ai_whisperer.tools.workplace import OWN, Place, Workplace, identity

_MOST_SHOWN = 1000
_MOST_IN_ONE_FOLDER = 10_000
_DEEPEST = 20
_KINDS = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
_GRANTS = {Access.READ: "a granted folder, for reading", Access.WRITE: "a granted folder, for reading and writing"}


@tool(idempotent=True, untrusted=True)
def list_directory(context: ToolContext, path: str = ".", depth: int = 1) -> str:
    """List what is in a folder: names and sizes; folders end in a slash. depth 2 and more list what is in those too.

    The path is relative to your working folder, in which the folders that you are granted appear by their names.
    """
    if not 1 <= depth <= _DEEPEST:
        raise ToolError(f"depth must be from 1 to {_DEEPEST}.")
    with opened(context.workplace, path) as place:
        granted = _granted(context.workplace, place.place)
        descriptor = place.open(place.place.path, DIRECTORY)
        hidden = place.hidden
        found = itertools.chain(granted.values(), _lines(descriptor, "", depth, without=granted, hidden=hidden))
        lines = list(itertools.islice(found, _MOST_SHOWN + 1))
    more = f" The first {_MOST_SHOWN:,} are shown; list the folders in it one by one." * (len(lines) > _MOST_SHOWN)
    lines = lines[:_MOST_SHOWN]
    if not lines:
        return f"'{place.name}' is empty."
    return "\n".join([f"[{place.name}: {len(lines):,} entries.{more}]", *lines])


def _granted(workplace: Workplace | None, place: Place) -> dict[str, str]:
    """The granted folders by name, if it is the folder that paths are relative to."""
    if workplace is None or (place.name, place.path) != (workplace.working, "."):
        return {}
    others = {name: folder for name, folder in workplace.folders.items() if name not in (OWN, workplace.working)}
    return {name: f"{name}/  ({_GRANTS[folder.access]})" for name, folder in others.items()}


def _lines(directory: int, path: str, depth: int, *, without: Container[str], hidden: Identities) -> Iterator[str]:
    """A line for each entry, by name, with what is in folders after them. The descriptor is closed at the end."""
    try:
        with os.scandir(directory) as entries:
            some = list(itertools.islice(entries, _MOST_IN_ONE_FOLDER + 1))
        for entry in sorted(some[:_MOST_IN_ONE_FOLDER], key=lambda each: each.name):
            if entry.name in without or entry.name.startswith(DRAFT_PREFIX):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # it is gone by now
            if identity(status) in hidden:
                continue
            name = f"{path}{entry.name}"
            yield _line(directory, entry.name, name, status)
            if depth > 1 and stat.S_ISDIR(status.st_mode):
                yield from _inside(directory, entry.name, f"{name}/", depth - 1, hidden=hidden)
        if len(some) > _MOST_IN_ONE_FOLDER:
            yield f"{shown(path)}…  (more than {_MOST_IN_ONE_FOLDER:,} entries; the others are not shown)"
    finally:
        os.close(directory)


def _inside(directory: int, name: str, path: str, depth: int, *, hidden: Identities) -> Iterator[str]:
    try:
        below = open_beneath(directory, name, DIRECTORY, links=Links.REFUSED, hidden=hidden)
    except OSError as error:
        yield f"{shown(path)}…  ({error.strerror})"
        return
    yield from _lines(below, path, depth, without=(), hidden=hidden)


def _line(directory: int, name: str, path: str, status: os.stat_result) -> str:
    if stat.S_ISDIR(status.st_mode):
        return f"{shown(path)}/"
    if stat.S_ISREG(status.st_mode):
        return f"{shown(path)}  {status.st_size:,} bytes"
    if stat.S_ISLNK(status.st_mode):
        try:
            return f"{shown(path)}  (symbolic link to {shown(os.readlink(name, dir_fd=directory))})"
        except OSError:
            return f"{shown(path)}  (symbolic link)"
    return f"{shown(path)}  ({_KINDS.get(stat.S_IFMT(status.st_mode), 'no plain file')})"

"""`search_files`: where an expression is found in the files of a folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.files.beneath import Identities
from ai_whisperer.tools.files.opening import opened, shown, told
from ai_whisperer.tools.files.search_process import searched
from ai_whisperer.tools.function import ToolContext, in_thread, tool
from ai_whisperer.tools.workplace import Place, Workplace

_MATCHES = 200
_MOST_MATCHES = 2000
_SECONDS = 30.0
_MOST_CHARACTERS = 10_000

_LEFT_OUT = {
    "binary": "are not text",
    "large": "are too large",
    "unreadable": "could not be read",
}


class _Answer(NamedTuple):
    """What the searching process told: matches, and how it ended. `end` is None if it was ended from outside."""

    matches: Sequence[dict[str, Any]]
    end: dict[str, Any] | None


@tool(idempotent=True, untrusted=True)
async def search_files(
    context: ToolContext, pattern: str, path: str = ".", glob: str | None = None, max_matches: int = _MATCHES
) -> ToolResult:
    """Find the lines of text files that match a regular expression (as in Python), in a folder and the folders in it.

    The path is relative to your working folder, and may be that of a file; name a granted folder to search that one.
    glob, such as *.py or docs/**/*.md, limits the search to files of such names.
    """
    if not 1 <= max_matches <= _MOST_MATCHES:
        raise ToolError(f"max_matches must be from 1 to {_MOST_MATCHES:,}.")
    if max(len(pattern), len(glob or "")) > _MOST_CHARACTERS:
        raise ToolError(f"pattern and glob can have {_MOST_CHARACTERS:,} characters at most. Shorten them.")
    workplace = context.workplace
    if workplace is None:
        raise ToolError("There are no folders to search. File tools work for agents of a session only.")
    found: tuple[Place, Identities] = await in_thread(_place, {"workplace": workplace, "path": path}, context.cancelled)
    place, hidden = found
    seconds = min(_SECONDS, workplace.limits.max_tool_seconds)
    request = {
        "folder": str(place.folder.path),
        "path": place.path,
        "pattern": pattern,
        "glob": glob,
        "max_matches": max_matches,
        "max_file_bytes": workplace.limits.max_file_bytes,
        "hidden": sorted(hidden),
    }
    output, run = await searched(workplace, place, msgspec.json.encode(request), seconds=seconds)
    content = _told(_parsed(output), place, pattern, path=shown(path), seconds=seconds)
    return ToolResult(content=content, run=run)


def _place(workplace: Workplace, path: str) -> tuple[Place, Identities]:
    """Where to search, and what is hidden there; raises `ToolError` if there is nothing."""
    with opened(workplace, path) as place:
        descriptor = place.open(place.place.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISDIR(status.st_mode):
                place.check_plain(status)
        finally:
            os.close(descriptor)
        return place.place, place.hidden


def _parsed(output: bytes) -> _Answer:
    whole = (line for line in output.split(b"\n")[:-1] if line.startswith(b"{"))
    lines: list[dict[str, Any]] = [msgspec.json.decode(line) for line in whole]
    is_over = bool(lines) and "path" not in lines[-1]
    return _Answer(lines[:-1], lines[-1]) if is_over else _Answer(lines, None)


def _told(answer: _Answer, place: Place, pattern: str, *, path: str, seconds: float) -> str:
    end = answer.end or {}
    if "wrong_glob" in end:
        raise ToolError(
            f"The glob is not a pattern of names: {end['wrong_glob']}. Use *, ** and ?, and [abc] for one of several "
            "characters."
        )
    if "wrong" in end:
        raise ToolError(_wrong(pattern, end["wrong"], end["at"]))
    if "failed" in end:
        with told(path):
            raise OSError(end["failed"], os.strerror(end["failed"]))
    within = f"{place.name}/" if place.name else ""
    lines = [f"{shown(within + each['path'])}:{each['line']}: {mended(each['text'])}" for each in answer.matches]
    counts: dict[str, int] = end.get("counts", {})
    notes = [f"{len(lines):,} matching lines"]
    if answer.end is None:
        hint = (
            f"the search was ended, it may take {seconds:g} seconds: use a simpler pattern, a glob or a smaller folder"
        )
        if not lines:
            raise ToolError(f"Nothing was found, and {hint}. Nested repeats such as (a+)+ can take for ever.")
        notes.append(hint)
    elif end.get("is_cut"):
        notes.append("there may be more: raise max_matches, or narrow the search")
    else:
        notes.append(f"{counts['files']:,} text files searched")
    notes += [f"{counts[name]:,} files {why}" for name, why in _LEFT_OUT.items() if counts.get(name)]
    return "\n".join([f"[{path}: {'; '.join(notes)}]", *lines])


def _wrong(pattern: str, why: str, at: int | None) -> str:
    where = "" if at is None else f" What is wrong begins at character {at + 1}: {pattern[at:][:40]!r}."
    return (
        f"The pattern is not a regular expression: {why}.{where} Put a backslash before characters that are meant as "
        "they are."
    )

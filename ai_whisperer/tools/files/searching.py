"""`search_files`: where an expression is found in the files of a folder."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ai_whisperer.core.text import mended
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.files import searcher
from ai_whisperer.tools.files.opening import opened, shown, told
from ai_whisperer.tools.function import ToolContext, in_thread, tool
from ai_whisperer.tools.workplace import Place

_MATCHES = 200
_MOST_MATCHES = 2000
_SECONDS = 30.0
_MOST_CHARACTERS = 10_000
_MOST_OUTPUT_BYTES = 16 << 20

_LEFT_OUT = {
    "binary": "are no text",
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
) -> str:
    """Find the lines of text files that match a regular expression (as in Python), in a folder and the folders in it.

    The path is relative to your own folder, and may be that of a file; name a granted folder to search that one. glob,
    such as *.py or docs/**/*.md, limits the search to files of such names.
    """
    if not 1 <= max_matches <= _MOST_MATCHES:
        raise ToolError(f"max_matches must be from 1 to {_MOST_MATCHES:,}.")
    if max(len(pattern), len(glob or "")) > _MOST_CHARACTERS:
        raise ToolError(f"pattern and glob can have {_MOST_CHARACTERS:,} characters at most. Shorten them.")
    place: Place = await in_thread(_place, {"context": context, "path": path}, context.cancelled)
    limits = context.workplace.limits if context.workplace else None
    seconds = min(_SECONDS, limits.max_tool_seconds if limits else _SECONDS)
    request = {
        "folder": str(place.folder.path),
        "path": place.path,
        "pattern": pattern,
        "glob": glob,
        "max_matches": max_matches,
        "max_file_bytes": limits.max_file_bytes if limits else 0,
    }
    answer = await _searched(msgspec.json.encode(request), seconds)
    return _told(answer, place, pattern, path=shown(path), seconds=seconds)


def _place(context: ToolContext, path: str) -> Place:
    """Where to search; raises `ToolError` if there is nothing."""
    with opened(context.workplace, path) as place:
        os.close(place.open(place.place.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
        return place.place


async def _searched(request: bytes, seconds: float) -> _Answer:
    """Run the program for so long. When this ends in any way, the process is gone."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", "-X", "utf8", "-c", _program()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        env={},
        start_new_session=True,
    )
    output = bytearray()
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await _read(process, request, output)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return _parsed(bytes(output))


async def _read(process: asyncio.subprocess.Process, request: bytes, output: bytearray) -> None:
    if process.stdin is None or process.stdout is None:
        raise ToolError("The search could not be started. Try again.")
    process.stdin.write(request)
    process.stdin.close()
    while len(output) < _MOST_OUTPUT_BYTES and (piece := await process.stdout.read(65_536)):
        output += piece


def _parsed(output: bytes) -> _Answer:
    lines: list[dict[str, Any]] = [msgspec.json.decode(line) for line in output.split(b"\n")[:-1]]
    is_over = bool(lines) and "path" not in lines[-1]
    return _Answer(lines[:-1], lines[-1]) if is_over else _Answer(lines, None)


@cache
def _program() -> str:
    return Path(searcher.__file__).read_text(encoding="utf-8")


def _told(answer: _Answer, place: Place, pattern: str, *, path: str, seconds: float) -> str:
    end = answer.end or {}
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
            f"the search was ended after {seconds:g} seconds: use a simpler pattern, a glob, or a folder further down"
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

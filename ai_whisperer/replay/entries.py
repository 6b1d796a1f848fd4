"""Puts the lines of a conversation script together: one that begins something, and the indented ones below it."""

from __future__ import annotations

from collections.abc import Iterator

from ai_whisperer.errors import ScriptError


def entries(text: str, name: str) -> Iterator[tuple[int, str, str]]:
    """Number, first line and the lines that belong to it, without what is indented alike."""
    number, first = 0, ""
    rest: list[str] = []
    for at, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if line[:1] in (" ", "\t") and line.strip():
            if not first:
                raise ScriptError(
                    f"{name}, line {at}: an indented line goes with the line before it, and there is none."
                )
            rest.append(line)
        elif not line.strip() and rest:
            rest.append("")  # within a text, unless nothing of it follows
        elif line.strip() and not line.startswith("#"):
            if first:
                yield number, first, _unindented(rest)
            number, first, rest = at, line.rstrip(), []
    if first:
        yield number, first, _unindented(rest)


def _unindented(rest: list[str]) -> str:
    indents = [len(line) - len(line.lstrip()) for line in rest if line.strip()]
    least = min(indents, default=0)
    return "\n".join(line[least:] for line in rest).strip("\n")

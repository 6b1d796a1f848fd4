"""Replacing a piece of text that a model quotes, or telling it where its quotation does not fit."""

from __future__ import annotations

import difflib

from ai_whisperer.errors import ToolError

_MOST_LINES_COMPARED = 2000
_MOST_CHARACTERS_COMPARED = 200
_MOST_NAMED = 20


class NoSingleMatchError(ToolError):
    """The text is not there, or more than once. The message quotes the file."""


def replaced(text: str, old: str, new: str, *, path: str, everywhere: bool, most_characters: int) -> str:
    """The text with `new` for `old`; raises `ToolError` unless `old` is there once, or at all if it is for everywhere.

    In a text whose lines all end in CRLF, the line ends of `old` and `new` may be written either way.
    """
    if not old:
        raise ToolError("old must not be empty. Quote the text that is to be replaced; write_file writes whole files.")
    if text.count("\r\n") == text.count("\n") > 0:
        old, new = (each.replace("\r\n", "\n").replace("\n", "\r\n") for each in (old, new))
    if old == new:
        raise ToolError("old and new are the same. Nothing was changed.")
    count = text.count(old)
    if count == 0:
        raise NoSingleMatchError(f"old is not in '{path}'; nothing was changed. {_nearest(text, old)}")
    if count > 1 and not everywhere:
        raise NoSingleMatchError(
            f"old is {count} times in '{path}', in the lines {_lines_of(text, old)}; nothing was changed. Quote more "
            "of what is around the right place, or set all to change every place."
        )
    if len(text) + count * (len(new) - len(old)) > most_characters:
        raise ToolError(
            f"'{path}' would have more than {most_characters:,} characters; nothing was changed. Replace by less, or "
            "in fewer places."
        )
    return text.replace(old, new)


def _lines_of(text: str, old: str) -> str:
    lines: list[str] = []
    at, line, counted = text.find(old), 1, 0
    while at >= 0 and len(lines) < _MOST_NAMED:
        line += text.count("\n", counted, at)
        counted = at
        lines.append(str(line))
        at = text.find(old, at + len(old))
    return ", ".join(lines) + (" and more" if at >= 0 else "")


def _nearest(text: str, old: str) -> str:
    """What in the text is most like the first line that was quoted."""
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), "")[:_MOST_CHARACTERS_COMPARED]
    if not wanted:
        return "It must be quoted exactly, with its spaces and line ends."
    written = text.split("\n")
    lines = [line.strip()[:_MOST_CHARACTERS_COMPARED] for line in written]
    if wanted in lines:
        at = lines.index(wanted)
        return (
            f"Line {at + 1} is like the first one that you quoted, but spaces, line ends or the lines after it differ. "
            f"It is {written[at][:_MOST_CHARACTERS_COMPARED]!r}. Read the file and quote it exactly."
        )
    near = difflib.get_close_matches(wanted, lines[:_MOST_LINES_COMPARED], n=1)
    if not near:
        return "No line is like the first one that you quoted. Read the file and quote it exactly."
    return f"The nearest line is {lines.index(near[0]) + 1}: {near[0]!r}. Read the file and quote it exactly."

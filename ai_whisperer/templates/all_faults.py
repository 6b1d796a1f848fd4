"""All that is wrong in one file of a template, not only what is found first."""

from __future__ import annotations

import re

from ai_whisperer.errors import TemplateError
from ai_whisperer.templates.drafts import draft_of
from ai_whisperer.templates.front_matter import split
from ai_whisperer.templates.parsing import template_of

_MOST = 20
_LINE = re.compile(r", line (\d+): ")
_FIELD = re.compile(r"[^\s#-][^:]*:")


def all_faults(text: str, *, source: str) -> list[str]:
    """What is wrong, each with its line: a field with a mistake is left out, and the rest is read again."""
    lines = text.replace("\r\n", "\n").split("\n")
    found: list[str] = []
    while len(found) < _MOST:
        try:
            template_of((draft_of(split("\n".join(lines), source), source),))
        except TemplateError as error:
            found.append(error.message)
            line = _LINE.search(error.message)
            if line is None or not _leave_out(lines, int(line[1]) - 1):
                break
        else:
            break
    return found


def _leave_out(lines: list[str], at: int) -> bool:
    """Blank the field that this line belongs to, so that all others keep theirs; False if there is none."""
    start = next((index for index in range(min(at, len(lines) - 1), 0, -1) if _FIELD.match(lines[index])), None)
    if start is None:
        return False
    end = next((index for index in range(start + 1, len(lines)) if lines[index][:1].strip()), len(lines))
    is_name = lines[start].startswith("name:")
    lines[start:end] = ["name: some-name" if is_name else "", *[""] * (end - start - 1)]
    return True

"""Reads what a model was shown the way a careful reader would: who said what, and what the runtime itself says.

It knows the marks from their description alone and shares no code with what makes them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_OPENING = re.compile(r'<said by="([^"\n]*)" id="([0-9]+)">\n')
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'")
_CLAIMS = (
    re.compile(r"^From: (.*)$"),
    re.compile(r"^\[\d+\] (\S+):"),
    re.compile(r"^(\S+) delegates this task"),
    re.compile(r"was broadcast by (\S+)\."),
    re.compile(r"\(from (\S+)\)"),
    re.compile(r"(\S+) (?:holds it|broke the lease|released it)"),
)


class Heard(NamedTuple):
    """`speeches` are who said what; `own` are the runtime's own lines, without texts that stand in quotation marks."""

    speeches: list[tuple[str, str]]
    own: list[str]

    @property
    def claims(self) -> set[str]:
        """Who is named as a sender, a speaker or a holder by the runtime's own lines."""
        return {found[1] for line in self.own for claim in _CLAIMS for found in claim.finditer(line)}


def heard(shown: str) -> Heard:
    """Take a text that a model was shown apart. Raises `AssertionError` if a mark has no end."""
    speeches: list[tuple[str, str]] = []
    rest = ""
    while (opening := _OPENING.search(shown)) is not None:
        closing = f'\n</said id="{opening[2]}">'
        words, end, after = shown[opening.end() - 1 :].partition(closing)
        assert end, f"the mark {opening[0]!r} has no end"
        speeches.append((opening[1], words[1:]))
        rest, shown = rest + shown[: opening.start()], after
    lines = [_without_texts(line) for line in (rest + shown).splitlines()]
    return Heard(speeches, [line for line in lines if not line.startswith("Subject: ")])


def _without_texts(line: str) -> str:
    return _QUOTED.sub("''", _JSON_TEXT.sub('""', line))

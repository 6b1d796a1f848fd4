"""Who is meant by `@name` in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from ai_whisperer.core.addresses import normalized
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.record import Record
from ai_whisperer.late_pattern import late_pattern

EVERYONE = ("all", "everyone")
"""Names that address all members, unless one of them is called so."""

_SPACE = r"(?:[^\S\n]|[_\-]){1,8}"
"""What stands between two words of a name. It has a bound, or a text of blanks would be read again for each member."""

_ENDS = r"(?!\w|[-.]\w)"
_SEPARATORS = late_pattern(r"[\s_\-]+")
_FENCE = late_pattern(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
_TICKS = late_pattern(r"`+")
_BLANK_LINE = late_pattern(r"\n[^\S\n]*\n")
_PAGE_ADDRESS = late_pattern(r"://\S*")
_BLOT = "\0"


class Mentions(Record, frozen=True, kw_only=True):
    """Whom a text addresses. `named` has ids, in the order of the text; `strangers` the names that nobody here has."""

    named: tuple[str, ...] = ()
    everyone: bool = False
    strangers: tuple[str, ...] = ()


def mentions_in(text: str, names: Mapping[str, str]) -> Mentions:
    """The mentions in a text. `names` leads from all names of those who can be addressed to their ids.

    Case and spacing do not matter, and of several names that fit the longest is meant. No mention is an `@` in code, in
    the address of a page, after a letter as in an e-mail address, or after a backslash.
    """
    if "@" not in text:
        return Mentions()
    ids = {normalized(name): agent_id for name, agent_id in names.items()}
    named: dict[str, None] = {}
    strangers: dict[str, None] = {}
    everyone = False
    for found in _pattern(tuple(sorted(names))).finditer(_without_code(text)):
        if found["name"] is None:
            strangers[found["stranger"].rstrip(".-")] = None
            continue
        name = normalized(found["name"])
        if name in ids:
            named[ids[name]] = None
        elif name in EVERYONE:
            everyone = True
    return Mentions(named=tuple(named), everyone=everyone, strangers=tuple(strangers))


@lru_cache(maxsize=256)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Finds a mention of one of these, the longest first, or of a stranger. The person can be named, to no effect."""
    # A name and its folded form can differ by more than case: the folded "Straße" is "strasse".
    spellings = {spelling for name in names for spelling in (name.strip(), normalized(name))} - {""}
    spellings |= {*EVERYONE, USER}
    following: dict[str, set[tuple[str, ...]]] = {}
    for spelling in spellings:
        first, *others = _SEPARATORS.split(spelling.lower() if spelling.isascii() else spelling)
        following.setdefault(first, set()).add(tuple(others))
    choices = "|".join(_named(first, following[first]) for first in sorted(following, key=_longest_first))
    beginnings = "".join(re.escape(first[0]) if first else r"\s_\-" for first in following)
    return re.compile(
        rf"(?<![\w\\])@(?:(?=[{beginnings}])(?P<name>{choices}){_ENDS}|(?P<stranger>\w[\w.\-]*))", re.IGNORECASE
    )


def _named(first: str, following: set[tuple[str, ...]]) -> str:
    """Finds the names that begin with this word, the longest first, and looks at the word once for all of them."""
    longer = sorted((" ".join(words) for words in following if any(words)), key=_longest_first)
    ends = [_SPACE + "+(?:" + "|".join(map(_spaced, longer)) + ")"] if longer else []
    if ("",) in following:
        ends.append(_SPACE)  # the name ends in a separator; more of them in the text may be taken back
    if () in following:
        ends.append("")
    return f"{re.escape(first)}(?:{'|'.join(ends)})"


def _spaced(words: str) -> str:
    return _SPACE.join(re.escape(word) for word in words.split(" "))


def _longest_first(words: str) -> tuple[int, str]:
    return -len(words), words


def _without_code(text: str) -> str:
    """The text with code and addresses of pages blotted out, character by character."""
    return _PAGE_ADDRESS.sub(lambda found: _BLOT * len(found[0]), _without_spans(_without_fenced_blocks(text)))


def _without_fenced_blocks(text: str) -> str:
    """Blot out the blocks between fences; one that is not closed goes on to the end."""
    lines = text.split("\n")
    fence = ""
    for number, line in enumerate(lines):
        if fence:
            lines[number] = _BLOT * len(line)
            if line.strip() and not line.strip().strip(fence[0]) and len(line.strip()) >= len(fence):
                fence = ""
        elif (opened := _FENCE.match(line)) is not None:
            fence = opened[1]
            lines[number] = _BLOT * len(line)
    return "\n".join(lines)


def _without_spans(text: str) -> str:
    """Blot out what stands between two runs of as many backticks within one paragraph."""
    pieces: list[str] = []
    end = 0
    for start, stop in _code_spans(text):
        pieces += (text[end:start], _BLOT * (stop - start))
        end = stop
    return "".join((*pieces, text[end:]))


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    runs = [found.span() for found in _TICKS.finditer(text)]
    following = _next_of_same_length(runs)
    number = 0
    while number < len(runs):
        start, stop = runs[number]
        partner = following[number]
        escaped = start > 0 and text[start - 1] == "\\"
        if escaped or partner is None or _BLANK_LINE.search(text, stop, runs[partner][0]):
            number += 1
        else:
            yield start, runs[partner][1]
            number = partner + 1


def _next_of_same_length(runs: list[tuple[int, int]]) -> list[int | None]:
    """For each run the number of the next one that is as long. (To look for it each time would be quadratic.)"""
    following: list[int | None] = [None] * len(runs)
    latest: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        following[number] = latest.get(length)
        latest[length] = number
    return following

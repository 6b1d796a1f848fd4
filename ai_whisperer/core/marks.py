"""Marks around what others wrote: a model that is shown it can tell who said what, whatever the text says.

A text cannot contain the marks that it stands between. They carry a number that does not occur in the text, and what
looks like a mark in the text is made harmless. The number is made of the text itself: the same text has the same marks
each time, for the sake of caches and of runs that are replayed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec

from ai_whisperer.core.text import one_line
from ai_whisperer.late_pattern import late_pattern

_FEWEST_DIGITS = 6
_FORGED = late_pattern(r"<(?=[^\w<]{0,8}(?:untrusted|said(?!\w)))", re.IGNORECASE)
_NOT_IN_NAMES = late_pattern(r"[^\w.:-]")
_NAME = late_pattern(r"[\w.:-]+")
_LONGEST_NAME = 100
_OPENING = "<said by="
_CLOSING = "\n</said id="
_FIRST_MARK = late_pattern(r'<said by="[\w.:-]*" id="\d+">\n')
_LAST_MARK = late_pattern(r'\n</said id="\d+">')
_UNSEEN = late_pattern("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def said(by: str, text: str) -> str:
    """What somebody wrote, between marks that name the writer."""
    return marked("said", f'by="{name_in_mark(by)}"', text)


def untrusted(source: str, text: str) -> str:
    """What strangers may have written, between marks that name the tool which brought it."""
    return marked("untrusted", f'source="{name_in_mark(source)}"', text)


def marked(word: str, about: str, text: str) -> str:
    """The text between the two marks of a kind. `about` stands in the first, and has to be safe there."""
    number = _number_for(text)
    return f'<{word} {about} id="{number}">\n{harmless(text)}\n</{word} id="{number}">'


@lru_cache(maxsize=1000)
def name_in_mark(name: str) -> str:
    """The name without what could end the mark that it stands in."""
    return _NOT_IN_NAMES.sub("", name)[:_LONGEST_NAME]


def harmless(text: str) -> str:
    """The text with `&lt;` for each `<` that could begin a mark."""
    return _FORGED.sub("&lt;", text) if "<" in text else text


def quoted(text: str) -> str:
    """A name, or a few words, within a sentence: on one line, between quotation marks that it cannot end."""
    line = one_line(text).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{harmless(line)}'"


def named(name: str) -> str:
    """Who somebody is, within a sentence: as it is if it can be nothing but a name."""
    return name if _NAME.fullmatch(name) else quoted(name)


def as_json(value: Any) -> str:
    """Data as JSON for a model: texts in it stay within their quotation marks and on their line, and hold no marks."""
    text = msgspec.json.encode(value).decode()
    if "<" in text:
        text = _FORGED.sub(r"\\u003c", text)
    return text if text.isascii() and "\x7f" not in text else _UNSEEN.sub(_escaped, text)


def has_marks(text: str) -> bool:
    """Whether words that others said may be in the text."""
    return _OPENING in text


def without_marks(text: str) -> str:
    """The text with the marks around words that others said taken away: for people, and for rules that match text."""
    if _OPENING not in text:
        return text
    text = _FIRST_MARK.sub("", text)
    return _LAST_MARK.sub("", text) if _CLOSING in text else text


def inside_marks(text: str) -> str:
    """What stands between the first marks around words that others said; all of it if there are none."""
    begins = _FIRST_MARK.search(text)
    if begins is None:
        return text
    ends = _LAST_MARK.search(text, begins.end())
    return text[begins.end() : None if ends is None else ends.start()]


def _number_for(text: str) -> str:
    """A number that does not occur in the text."""
    digits = str(int.from_bytes(sha256(text.encode(errors="replace")).digest()))
    length = _FEWEST_DIGITS
    while digits[:length] in text and length < len(digits):
        length += 1
    return digits[:length]


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"

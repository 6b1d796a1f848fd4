"""Whether a model that wrote a call into its text may only repeat what somebody else wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import nlargest
from typing import Any

import msgspec

from ai_whisperer.core.call_repair import without_prefix
from ai_whisperer.core.text_calls import TextCalls, WrittenCall
from ai_whisperer.domain.conversation import AnswerTurn, ToolTurn, Turn, UserTurn
from ai_whisperer.late_pattern import late_pattern

_MAX_COMPARED = 2 << 20
"""So many characters are searched, those that were shown once for each call: it takes its time. Beyond that every call
may be quoted."""
_TELLING = 5
"""Shorter values are in any text."""
_MAX_VALUES = 4
"""So many values of a call are looked for, the longest ones."""
_IGNORED = b" \t\n\r\v\f\\"
_HIDDEN = late_pattern(r"\\u00(?:3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7[bd])", re.IGNORECASE)
"""Letters, digits and braces that are escaped: whoever does that hides something."""


def may_be_quoted(written: str, found: TextCalls, turns: tuple[Turn, ...]) -> bool:
    """Whether the calls `found` in the text `written` may be those of somebody else, shown in `turns`.

    They may if the model was shown these very words, blanks and escapes apart. If strangers wrote what it was shown, it
    is enough that the arguments stand there, or the name together with the keys or with a value: then the call is
    shown in another order or form. Where there is talk around the call, what strangers wrote may stand there in
    other words too.
    """
    shown = [turn for turn in turns if not isinstance(turn, AnswerTurn)]
    if sum(len(_text_of(turn)) for turn in shown) * len(found.calls) > _MAX_COMPARED:
        return True
    words = _plain(written)
    calls = [_Sought(call) for call in found.calls]
    for turn in shown:
        if isinstance(turn, UserTurn) and turn.parts:
            return True  # what stands in images and files is not known here
        text = _text_of(turn)
        plain = _plain(text)
        if words in plain:
            return True
        if not _is_of_strangers(turn):
            continue
        if found.talk or _HIDDEN.search(text) or any(call.stands_in(plain) for call in calls):
            return True
    return False


class _Sought:
    """What tells a call, without blanks and escapes."""

    def __init__(self, call: WrittenCall) -> None:
        given = msgspec.json.decode(call.arguments)
        name = without_prefix(call.name)
        self._arguments = _plain(call.arguments) if given else None
        self._name = _plain(name)
        self._quoted = [_plain(f'{name}"'), *(_plain(f'"{key}"') for key in given)]
        values = (_plain(value) for value in _strings_in(given))
        self._values = nlargest(_MAX_VALUES, {value for value in values if len(value) >= _TELLING}, key=len)

    def stands_in(self, plain: bytes) -> bool:
        """Whether a text of strangers holds the call in some form."""
        if self._arguments is not None and self._arguments in plain:
            return True
        if self._name not in plain:
            return False
        return any(value in plain for value in self._values) or all(each in plain for each in self._quoted)


def _text_of(turn: Turn) -> str:
    match turn:
        case ToolTurn():
            return turn.content
        case AnswerTurn():
            return turn.answer.text
    return f"{turn.memory}\n{turn.text}" if turn.memory else turn.text


def _is_of_strangers(turn: Turn) -> bool:
    """Whether strangers may have written it, or what the agent noted down of them."""
    return not isinstance(turn, AnswerTurn) and (turn.untrusted or (isinstance(turn, UserTurn) and bool(turn.memory)))


def _strings_in(value: Any) -> Iterator[str]:
    """The texts in a JSON value, at any depth."""
    left = [value]
    while left:
        match left.pop():
            case str(text):
                yield text
            case list(items):
                left += items
            case dict(items):
                left += items.values()


def _plain(text: str) -> bytes:
    """The text without blanks and without what JSON within JSON puts before quotes."""
    return text.encode(errors="surrogatepass").translate(None, _IGNORED).replace(b"u0022", b'"')

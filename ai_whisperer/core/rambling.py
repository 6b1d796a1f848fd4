"""Whether an answer that is continued brings anything new, or the model only says the same again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ai_whisperer.domain.conversation import ChannelResponse

REPEATED = "[The answer was cut here: the model only repeated itself.]"
"""What stands in place of a part that brings nothing new."""

_WORDS_TOGETHER = 5
_NEW_CHARACTERS = 8 << 10
_KNOWN_CHARACTERS = 16 << 10
_KNOWN_PARTS = 3
"""So much of a part is looked at, and of so many before it, that this takes a few milliseconds at most."""
_SEEN_SHARE = 0.9


def says_nothing_new(part: ChannelResponse, earlier: Sequence[ChannelResponse]) -> bool:
    """Whether nearly all that the part says, in the same words, was said in the parts before it."""
    said = set(_phrases(_said(part)[:_NEW_CHARACTERS]))
    if not said:
        return False
    known = {phrase for each in earlier[-_KNOWN_PARTS:] for phrase in _phrases(_said(each)[:_KNOWN_CHARACTERS])}
    return len(said & known) >= _SEEN_SHARE * len(said)


def without_repetition(part: ChannelResponse) -> ChannelResponse:
    """The last part of an answer that ends since it brings nothing new: on a line of its own."""
    return ChannelResponse(analysis=part.analysis, commentary=part.commentary, final=f"\n{REPEATED}")


def _said(part: ChannelResponse) -> str:
    return part.final or part.analysis


def _phrases(text: str) -> Iterator[tuple[str, ...]]:
    """All runs of a few words; a text of fewer is one."""
    words = text.lower().split()
    for at in range(max(len(words) - _WORDS_TOGETHER + 1, min(len(words), 1))):
        yield tuple(words[at : at + _WORDS_TOGETHER])

"""Reasoning that a server leaves in the text, between `<think>` and `</think>` at its beginning."""

from __future__ import annotations

from collections.abc import Iterator

from ai_whisperer.models.base import ReasoningDelta, TextDelta

_BEGIN, _END = "<think>", "</think>"


class ThinkTags:
    """Tells reasoning and text apart while they come. When it `is_over`, all that follows is text."""

    __slots__ = ("_held", "_is_after", "_is_inside", "is_over")

    def __init__(self) -> None:
        self._held = ""
        self._is_inside = False
        self._is_after = False
        self.is_over = False

    def feed(self, text: str) -> Iterator[ReasoningDelta | TextDelta]:
        text, self._held = self._held + text, ""
        if self._is_after:
            yield from self._rest(text)
            return
        if not self._is_inside:
            begun = text.lstrip()
            if not begun.startswith(_BEGIN):
                if _BEGIN.startswith(begun):
                    self._held = text  # it may become one
                    return
                self.is_over = True
                yield TextDelta(text=text)
                return
            self._is_inside = True
            text = begun.removeprefix(_BEGIN)
        thought, end, rest = text.partition(_END)
        if end:
            self._is_after = True
        else:
            thought, self._held = _split(thought)
        if thought:
            yield ReasoningDelta(text=thought)
        yield from self._rest(rest)

    def _rest(self, text: str) -> Iterator[TextDelta]:
        """What comes after the reasoning, without the empty lines between."""
        if text := text.lstrip():
            self.is_over = True
            yield TextDelta(text=text)

    def finish(self) -> Iterator[ReasoningDelta | TextDelta]:
        """What was held back."""
        held, self._held, self.is_over = self._held, "", True
        if held:
            yield ReasoningDelta(text=held) if self._is_inside else TextDelta(text=held)


def _split(text: str) -> tuple[str, str]:
    """The text, and what at its end may be the beginning of the end mark."""
    for length in range(min(len(_END) - 1, len(text)), 0, -1):
        if _END.startswith(text[-length:]):
            return text[:-length], text[-length:]
    return text, ""

"""Reasoning that a model writes into its text: `<think>…</think>`, as local models do whose server leaves it there.

It counts at the start of a text only. Where the chat template has written the opening tag, the text begins within the
reasoning, and only the closing tag tells: it counts alone on its line, outside of code.
"""

from __future__ import annotations

import re

from ai_whisperer.late_pattern import late_pattern

_OPENERS = ("<think>", "<thinking>")
_CLOSERS = ("</think>", "</thinking>")
_LONGEST = max(map(len, _CLOSERS))
_MAX_BLANKS = 1_024
"""After more blanks no tag is at the start of a text: they are held back until it is clear."""
_OPENER = late_pattern(rf"\s{{0,{_MAX_BLANKS}}}<think(?:ing)?>")
_CLOSER = late_pattern(r"</think(?:ing)?>")
_MAX_BLANKS_AFTER = 64
"""After more blanks a closing tag is not alone on its line: it is held back until it is clear."""
_CLOSER_ALONE = rf"</think(?:ing)?>[ \t\r]{{0,{_MAX_BLANKS_AFTER}}}"
_CLOSING_LINE = late_pattern(_CLOSER_ALONE)
_LONE_CLOSER = late_pattern(rf"^[ \t]*{_CLOSER_ALONE}$", re.MULTILINE)
_LINE_OF_TAG = late_pattern(r"^[ \t]*(<[^\n]*)", re.MULTILINE)
_FENCE = late_pattern(r"^[ \t]*```", re.MULTILINE)


def begins_with_reasoning(text: str) -> bool:
    """Whether the opening tag stands at the start."""
    return "<think" in text and _OPENER.match(text) is not None


def unopened_reasoning(text: str) -> tuple[str, str]:
    """The reasoning before a closing tag that was never opened, and what comes after it; ("", text) without one."""
    found = _LONE_CLOSER.search(text) if "</think" in text else None
    if found is None or not _may_be_reasoning(text, found.start()):
        return "", text
    return text[: found.start()], text[found.end() :]


def _may_be_reasoning(text: str, end: int) -> bool:
    """Whether a closing tag at the end of this has no opening one, and does not stand in code."""
    return not begins_with_reasoning(text) and len(_FENCE.findall(text, 0, end)) % 2 == 0


def after_reasoning(text: str) -> str:
    """The text without the reasoning that it begins with, if any; nothing if that does not end."""
    opened = _OPENER.match(text)
    if opened is None:
        return unopened_reasoning(text)[1]
    closed = _CLOSER.search(text, opened.end())
    return "" if closed is None else text[closed.end() :]


class ReasoningScanner:
    """Takes the reasoning off the start of a text while it arrives, in chunks split anywhere.

    When it `is_over`, all that follows is text.
    """

    def __init__(self) -> None:
        self.opened = False
        self.is_over = False
        self._blanks = ""
        self._held = ""

    def feed(self, chunk: str) -> tuple[str, str]:
        """What the chunk settles of the reasoning, and of the text after it."""
        if self.is_over:
            return "", chunk
        if not self.opened and not self._held:
            text = chunk.lstrip()
            self._blanks += chunk[: len(chunk) - len(text)]
            if len(self._blanks) > _MAX_BLANKS:
                self.is_over = True
                return "", self._with_blanks(text)
        else:
            text = self._held + chunk
        self._held = ""
        return self._within(text) if self.opened else self._at_start(text)

    def finish(self) -> tuple[str, str]:
        """What was still held back, likewise."""
        held, self._held = self._held, ""
        return (held, "") if self.opened else ("", self._with_blanks(held))

    def _at_start(self, text: str) -> tuple[str, str]:
        if any(opener.startswith(text) and opener != text for opener in _OPENERS):
            self._held = text
            return "", ""
        opener = _OPENER.match(text)
        if opener is None:
            self.is_over = True
            return "", self._with_blanks(text)
        self.opened = True
        return self._within(text[opener.end() :])

    def _with_blanks(self, text: str) -> str:
        blanks, self._blanks = self._blanks, ""
        return blanks + text

    def _within(self, text: str) -> tuple[str, str]:
        closer = _CLOSER.search(text)
        if closer is not None:
            self.is_over = True
            return text[: closer.start()], text[closer.end() :]
        last = text.rfind("<", max(len(text) - _LONGEST, 0))
        end = last if last >= 0 and any(each.startswith(text[last:]) for each in _CLOSERS) else len(text)
        self._held = text[end:]
        return text[:end], ""


class LoneCloserScanner:
    """Finds the closing tag that was never opened while a text arrives, in chunks split anywhere.

    The first one alone on its line counts, as in `unopened_reasoning`. When it `is_over` there is nothing more to find;
    if it was found, `reasoning` is what came before it and `rest` what came after it in the same chunk.
    """

    def __init__(self) -> None:
        self.is_over = False
        self.reasoning: str | None = None
        self.rest = ""
        self._passed: list[str] = []
        self._held = ""
        self._line_is_blank = True

    def feed(self, chunk: str) -> str:
        """The text that is let through: all that is not the tag, nor may become it."""
        if self.is_over:
            return chunk
        if not self._held and "<" not in chunk:
            return self._pass(chunk)
        text, self._held = self._held + chunk, ""
        for line in _LINE_OF_TAG.finditer(text):
            if line.start() == 0 and not self._line_is_blank:
                continue
            if line.end() < len(text):
                if _CLOSING_LINE.fullmatch(line[1]):
                    return self._end(text, line.start(), line.end())
            elif _CLOSING_LINE.fullmatch(line[1]) or any(each.startswith(line[1]) for each in _CLOSERS):
                self._held = line[1]
                return self._pass(text[: line.start(1)])
        return self._pass(text)

    def finish(self) -> str:
        """What was still held back, likewise."""
        held = self.let_go()
        return self._end(held, 0, len(held)) if _CLOSING_LINE.fullmatch(held) else held

    def let_go(self) -> str:
        """What was still held back, where no such tag is looked for any more."""
        held, self._held = self._held, ""
        return held

    def _end(self, text: str, start: int, end: int) -> str:
        self.is_over = True
        before = "".join((*self._passed, text[:start]))
        self._passed.clear()
        if not _may_be_reasoning(before, len(before)):
            return text
        self.reasoning, self.rest = before, text[end:]
        return text[:start]

    def _pass(self, text: str) -> str:
        self._passed.append(text)
        _, line_end, line = text.rpartition("\n")
        self._line_is_blank = (bool(line_end) or self._line_is_blank) and not line.strip(" \t")
        return text

"""What a test has said that a model answers: where it was said, and whether anybody asked for it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

import msgspec

import ai_whisperer
from ai_whisperer.choices import nearest
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import ModelError

Word = str | Answer | ModelError
"""What a model says to one request: a text, a whole answer such as `call` makes, or an error that it fails with."""

_PACKAGE = str(Path(ai_whisperer.__file__).parent)
_ASYNCIO = str(Path(asyncio.__file__).parent)
_SHOWN = 5
_SHOWN_CHARACTERS = 60


class UnusedWordsError(AssertionError):
    """The test says what a model answers, and no model was asked for it."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of an agent's model. `place` is the line of the test. One that is `optional` need not be asked for."""

    agent: str
    word: Word
    place: str
    optional: bool = False

    def told(self) -> str:
        word = self.word
        if isinstance(word, Answer):
            shown = ", ".join(f"call({each.name!r}, …)" for each in word.tool_calls) or repr(word.text)
        else:
            shown = repr(word) if isinstance(word, str) else type(word).__name__
        cut = shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}…"
        return f"{self.place}: team.says({self.agent!r}, …) has {cut}"


def place_of_caller() -> str:
    """The line, of a test as a rule, that has called into this package."""
    frame = sys._getframe(1)  # noqa: SLF001 - the only way to know the line of the test
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"


def of_the_test(trace: TracebackType | None) -> TracebackType | None:
    """The lines of a traceback that are neither of this package nor of the event loop."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for each in reversed(frames):
        if not each.tb_frame.f_code.co_filename.startswith((_PACKAGE, _ASYNCIO)):
            kept = TracebackType(kept, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return kept


def check_used(left: Sequence[Said], agents: Iterable[str]) -> None:
    """Raise `UnusedWordsError` for the answers that are left, with the agent that was probably meant."""
    wanted = [each for each in left if not each.optional]
    if not wanted:
        return
    known = set(agents)
    lines = [each.told() for each in wanted[:_SHOWN]]
    if len(wanted) > _SHOWN:
        lines.append(f"and {len(wanted) - _SHOWN} more")
    for name in dict.fromkeys(each.agent for each in wanted if each.agent not in known):
        near = nearest(name, known)
        lines.append(f"There is no agent {name!r}." + ("" if near is None else f" Did you mean {near!r}?"))
    raise UnusedWordsError(
        "The test says what models answer, and nobody asked for it:\n  "
        + "\n  ".join(lines)
        + "\nLeave it out; or, where it does not matter whether it is asked for, say so: "
        f"team.says({wanted[0].agent!r}, …, optional=True)."
    )

"""The first difference between a recording and what happens now, in words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import unified_diff
from typing import Literal

import msgspec

from ai_whisperer.errors import RecordingDiffersError

Kind = Literal["request", "call", "input", "log", "missing", "tool"]

_MOST_LINES = 60


class Difference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the run left the recording: in a model `request`, a tool `call`, an `input`, or an entry of the `log`.

    `missing`: something that was recorded did not happen. `tool`: a tool is not there. `place` says where, for people,
    `key` is the causal path of the step, `seq` the entry of the recorded log if there is one. `diff` is unified.
    """

    kind: Kind
    place: str
    what: str
    key: str = ""
    seq: int = 0
    diff: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.place}: {self.what}"

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.diff}".rstrip()

    def raised(self) -> RecordingDiffersError:
        return RecordingDiffersError(str(self))


def diff_of(recorded: str, now: str) -> str:
    """The lines that differ, with some around them; `-` is the recording, `+` is now."""
    lines = unified_diff(recorded.splitlines(), now.splitlines(), "recorded", "now", lineterm="", n=2)
    return "\n".join(_some(lines))


def _some(lines: Iterable[str]) -> list[str]:
    shown = list(lines)
    if len(shown) <= _MOST_LINES:
        return shown
    return [*shown[:_MOST_LINES], f"… {len(shown) - _MOST_LINES} more lines differ."]

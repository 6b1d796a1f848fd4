"""The tool that reads what the journal has and the model is shown in part only."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ai_whisperer.core.marks import harmless, has_marks, said
from ai_whisperer.core.shown import READ_RESULT
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.tools.desk import Arguments, CoordinationTool, Desk, Wanted

_PAGE_CHARACTERS = 20_000


class ReadResult(Arguments, frozen=True, kw_only=True):
    """Read more of an earlier result that is not shown whole, from a character on."""

    step: str
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0

    def wants(self) -> Wanted:
        return Wanted(step=self.step)

    def run(self, desk: Desk) -> ToolResult:
        text, untrusted = desk.read_result(self.step)
        page = text[self.offset : self.offset + _PAGE_CHARACTERS]
        end = self.offset + len(page)
        if not page:
            return ToolResult(content=f"It has {len(text):,} characters: there is nothing from {self.offset:,} on.")
        more = f" Continue with offset {end}." if end < len(text) else " That is its end."
        shown = page if untrusted else said("others", page) if has_marks(text) else harmless(page)
        content = f"Characters {self.offset:,} to {end:,} of {len(text):,}.{more}\n{shown}"
        return ToolResult(content=content, untrusted=untrusted)


READ_RESULT_TOOL = CoordinationTool(READ_RESULT, ReadResult)

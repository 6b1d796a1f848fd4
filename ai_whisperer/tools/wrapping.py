"""A tool around another one: whoever asks it about itself is answered by the other."""

from __future__ import annotations

from ai_whisperer.domain.conversation import ToolResult, ToolSpec
from ai_whisperer.domain.waits import Touch
from ai_whisperer.tools.callee import Callee
from ai_whisperer.tools.function import Tool, ToolContext
from ai_whisperer.tools.workplace import Workplace


class WrappedTool(Tool):
    """Like `inner` in all that a tool says of itself, also if `inner` is of a class that says it in its own way.

    Whoever wants something to happen around a call overrides `call`, and calls `inner` there.
    """

    __slots__ = ("inner",)

    def __init__(self, inner: Tool) -> None:
        for name in Tool.__slots__:
            setattr(self, name, getattr(inner, name))
        self.inner = inner

    @property
    def spec(self) -> ToolSpec:
        return self.inner.spec

    @property
    def callee(self) -> Callee:
        return self.inner.callee

    def check(self) -> Tool:
        self.inner.check()
        return self

    def may_repeat(self, arguments: str) -> bool:
        return self.inner.may_repeat(arguments)

    def touched_by(self, arguments: str, workplace: Workplace) -> tuple[Touch, ...]:
        return self.inner.touched_by(arguments, workplace)

    def wants_approval(self, arguments: str) -> bool:
        return self.inner.wants_approval(arguments)

    async def call(self, arguments: str, context: ToolContext) -> ToolResult:
        return await self.inner.call(arguments, context)

"""The tools of a team, watched: how often each really ran, over all lives of the process, and what it raised."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.tools.function import AnyFunction, Tool, ToolContext, as_tools
from ai_whisperer.tools.wrapping import WrappedTool

if TYPE_CHECKING:
    from ai_whisperer.testing.playback import Playback


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A function was really called, for this step of the journal."""

    tool: str
    agent: str
    step_id: str
    arguments: dict[str, Any]


class ToolFailedError(AssertionError):
    """A tool raised an error, and the test does not say that it may."""


class WatchedTools:
    """Functions that agents of a team can be granted."""

    def __init__(self, playback: Playback | None = None) -> None:
        """`playback` brings the results where it has them."""
        self.playback = playback
        self.runs: list[Run] = []
        """All real calls, in this order."""
        self.faults: list[Exception] = []
        """What functions raised that were not to fail."""
        self._failing: set[str] | None = set()

    def watch(self, functions: Iterable[AnyFunction]) -> list[Tool]:
        """The functions as tools that are watched; raises `InvalidInputError` unless models can call each."""
        return [WatchedTool(tool, self) for tool in as_tools(functions)]

    def let_fail(self, names: Iterable[str]) -> None:
        """Let these raise errors; without names, all."""
        named = set(names)
        self._failing = None if self._failing is None or not named else self._failing | named

    def may_fail(self, name: str) -> bool:
        return self._failing is None or name in self._failing

    def note(self, tool: Tool, arguments: str, context: ToolContext) -> None:
        values = arguments_of(arguments)
        self.runs.append(Run(tool=tool.name, agent=context.agent_id, step_id=context.step_id, arguments=values))

    def note_failure(self, tool: Tool, error: Exception, context: ToolContext) -> None:
        if not self.may_fail(tool.name):
            fault = ToolFailedError(
                f"The tool {tool.name} failed when {context.agent_id} called it: {type(error).__name__}: {error}. Its "
                f"model was told. If the test wants that, say so before: team.lets_fail({tool.name!r})."
            )
            fault.__cause__ = error
            self.faults.append(fault)


class WatchedTool(WrappedTool):
    """Like the tool that it watches."""

    __slots__ = ("_watch",)

    def __init__(self, inner: Tool, watch: WatchedTools) -> None:
        super().__init__(inner)
        self._watch = watch

    async def call(self, arguments: str, context: ToolContext) -> ToolResult:
        def note() -> None:
            self._watch.note(self, arguments, context)

        try:
            if self._watch.playback is not None:
                return await self._watch.playback.result_of(self.inner, arguments, context, on_run=note)
            note()
            return await self.inner.call(arguments, context)
        except Exception as error:
            self._watch.note_failure(self, error, context)
            raise


def arguments_of(written: str) -> dict[str, Any]:
    """The arguments of a call by name; under no name what a model wrote that is no JSON object."""
    try:
        values = msgspec.json.decode(written or "{}")
    except (msgspec.DecodeError, RecursionError):
        values = written
    return values if isinstance(values, dict) else {"": values}

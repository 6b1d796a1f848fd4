"""The tools that are provided to a replay, beside those of its recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ai_whisperer.replay.recording.asking import digest_of, told_tools
from ai_whisperer.replay.recording.differences import Difference
from ai_whisperer.replay.recording.format import Recording
from ai_whisperer.replay.recording.format import Tool as RecordedTool
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.registry import machine_tools


class ProvidedTools:
    """What models are told of the tools that there are now."""

    def __init__(self, recording: Recording, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        known = {tool.name for tool in recording.tools}
        new = (tool for tool in tools.values() if tool.name not in known)
        self.told = (*recording.tools, *(RecordedTool(name=tool.name, spec=tool.spec) for tool in new))
        """The tools of the recording, and those that are new: agents that may use all tools are told of them."""

    def get(self, name: str) -> Tool | None:
        """The tool that is provided under this name."""
        return self._tools.get(name)

    def as_told_by_name(self) -> list[RecordedTool]:
        """All of them in the order of their names, as models are told of them now."""
        return sorted(map(self._as_told, self.told), key=lambda tool: tool.name)

    def _as_told(self, recorded: RecordedTool) -> RecordedTool:
        tool = self._tools.get(recorded.name)
        if tool is None or recorded.spec is None:
            return recorded
        return replace(recorded, spec=tool.spec, digest=digest_of(told_tools((tool.spec,))))


def missing_tools(recording: Recording, tools: Iterable[str]) -> tuple[str, ...]:
    """The tools of the recording that are not among these, of those that models were told of."""
    told = {tool.name for tool in recording.tools if tool.spec is not None}
    return tuple(sorted(told.difference(tools) - machine_tools().keys()))


def tools_gone(names: Sequence[str]) -> Difference:
    told = f"was recorded and is not there now: {', '.join(names)}. Provide it again, record the session again, "
    return Difference(kind="tool", place="the tools", what=f"{told}or do not compare tools (--ignore tools).")

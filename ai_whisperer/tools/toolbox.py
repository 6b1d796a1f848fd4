"""All tools that a server has for its agents, and where each comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from ai_whisperer.domain.tools import Extent, ToolEntry, ToolKind
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.machine import MACHINE_TOOLS
from ai_whisperer.tools.project_files import ToolFile
from ai_whisperer.tools.registry import COORDINATION_TOOLS, NAMED_TOOLS


class ToolBox:
    """The tools that were provided, and those of files. Of two files' tools with one name neither is taken.

    A file's tool cannot take the place of a built-in one either: whoever reads a grant of `write_file` must be able to
    rely on what that is. A tool that was provided can.
    """

    def __init__(self, provided: Iterable[Tool] = (), files: Iterable[ToolFile] = ()) -> None:
        self._provided = tuple(provided)
        self._files = _without_doubles(
            files, taken={*(each.name for each in self._provided), *COORDINATION_TOOLS, *NAMED_TOOLS, *MACHINE_TOOLS}
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The functions that agents can be granted, beside the built-in tools."""
        return (*self._provided, *(tool for file in self._files for tool in file.tools))

    @property
    def errors(self) -> list[str]:
        """What is wrong with the files that cannot be used."""
        return [file.error for file in self._files if file.error is not None]

    def entries(self) -> list[ToolEntry]:
        """All tools that there are, and the files that cannot be used."""
        own = {tool.name for tool in self.tools}
        return [
            *(_entry(each, ToolKind.OWN, "") for each in self._provided),
            *(_entry(each, ToolKind.OWN, str(file.path)) for file in self._files for each in file.tools),
            *(
                ToolEntry(name="", kind=ToolKind.OWN, source=str(file.path), error=file.error)
                for file in self._files
                if file.error is not None
            ),
            *(_entry(each, ToolKind.MACHINE, "") for each in MACHINE_TOOLS.values() if each.name not in own),
            *(
                ToolEntry(name=each.spec.name, kind=ToolKind.COORDINATION, description=each.spec.description)
                for each in (*COORDINATION_TOOLS.values(), *NAMED_TOOLS.values())
            ),
        ]


def _without_doubles(files: Iterable[ToolFile], *, taken: Iterable[str]) -> Sequence[ToolFile]:
    known = list(files)
    homes: dict[str, list[str]] = {}
    for file in known:
        for tool in file.tools:
            homes.setdefault(tool.name, []).append(str(file.path))
    reserved = set(taken)

    def check(file: ToolFile) -> ToolFile:
        complaints = list(_complaints(file, homes, reserved))
        if not complaints:
            return file
        kept = tuple(tool for tool in file.tools if tool.name not in reserved and len(homes[tool.name]) == 1)
        return replace(file, tools=kept, error=" ".join(filter(None, (file.error, *complaints))))

    return [check(file) for file in known]


def _complaints(file: ToolFile, homes: dict[str, list[str]], reserved: set[str]) -> Iterator[str]:
    for name in dict.fromkeys(tool.name for tool in file.tools):
        if name in MACHINE_TOOLS:
            yield (
                f"{file.path}: '{name}' is a built-in tool, and a file cannot take its place: the tool of this file is "
                "not used. Give it another name."
            )
        elif name in reserved:
            yield f"{file.path}: there is a tool '{name}' already, without this file. Give this one another name."
        elif len(homes[name]) > 1:
            yield (
                f"{file.path}: two tools are called '{name}': in {' and in '.join(homes[name])}. None of them is used; "
                "give one another name."
            )


def _entry(tool: Tool, kind: ToolKind, source: str) -> ToolEntry:
    touches: Any = tool.touches
    if callable(touches):
        touches = ("depends on the arguments",)
    return ToolEntry(
        name=tool.name,
        kind=kind,
        source=source,
        description=tool.spec.description,
        idempotent=_extent(tool.idempotent),
        needs_approval=_extent(tool.needs_approval),
        touches=(touches,) if isinstance(touches, str) else tuple(touches),
        untrusted=tool.untrusted,
    )


def _extent(stated: bool | Callable[..., bool]) -> Extent:  # noqa: FBT001 - it is the value that is described
    if callable(stated):
        return Extent.SOMETIMES
    return Extent.ALWAYS if stated else Extent.NEVER

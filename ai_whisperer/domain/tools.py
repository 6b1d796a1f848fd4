"""The tools that there are."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class ToolKind(StrEnum):
    """`coordination` tools touch only the session, `machine` tools come with the package, `own` were provided."""

    COORDINATION = "coordination"
    MACHINE = "machine"
    OWN = "own"


class Extent(StrEnum):
    """Of which calls something holds; `sometimes`: it depends on the arguments."""

    NEVER = "never"
    SOMETIMES = "sometimes"
    ALWAYS = "always"


class ToolEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that agents can be granted or, with an `error`, a tool file that cannot be used, or not all of it.

    `source` is the file that it is from; empty for a tool of the package or of the program that runs the server.
    """

    name: str
    kind: ToolKind
    source: str = ""
    description: str = ""
    idempotent: Extent = Extent.NEVER
    needs_approval: Extent = Extent.NEVER
    touches: tuple[str, ...] = ()
    untrusted: bool = False
    error: str | None = None

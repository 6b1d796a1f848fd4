"""A workplace on a real disk, and a model's hand on the file tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ai_whisperer.core.limits import effective
from ai_whisperer.domain.definition import Access
from ai_whisperer.domain.limits import Limits
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.function import CancelSignal, ToolContext
from ai_whisperer.tools.machine import MACHINE_TOOLS
from ai_whisperer.tools.workplace import OWN, Folder, Workplace

CANARY = "canary: nobody may see this"


class Desk:
    """One agent's folders: its own, `shared` to write and `library` to read, and beside them what is not its own."""

    def __init__(self, root: Path, **limits: Any) -> None:
        self.root = root.resolve()
        self.own = self.root / "own"
        self.shared = self.root / "shared"
        self.library = self.root / "library"
        self.outside = self.root / "outside"
        self.guards: Callable[[str, int], AbstractContextManager[None]] | None = None
        self.workplace = Workplace(
            folders={
                OWN: Folder(path=self.own, access=Access.WRITE),
                "shared": Folder(path=self.shared, access=Access.WRITE),
                "library": Folder(path=self.library, access=Access.READ),
            },
            network=(),
            limits=effective(Limits(**limits)),
        )
        self.library.mkdir(exist_ok=True)
        self.workplace.prepare()
        self.outside.mkdir(exist_ok=True)
        self.secret = self.outside / "secret.txt"
        self.secret.write_text(CANARY)

    def context(self) -> ToolContext:
        context = ToolContext(
            session_id="s",
            agent_id="alice",
            task_id="t",
            step_id="t/1",
            cancelled=CancelSignal(),
            workplace=self.workplace,
        )
        return context if self.guards is None else msgspec.structs.replace(context, guards=self.guards)

    def use(self, name: str, /, **arguments: Any) -> str:
        """What the tool tells; raises `ToolError` like the tool."""
        return asyncio.run(self.call(name, **arguments))

    async def call(self, name: str, /, **arguments: Any) -> str:
        written = msgspec.json.encode(arguments).decode()
        result = await MACHINE_TOOLS[name].call(written, self.context())
        if result.is_error:
            raise ToolError(result.content)
        return result.content

    def refused(self, name: str, /, **arguments: Any) -> str:
        """The error that the tool gives, which every call here must give."""
        with pytest.raises(ToolError) as caught:
            self.use(name, **arguments)
        assert CANARY not in caught.value.message
        return caught.value.message

    def version(self, path: str) -> str:
        return self.use("read_file", path=path).partition("version ")[2].partition("]")[0].partition(";")[0]

    def drafts(self) -> list[Path]:
        return list(self.root.rglob(".whisperer-*"))
